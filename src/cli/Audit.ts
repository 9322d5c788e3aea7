/** `audit`. */
import { Effect, Layer } from "effect"
import { Command } from "effect/cli"
import * as AuditLog from "../operations/AuditLog.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import { documented } from "./Usage.ts"

const columns: ReadonlyArray<Output.Column<AuditLog.Entry>> = [
  { title: "WHEN (UTC)", value: ({ at }) => Output.second(at) },
  { title: "WHO", value: ({ actor }) => actor },
  { title: "FROM", value: ({ source }) => source },
  { title: "WHAT", value: ({ action }) => action },
  { title: "RESULT", value: ({ result }) => result },
  { title: "TARGET", value: ({ target }) => target },
  { title: "ORGANIZATION", value: ({ organization_id }) => organization_id }
]

const list = Command.make(
  "list",
  { limit: Output.limit("entries"), json: Output.json },
  Effect.fn(function* ({ json, limit }) {
    yield* Output.rows(yield* AuditLog.list(limit), { columns, json, none: "Nothing has been changed yet." })
  })
).pipe(
  documented(
    "List what operators changed",
    [["practice-data audit list --limit 10"]],
    "List what operators changed by commands and on their page, the latest first"
  )
)

export const audit = Command.make("audit").pipe(
  Command.withDescription("What operators changed: API keys, signing secrets and replayed deletions"),
  Command.withSubcommands([list]),
  Command.provide(Layer.merge(Operators.tasks, Operators.keys))
)
