/** The migrations, and what the roles that they make may do. Decisions: "Addresses and processes", "Tables". */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Logger, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { connect } from "../../../src/database/Database.ts"
import {
  all as files,
  isMigrated,
  migrate,
  missing,
  requireMigrated,
  untilMigrated
} from "../../../src/database/Migrations.ts"
import { resources } from "../../../src/api/records/index.ts"
import { emptyDatabase, TestDatabase } from "../../support/TestDatabase.ts"

const tables = resources.map(({ table }) => table)

const clientOf = (url: string) =>
  connect({
    url: Redacted.make(url),
    applicationName: "practice-data-test",
    maxConnections: 1,
    statementTimeout: "1 minute"
  }).pipe(Effect.provide(Reactivity.layer))

const roleOf = (name: "api" | "intake" | "worker") => `practice_data_${name}`

/** Runs a statement as a role. */
const asRole = (role: string, statement: string) =>
  Effect.gen(function* () {
    const { sql } = yield* TestDatabase
    return yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql.unsafe(`set local role ${role}`)
        const exit = yield* Effect.result(sql.withTransaction(sql.unsafe<{ record: string }>(statement)))
        yield* sql`reset role`
        return exit
      })
    )
  })

const isAllowed = Effect.fnUntraced(function* (role: string, statement: string) {
  const result = yield* asRole(role, statement)
  if (result._tag === "Failure") assert.fail(`${statement}: ${String(result.failure.reason.cause)}`)
  return result.success
})

const isDenied = Effect.fnUntraced(function* (role: string, statement: string) {
  const result = yield* asRole(role, statement)
  assert.strictEqual(result._tag === "Failure" && result.failure.reason._tag, "AuthorizationError", statement)
})

const changes = (table: string) => [
  `insert into ${table} (organization_id) select '' where false`,
  `update ${table} set organization_id = organization_id where false`,
  `delete from ${table} where false`,
  `truncate ${table}`,
  `drop table ${table}`
]

const columnsOf = Effect.fnUntraced(function* (table: string) {
  const { sql } = yield* TestDatabase
  const columns = yield* sql<{ name: string }>`
    select attname as name from pg_attribute
    where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attgenerated = ''`
  return columns.map(({ name }) => name)
})

layer(TestDatabase.layerDatabases, { excludeTestServices: true })((it) => {
  it.effect("migrations apply once: the second time there is nothing to do", () =>
    Effect.gen(function* () {
      const sql = yield* clientOf(yield* emptyDatabase)
      const first = yield* migrate(sql)
      assert.deepStrictEqual(first[0], "00001_records")
      assert.isTrue(yield* isMigrated(sql))
      const recorded = yield* sql`select * from migrations order by migration_id`
      assert.deepStrictEqual(yield* migrate(sql), [])
      assert.deepStrictEqual(yield* sql`select * from migrations order by migration_id`, recorded)
      assert.strictEqual(recorded.length, first.length)
    })
  )

  it.effect("a database lacks all migrations, then those above the last one that it had, then none", () =>
    Effect.gen(function* () {
      const sql = yield* clientOf(yield* emptyDatabase)
      const all = yield* missing(sql)
      assert.isTrue(all.isEmpty)
      assert.strictEqual(all.files[0], "00001_records")
      const unmigrated = yield* Effect.flip(requireMigrated("The database", sql))
      assert.strictEqual(unmigrated.message, "The database is not migrated. Run: npm run cli -- migrate")

      yield* migrate(sql)
      yield* requireMigrated("The database", sql)
      yield* sql`delete from migrations where migration_id > 1`
      const later = all.files.slice(1)
      assert.deepStrictEqual(yield* missing(sql), { isEmpty: false, files: later })
      const older = yield* Effect.flip(requireMigrated("The database", sql))
      assert.strictEqual(
        older.message,
        `The database lacks the migrations ${later.join(", ")}. Run: npm run cli -- migrate`
      )
      yield* sql`revoke select on migrations from practice_data_worker`
      yield* sql`set role practice_data_worker`
      yield* requireMigrated("The database", sql)
    })
  )

  it.effect("who waits for migrations says once that they are missing, and goes on when they are there", () =>
    Effect.gen(function* () {
      const sql = yield* clientOf(yield* emptyDatabase)
      const messages: Array<unknown> = []
      const log = Logger.make<unknown, void>(({ message }) => void messages.push(message))
      const waiting = yield* Effect.forkChild(
        untilMigrated("The database", sql).pipe(Effect.provide(Logger.layer([log])))
      )
      yield* Effect.sleep("1200 millis")
      assert.deepStrictEqual(messages.flat(), ["The database is not migrated. Run: npm run cli -- migrate"])
      yield* migrate(sql)
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(messages.flat().slice(1), ["The database is migrated"])
    })
  )

  it.effect(
    "of two processes that migrate one fresh database at once, both succeed, and each migration is applied once",
    () =>
      Effect.gen(function* () {
        const url = yield* emptyDatabase
        const clients = yield* Effect.all([clientOf(url), clientOf(url), clientOf(url)])
        const applied = yield* Effect.forEach(clients, (sql) => migrate(sql), { concurrency: "unbounded" })
        assert.deepStrictEqual(applied.flat().toSorted(), Object.keys(files))
        for (const client of clients) assert.isTrue(yield* isMigrated(client))
      })
  )

  it.effect("two databases of one server can be migrated at once, although they share the roles", () =>
    Effect.gen(function* () {
      const urls = yield* Effect.all([emptyDatabase, emptyDatabase])
      const clients = yield* Effect.forEach(urls, clientOf)
      const applied = yield* Effect.forEach(clients, (sql) => migrate(sql), { concurrency: "unbounded" })
      for (const each of applied) assert.deepStrictEqual(each[0], "00001_records")
    })
  )

  it.effect("a migration that fails leaves nothing behind, and can be tried again", () =>
    Effect.gen(function* () {
      const sql = yield* clientOf(yield* emptyDatabase)
      yield* sql`create table charge_refunds (in_the_way integer)`
      yield* Effect.flip(migrate(sql))
      const left = yield* sql`select 1 from pg_tables where schemaname = 'public' and tablename <> 'charge_refunds'`
      assert.strictEqual(left.length, 0)
      yield* sql`drop table charge_refunds`
      assert.deepStrictEqual((yield* migrate(sql))[0], "00001_records")
    })
  )

  it.effect("no role of the service can log in by itself, create anything, or see past row security", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const roles = yield* sql`
        select rolname, rolcanlogin or rolsuper or rolcreaterole or rolcreatedb or rolbypassrls as mighty
        from pg_roles where rolname like 'practice_data%' order by rolname`
      assert.deepStrictEqual(
        roles,
        (["api", "intake", "worker"] as const).map((name) => ({ rolname: roleOf(name), mighty: false }))
      )
      for (const { rolname } of roles) yield* isDenied(String(rolname), "create table mine (id integer)")
    })
  )

  it.effect.each([...tables, "api_keys"])("the data API can read %s, and change nothing in it", (table) =>
    Effect.gen(function* () {
      yield* isAllowed(roleOf("api"), `select * from ${table}`)
      for (const change of changes(table)) yield* isDenied(roleOf("api"), change)
    })
  )

  it.effect(
    "the data API reads what became of deletion tasks, and neither their payload nor why an attempt failed",
    () =>
      Effect.gen(function* () {
        const hidden = ["fingerprint", "payload", "due_at", "claim_token", "last_error", "trace_parent"]
        const shown = (yield* columnsOf("deletion_tasks")).filter((column) => !hidden.includes(column))
        yield* isAllowed(roleOf("api"), `select ${shown.join(", ")} from deletion_tasks`)
        for (const column of hidden) yield* isDenied(roleOf("api"), `select ${column} from deletion_tasks`)
        for (const change of changes("deletion_tasks")) yield* isDenied(roleOf("api"), change)
      })
  )

  it.effect("the data API records the day on which a key was used, and nothing else of a key", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`
        insert into api_keys (organization_id, id, name, prefix, key_hash)
        values ('org_a', 'used', 'Used', 'pda', '\\x01'), ('org_a', 'other', 'Other', 'pda', '\\x02')`
      yield* sql.withTransaction(
        Effect.andThen(
          sql.unsafe(`set local role ${roleOf("api")}`),
          sql.unsafe("select touch_api_key('\\x01'), touch_api_key('\\xff')")
        )
      )
      const keys = yield* sql`
        select id, last_used_on = (now() at time zone 'UTC')::date as today, revoked_at from api_keys order by id`
      assert.deepStrictEqual(keys, [
        { id: "other", today: null, revoked_at: null },
        { id: "used", today: true, revoked_at: null }
      ])
    })
  )

  it.effect.each(["intake", "worker"] as const)("the %s neither reads keys nor touches them", (name) =>
    Effect.gen(function* () {
      yield* isDenied(roleOf(name), "select * from api_keys")
      yield* isDenied(roleOf(name), "select touch_api_key('\\x01')")
      for (const change of changes("api_keys")) yield* isDenied(roleOf(name), change)
    })
  )

  it.effect.each(tables)("the intake neither reads %s nor changes it", (table) =>
    Effect.gen(function* () {
      for (const statement of [`select * from ${table}`, ...changes(table)])
        yield* isDenied(roleOf("intake"), statement)
    })
  )

  it.effect.each(["invoices", "invoice_lines"])(
    "the worker marks %s deleted, and changes nothing else of them",
    (table) =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        yield* sql.unsafe(
          `insert into ${table} (organization_id, id, created_at, updated_at) values ('org_a', '1', now(), now())`
        )
        const rows = yield* isAllowed(
          roleOf("worker"),
          `update ${table} set is_deleted = true, deleted_at = '2026-01-31', updated_at = '2026-01-31 09:30+00'
         where organization_id = 'org_a' returning record`
        )
        assert.strictEqual(rows.length, 1)
        assert.include(rows[0]?.record, '"is_deleted":true,"deleted_at":"2026-01-31T00:00:00.000Z"')
        assert.include(rows[0]?.record, '"updated_at":"2026-01-31T09:30:00.000Z"')
        const marks = ["is_deleted", "deleted_at", "updated_at"]
        for (const column of (yield* columnsOf(table)).filter((name) => !marks.includes(name))) {
          yield* isDenied(roleOf("worker"), `update ${table} set ${column} = ${column} where false`)
        }
        for (const change of changes(table)) yield* isDenied(roleOf("worker"), change)
      })
  )

  it.effect.each(tables.filter((table) => !table.startsWith("invoice")))("the worker cannot change %s", (table) =>
    Effect.gen(function* () {
      for (const change of changes(table)) yield* isDenied(roleOf("worker"), change)
    })
  )
})
