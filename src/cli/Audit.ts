/** `audit`: what operators changed. */
import { Effect, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import type { Entry } from "../operations/AuditLog.ts"
import * as AuditLog from "../operations/AuditLog.ts"
import { invocation } from "../process/Package.ts"
import * as OperatorDatabases from "./OperatorDatabases.ts"
import * as Output from "./Output.ts"
import { type Column, second } from "./Table.ts"

const columns: ReadonlyArray<Column<Entry>> = [
  { title: "WHEN (UTC)", value: ({ at }) => second(at) },
  { title: "WHO", value: ({ actor }) => actor },
  { title: "FROM", value: ({ source }) => source },
  { title: "WHAT", value: ({ action }) => action },
  { title: "RESULT", value: ({ result }) => result },
  { title: "TARGET", value: ({ target }) => target },
  { title: "ORGANIZATION", value: ({ organization_id }) => organization_id }
]

const list = Command.make(
  "list",
  {
    limit: Flag.Int("limit").pipe(
      Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10_000 }))),
      Flag.withDescription("How many entries at most, 50 by default"),
      Flag.withDefault(50)
    ),
    json: Output.json
  },
  Effect.fn(function* ({ json, limit }) {
    yield* Output.rows(yield* AuditLog.list(limit), { columns, json, none: "Nothing has been changed yet." })
  })
).pipe(
  Command.withDescription("List what operators changed by commands and on their page, the latest first"),
  Command.withShortDescription("List what operators changed"),
  Command.withExamples([{ command: invocation("audit list --limit 10") }])
)

/** `audit`. */
export const audit = Command.make("audit").pipe(
  Command.withDescription("What operators changed: API keys, signing secrets and replayed deletions"),
  Command.withSubcommands([list]),
  Command.provide(OperatorDatabases.both)
)
