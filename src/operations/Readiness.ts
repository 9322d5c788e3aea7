/**
 * The readiness of a process: each database that its roles need is migrated, and its login may do what they do. A database
 * that is down keeps the state that it had.
 */
import { Clock, Effect, Schema, Semaphore } from "effect"
import type { Privilege } from "../database/Catalog.ts"
import { rowsOf } from "../database/Columns.ts"
import { CredentialDatabase, type Database, RecordDatabase, TaskDatabase } from "../database/Database.ts"
import { all as migrations } from "../database/Migrations.ts"
import { isUndefined } from "../database/SqlFailure.ts"
import type { Failure, StatementRequest } from "../database/Store.ts"
import { migratedIn, roleOf } from "./doctor/MigrationsCheck.ts"
import type { Role } from "./Settings.ts"

/** The objects that the data API uses, by the database. */
const ofDataApi = {
  credentials: /\.api_keys$/,
  records: /^(?!.*\.(api_keys|deletion_tasks|deletions)$)/,
  tasks: /\.(deletion_tasks|deletions|change_\w+(\(\))?)$/
} as const

const usableRows = rowsOf(Schema.Struct({ isUsable: Schema.Boolean }))

/** True if a database has all migrations, and its login these privileges. Names are found as statements find them. */
const isUsable = (sql: Database, needed: ReadonlyArray<Privilege>) => {
  const objects = needed.map(({ columns, object, privilege }) => ({
    columns,
    privilege,
    name: object.replace(/^(function )?public\./, "$1")
  }))
  const rows = usableRows(sql`
    select array(select name from migrations) @> ${Object.keys(migrations)}::text[] and bool_and(coalesce(case
      when starts_with(name, 'function ') then has_function_privilege(to_regprocedure(substr(name, 10)), privilege)
      when columns is null then has_table_privilege(to_regclass(name), privilege)
      else (select bool_and(has_column_privilege(to_regclass(name), each, privilege)) from unnest(columns) each)
    end, false)) as "isUsable"
    from jsonb_to_recordset(${sql.json(objects)}::jsonb) as needed (name text, privilege text, columns text[])`)
  return Effect.catchIf(
    Effect.map(rows, ([row]) => row?.isUsable === true),
    isUndefined,
    () => Effect.succeed(false)
  )
}

/** The time for which a state is kept, in nanoseconds. Many may ask at once. */
const kept = { ready: 5_000_000_000n, unready: 200_000_000n } as const

/** @param request its errors are the failures of the database */
export const make = Effect.fnUntraced(function* (roles: ReadonlyArray<Role>, request: StatementRequest<Failure>) {
  const [records, credentials, tasks] = [yield* RecordDatabase, yield* CredentialDatabase, yield* TaskDatabase]
  const { privileges } = yield* migratedIn("public")
  const needs = roles.flatMap((role) => {
    // A role serves without the audit log, and the day on which a key was used.
    const own = privileges.filter(
      ({ grantee, object }) => grantee === roleOf[role] && !/audit_log|touch_api_key/.test(object)
    )
    const on = (sql: Database, objects: RegExp, isOptional = false) => ({
      sql,
      privileges: own.filter(({ object }) => objects.test(object)),
      isOptional
    })
    if (role !== "data-api") return [on(tasks, /./)]
    // Without the tasks, records are read all the same.
    return [on(records, ofDataApi.records), on(credentials, ofDataApi.credentials), on(tasks, ofDataApi.tasks, true)]
  })
  const states = Array.from(
    Map.groupBy(needs, ({ sql }) => sql),
    ([sql, ofDatabase]) => ({
      sql,
      isUsable: isUsable(
        sql,
        ofDatabase.flatMap((need) => need.privileges)
      ),
      isReady: ofDatabase.every(({ isOptional }) => isOptional)
    })
  )
  const isReady = () => states.every((state) => state.isReady)
  const turn = yield* Semaphore.make(1)
  let checkedAt: bigint | undefined

  const checkAll = Effect.forEach(
    states,
    (state) =>
      Effect.match(state.sql.run(request, state.isUsable), {
        onFailure: ({ _tag }) => {
          if (_tag === "Refused") state.isReady = false
        },
        onSuccess: (answer) => {
          state.isReady = answer
        }
      }),
    { concurrency: "unbounded", discard: true }
  )
  const check = Effect.gen(function* () {
    const now = yield* Clock.monotonicTimeNanos
    if (checkedAt !== undefined && now - checkedAt < kept[isReady() ? "ready" : "unready"]) return
    yield* checkAll
    checkedAt = now
  })
  return {
    /** The state, without a check. */
    isReady,
    /** Checks the databases, unless they were checked just now. */
    check: turn.withPermit(check)
  }
})
