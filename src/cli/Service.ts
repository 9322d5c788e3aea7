/** `serve`, the preparation of its database: `migrate` and `distribute`, and `doctor`. */
import { Effect, Layer, Schema } from "effect"
import { Flag } from "effect/cli"
import * as Reactivity from "effect/reactivity/Reactivity"
import { resources } from "../api/records/index.ts"
import { CredentialDatabase, TaskDatabase } from "../database/Database.ts"
import { distribute as distributeTables, settings } from "../database/Distribution.ts"
import { grantNeeded, migrate as applyMissing } from "../database/Migrations.ts"
import * as Doctor from "../operations/doctor/Doctor.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import { command, refused } from "./Usage.ts"

/** Runs the service in place of the command. It ends the process itself, as when it is started alone. */
export const serve = command("serve", Layer.empty, {
  description:
    "Run the service until a stop signal: the data API, the intake and the deletion worker, as set by ROLES. Without DATABASE_URL, it uses an embedded Postgres with demo data.",
  examples: [["PORT=8080 practice-data serve"], ["ROLES=data-api,intake practice-data serve"]],
  flags: {}
})(function* () {
  const { run } = yield* Effect.promise(() => import("../app/App.ts"))
  return yield* Effect.uninterruptible(Effect.callback<never>(() => run()))
})

// Doing nothing is a success, so that every deployment may run it.
export const migrate = command("migrate", Operators.asTheyAre, {
  description: "Apply pending migrations",
  examples: [["practice-data migrate", "Prepare the Postgres of DATABASE_URL"]],
  flags: {
    json: Output.json,
    roles: Output.optional(
      Flag.String("roles").pipe(
        Flag.withSchema(Schema.String.check(Schema.isPattern(/^[a-z][a-z0-9_]{0,49}$/))),
        Flag.withDescription(
          "What the names of the roles begin with, in a new database; practice_data by default. Another database of the server shares roles of the same names"
        )
      )
    )
  }
})(function* ({ json, roles }) {
  const databases = [yield* TaskDatabase, yield* CredentialDatabase] as const
  const applied = (yield* Effect.forEach(databases, (database) => applyMissing(database, undefined, roles))).flat()
  const needed = yield* grantNeeded(databases[0])
  if (needed !== undefined)
    yield* Output.note(`To grant the roles to logins with this one, run as a superuser: ${needed}`)
  if (json) return yield* Output.record({ applied })
  yield* Output.print(applied.length === 0 ? "Nothing to apply" : `Applied ${applied.join(", ")}`)
})

export const distribute = command("distribute", Operators.tasks, {
  description:
    "Distribute the tables of DATABASE_URL over the servers of Citus, by organization, and apply the session settings that they need. Requires the extension, and a login that owns the tables and the database. Idempotent: a new run resumes.",
  examples: [["practice-data distribute", "Distribute a migrated database over its servers"]],
  flags: { json: Output.json }
})(function* ({ json }) {
  const tables = resources.map(({ table }) => table)
  const distributed = distributeTables(yield* TaskDatabase, tables)
  const done = yield* Effect.catchTag(distributed, "CannotDistribute", ({ message }) => refused(message))
  yield* Output.shown(json, done, { ...done, settings })
  if (done.distributed.length > 0) {
    yield* Output.note([
      "Moved rows still take up space on this server. To free it, run for each table: select truncate_local_data_after_distributing_table('TABLE')",
      "Running services notice within 10 seconds. From now on, POST /changes returns 501."
    ])
  }
})

const marks = { ok: "ok  ", warn: "warn", fail: "FAIL" } as const

const findingLines = (findings: ReadonlyArray<Doctor.Finding>) =>
  [...Map.groupBy(findings, ({ area }) => area)].flatMap(([area, ofArea]) => [
    area,
    ...ofArea.flatMap(({ advice, message, status }) => [
      `  ${marks[status]}  ${message}`,
      ...(advice === undefined ? [] : [`        ${advice}`])
    ])
  ])

export const doctor = command("doctor", Reactivity.layer, {
  description:
    "Diagnose this installation and suggest fixes: the variables, each database (server, clock, connections, migrations, privileges, deletions, changes) and the payment processor. Read-only. Exits with 1 if a check failed.",
  examples: [["practice-data doctor"], ["practice-data doctor --json | jq 'select(.status != \"ok\")'"]],
  flags: { json: Output.json }
})(function* ({ json }) {
  const findings = yield* Doctor.examine()
  if (json) yield* Effect.forEach(findings, Output.record, { discard: true })
  else yield* Output.print(findingLines(findings))
  const count = (status: Doctor.Finding["status"]) => findings.filter((finding) => finding.status === status).length
  const summary = `${count("fail")} failed, ${count("warn")} to look at, ${count("ok")} fine.`
  if (count("fail") > 0) return yield* refused(summary)
  yield* Output.note(summary)
})
