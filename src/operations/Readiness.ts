/**
 * The readiness of a process: each database that its roles need is migrated, and its login may do what they do. A database
 * that is down keeps the state that it had.
 */
import { Clock, Effect, Schema, Semaphore } from "effect"
import { Privilege } from "../database/Catalog.ts"
import { rowsOf } from "../database/Columns.ts"
import { CredentialDatabase, type Database, RecordDatabase, TaskDatabase } from "../database/Database.ts"
import { all as migrations } from "../database/Migrations.ts"
import { isUndefined } from "../database/SqlFailure.ts"
import type { Failure, StatementRequest } from "../database/Store.ts"
import type { Role } from "./Config.ts"
import { roleOf } from "./doctor/MigrationsCheck.ts"
import migrated from "./doctor/migrated.json" with { type: "json" }

/** The privileges of a role on some objects. It serves without the others: the day on which a key was used, the audit log. */
const privilegesOf = (all: ReadonlyArray<Privilege>, role: Role, objects: RegExp) => {
  const isPublic = new Set(all.flatMap(({ grantee, object }) => (grantee === "public" ? [object] : [])))
  return all.filter(
    ({ grantee, object }) =>
      grantee === roleOf[role] &&
      objects.test(object) &&
      !isPublic.has(object) &&
      !/^schema |touch_api_key|audit_log/.test(object)
  )
}

const ofKeys = /\.api_keys$/
const ofTasks = /\.(deletion_tasks|deletions|change_\w+(\(\))?)$/
const ofRecords = /^(?!.*\.(api_keys|deletion_tasks|deletions)$)/

/** A database that a role needs. `isOptional`: the role serves without it, unless it refuses what it is asked for. */
interface Need {
  readonly sql: Database
  readonly privileges: ReadonlyArray<Privilege>
  readonly isOptional?: boolean
}

const usableRows = rowsOf(Schema.Struct({ isUsable: Schema.Boolean }))

/**
 * True if a database has all migrations, and its login these privileges, in one statement. Names are found as statements
 * find them.
 */
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
  const all = yield* Effect.orDie(Schema.decodeEffect(Schema.Array(Privilege))(migrated.privileges))
  const needs: Readonly<Record<Role, ReadonlyArray<Need>>> = {
    "data-api": [
      { sql: records, privileges: privilegesOf(all, "data-api", ofRecords) },
      { sql: credentials, privileges: privilegesOf(all, "data-api", ofKeys) },
      // Without it, records are read all the same.
      { sql: tasks, privileges: privilegesOf(all, "data-api", ofTasks), isOptional: true }
    ],
    intake: [{ sql: tasks, privileges: privilegesOf(all, "intake", /./) }],
    worker: [{ sql: tasks, privileges: privilegesOf(all, "worker", /./) }]
  }
  const needed = Map.groupBy(
    roles.flatMap((role) => needs[role]),
    ({ sql }) => sql
  )
  const states = Array.from(needed, ([sql, some]) => ({
    sql,
    isUsable: isUsable(
      sql,
      some.flatMap(({ privileges }) => privileges)
    ),
    isReady: some.every(({ isOptional }) => isOptional === true)
  }))
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
        onSuccess: (found) => {
          state.isReady = found
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
