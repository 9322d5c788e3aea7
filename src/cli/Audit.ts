/** `audit`. */
import { Effect, Layer } from "effect"
import { Command } from "effect/cli"
import * as AuditLog from "../operations/AuditLog.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import { documented } from "./Usage.ts"

const columns: Output.Columns<AuditLog.Entry> = {
  "WHEN (UTC)": "at",
  WHO: "actor",
  FROM: "source",
  WHAT: "action",
  RESULT: "result",
  TARGET: "target",
  ORGANIZATION: "organization_id"
}

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
