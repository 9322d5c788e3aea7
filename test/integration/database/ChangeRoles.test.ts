/** What the roles of the service may do with the feeds of changes, and that nobody gets more by them. */
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import type { SqlError } from "effect/sql/SqlError"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import { invoices } from "../../../src/api/records/Invoices.ts"
import { connect, type Database } from "../../../src/database/Database.ts"
import * as Postgres from "../../../src/records/Postgres.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Pages from "../../../src/records/Pages.ts"

const organization = "org_roles"

let logins = 0

/** A client of a new login that has the privileges of a role and no other. */
const loginOf = Effect.fnUntraced(function* (role: string) {
  const { sql, url } = yield* TestDatabase
  const name = `change_login_${process.pid}_${++logins}`
  yield* Effect.acquireRelease(
    sql.unsafe(`create role ${name} login password 'secret' in role practice_data_${role}`),
    () => Effect.orDie(Effect.andThen(sql.unsafe(`drop owned by ${name}`), sql.unsafe(`drop role ${name}`)))
  )
  const login = new URL(url)
  login.username = name
  login.password = "secret"
  return yield* connect({
    url: Redacted.make(login.href),
    applicationName: "test",
    maxConnections: 1,
    statementTimeout: "5 seconds"
  })
}, Effect.provide(Reactivity.layer))

/** A page of an organization's invoices, as a role reads it. */
const pageOf = (sql: Database, cursor?: string) =>
  Postgres.make(sql, invoices)
    .changes({ cursor, limit: 1000 })
    .pipe(
      Effect.provideService(CurrentOrganization, CurrentOrganization.known(organization)),
      // Transactions of other tests may hold them back.
      Effect.repeat({ until: ({ lag }) => lag === 0, schedule: Schedule.spaced("20 millis") }),
      Effect.map(({ cursor: next, json }) => ({ next, text: Pages.toText(json) }))
    )

const orders = (sql: Database) =>
  sql`select table_name, token, place, (select count(*)::int from removals) as removals from change_feeds order by 1`

const isRefused = (statement: Effect.Effect<unknown, SqlError>) =>
  Effect.match(statement, {
    onSuccess: () => assert.fail("It was let through"),
    onFailure: ({ reason }) => assert.strictEqual(reason._tag, "AuthorizationError")
  })

layer(TestDatabase.layer, { excludeTestServices: true })("of the feeds of changes", (it) => {
  it.effect("the data API's role reads all, and writes none", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`insert into invoices (organization_id, id) values (${organization}, 'invoice_1'), (${organization}, 'invoice_2')`
      const api = yield* loginOf("api")
      const first = yield* pageOf(api)
      assert.include(first.text, `"id":"invoice_1"`)
      yield* sql`delete from invoices where id = 'invoice_2'`
      assert.include((yield* pageOf(api, first.next)).text, `"removed":["invoice_2"]`)
      for (const table of ["change_feeds", "change_marks", "removals"]) {
        yield* isRefused(api.unsafe(`delete from ${table}`))
        yield* isRefused(api.unsafe(`truncate ${table}`))
      }
      yield* isRefused(api`update change_feeds set token = 'mine'`)
      yield* isRefused(api`insert into removals values (${organization}, 'invoices', 'invoice_1', 1)`)
    }).pipe(Effect.scoped)
  )

  it.effect("the worker's role deletes, and that is told", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`insert into invoices (organization_id, id) values (${organization}, 'invoice_3')`
      const worker = yield* loginOf("worker")
      yield* worker`update invoices set is_deleted = true, deleted_at = now() where id = 'invoice_3'`
      yield* worker`select change_mark()`
      assert.match((yield* pageOf(sql)).text, /"id":"invoice_3"[^}]*"is_deleted":true/)
      yield* isRefused(worker`update invoices set change_position = 0 where id = 'invoice_3'`)
      yield* isRefused(worker`select * from removals`)
    }).pipe(Effect.scoped)
  )

  it.effect.each(["api", "worker"])(
    "the role %s cannot use what runs with its owner's rights for anything else",
    (role) =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        const login = yield* loginOf(role)
        const before = yield* orders(sql)
        // A table of the same name, whose removals and whose end are none of the invoices'.
        yield* login`create temp table invoices (organization_id text, id text)`
        yield* isRefused(
          login`create trigger removed after delete on pg_temp.invoices for each row execute function record_removed()`
        )
        yield* isRefused(
          login`create trigger truncated after truncate on pg_temp.invoices for each statement
          execute function records_truncated()`
        )
        // Names that a search path of the caller would find first.
        yield* login`create temp table change_feeds (table_name text, token text, place text)`
        yield* login`create temp table change_marks (timeline int, token text, proven bigint, marked_at timestamptz)`
        yield* login`create function pg_temp.change_ceiling() returns bigint language sql return 1`
        yield* login`set search_path = pg_temp, public`
        yield* login`select public.change_begin(), public.change_mark()`
        assert.deepStrictEqual(yield* orders(sql), before)
        assert.deepStrictEqual(yield* login`select * from pg_temp.change_marks`, [])
      }).pipe(Effect.scoped)
  )
})
