/**
 * What the doctor says of a database: each thing that can be wrong with one is made wrong.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import * as Migrations from "../../../src/database/Migrations.ts"
import { emptyDatabase, TestDatabase } from "../../support/TestDatabase.ts"
import { examined, has, isFine } from "./examined.ts"

const area = "DATABASE_URL"

const of = (url: string, environment: Readonly<Record<string, string>> = {}) =>
  Effect.map(examined({ DATABASE_URL: url, ...environment }), (findings) =>
    findings.filter((finding) => finding.area === area)
  )

const examine = (environment?: Readonly<Record<string, string>>) =>
  Effect.flatMap(TestDatabase, ({ url }) => of(url, environment))

let logins = 0

/** The URL of the database for a new login, which is gone when the scope closes. */
const login = Effect.fnUntraced(function* (options: string) {
  const { url, sql } = yield* TestDatabase
  const name = `doctor_${process.pid}_${++logins}`
  yield* Effect.acquireRelease(sql.unsafe(`create role ${name} login password 'secret' ${options}`), () =>
    Effect.orDie(Effect.andThen(sql.unsafe(`drop owned by ${name}`), sql.unsafe(`drop role ${name}`)))
  )
  return { name, url: Object.assign(new URL(url), { username: name, password: "secret" }).href }
})

/** What is done for a test, and undone after it: the tests share the database, one after the other. */
const during = (statements: string, undone: string) =>
  Effect.flatMap(TestDatabase, ({ sql }) => {
    const run = (script: string) =>
      Effect.forEach(script.split(";"), (statement) => sql.unsafe(statement), { discard: true })
    return Effect.acquireRelease(run(statements), () => Effect.orDie(run(undone)))
  })

/** What is said of keys in a database of their own. */
const keys = (url: string) =>
  Effect.map(examined({ DATABASE_URL: `${url}?keys=apart`, CREDENTIALS_DATABASE_URL: url }), (findings) =>
    findings.filter((finding) => finding.area === "CREDENTIALS_DATABASE_URL")
  )

/** A database whose order of changes has begun: that of a copy of another has not. */
const database = Layer.tap(TestDatabase.layer, (context) => {
  const { sql } = Context.get(context, TestDatabase)
  return sql`select change_begin()`
})

const task = (id: string, state: string, due: string) => `
  insert into deletion_tasks (organization_id, id, idempotency_key, fingerprint, payload, invoices_count,
    invoice_lines_count, received_at, scheduled_for, state, due_at)
  values ('org_a', '00000000-0000-5000-8000-00000000000${id}', '${id}', '', '{}', 0, 0, now(), now(), '${state}', ${due})`

layer(database, { excludeTestServices: true })("Of a database the doctor", (it) => {
  it.effect("finds nothing wrong where nothing is, but that the login is a superuser", () =>
    Effect.gen(function* () {
      const findings = yield* examine()
      has(findings, "warn", /is a superuser/)
      isFine(findings.filter(({ message }) => !message.includes("is a superuser")))
      has(findings, "ok", /^PostgreSQL \d+.+ a statement takes \d+ ms/)
      has(findings, "ok", "have the settings that they ask for")
      has(
        findings,
        "ok",
        /may: read records, take deliveries in, run deletions, operate keys, secrets and tasks, migrate/
      )
    })
  )

  it.effect("tells that it is not migrated, and nothing of what is not there yet", () =>
    Effect.gen(function* () {
      const findings = yield* of(yield* emptyDatabase)
      has(findings, "fail", "It is not migrated.")
      assert.lengthOf(
        findings.filter(({ status }) => status === "fail"),
        1
      )
    })
  )

  it.effect("tells of migrations that are missing, and compares nothing then, and of unknown ones", () =>
    Effect.gen(function* () {
      const last = Object.keys(Migrations.all).at(-1) ?? ""
      const put = "insert into migrations (migration_id, name) values"
      yield* during(
        `delete from migrations where migration_id = ${Number.parseInt(last, 10)}; drop index pets_search`,
        `${put} (${Number.parseInt(last, 10)}, '${last.slice(6)}'); create index pets_search on pets (organization_id, updated_at, id, created_at)`
      )
      const lacking = yield* examine()
      has(lacking, "fail", `It lacks the migrations ${last}.`)
      assert.lengthOf(
        lacking.filter(({ status }) => status === "fail"),
        1
      )
      yield* during(`${put} (99, 'of_tomorrow')`, "delete from migrations where migration_id = 99")
      has(yield* examine(), "warn", "00099_of_tomorrow")
    })
  )

  it.effect("tells what the login cannot do that ROLES asks for, and what to grant", () =>
    Effect.gen(function* () {
      const { name, url } = yield* login("in role practice_data_intake")
      const all = yield* of(url)
      has(all, "fail", /cannot read records, which this process does: it lacks SELECT on api_keys/)
      has(all, "fail", "cannot run deletions")
      assert.include(
        all.map(({ advice }) => advice),
        `grant practice_data_api to ${name}`
      )
      const own = yield* of(url, { ROLES: "intake" })
      isFine(own)
      has(own, "ok", `The login ${name} may: take deliveries in.`)
    })
  )

  it.effect("tells whether keys may be looked up that have a database of their own", () =>
    Effect.gen(function* () {
      const { url, name } = yield* login("in role practice_data_intake")
      has(yield* keys(url), "fail", `The login ${name} cannot look API keys up`)
      const own = yield* login("in role practice_data_api")
      yield* during("alter table pets rename to away", "alter table away rename to pets")
      isFine(yield* keys(own.url))
    })
  )

  it.effect("tells of roles that may do too much, and of roles without grants", () =>
    Effect.gen(function* () {
      yield* during(
        "grant delete on pets to practice_data_api, practice_data_worker",
        "revoke delete on pets from practice_data_api, practice_data_worker"
      )
      const excess = yield* examine()
      has(excess, "warn", "The role practice_data_api may do more than it should: DELETE on pets.")
      has(excess, "warn", "The role practice_data_worker may do more than it should: DELETE on pets.")
      yield* during(
        "revoke select on all tables in schema public from practice_data_intake",
        "grant select on deletion_tasks, intake_secrets, migrations to practice_data_intake; grant select (organization_id) on organizations to practice_data_intake"
      )
      has(
        yield* examine(),
        "fail",
        "The role practice_data_intake lacks SELECT on deletion_tasks, SELECT on intake_secrets, SELECT on migrations, SELECT on organizations."
      )
    })
  )

  it.effect("tells of too few connections: of the server, of the login, and of what is left", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      has(yield* examine({ DATABASE_POOL_SIZE: "1000" }), "fail", /needs 3000 connections, and the server takes \d+/)
      const [room] = yield* sql<{ all: number }>`
        select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
          - current_setting('reserved_connections')::int as all`
      const third = String(Math.floor((room?.all ?? 0) / 3))
      has(yield* examine({ DATABASE_POOL_SIZE: third }), "warn", /needs \d+ connections; \d+ of \d+ are free/)
      const { name, url } = yield* login("superuser connection limit 5")
      has(yield* of(url), "fail", `the login ${name} may open 5`)
    })
  )

  it.effect("tells of deletions that are late and that are dead", () =>
    Effect.gen(function* () {
      yield* during(
        `${task("1", "scheduled", "now() - interval '90 s'")}; ${task("2", "dead", "null")}`,
        "delete from deletion_tasks"
      )
      const findings = yield* examine()
      has(findings, "warn", /A deletion has been due for 9\d seconds/)
      has(findings, "warn", "1 deletion is dead")
    })
  )

  it.effect("tells who holds changes back only as far as the login sees it, and what lets it see more", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const { name, url } = yield* login("in role practice_data_api")
      const reads = { ROLES: "data-api" }
      isFine(yield* of(url, reads))
      const held = Effect.andThen(sql`select pg_current_xact_id()::text`, of(url, reads))
      const hidden = (yield* sql.withTransaction(held)).find(({ message }) => message.includes("hold back"))
      assert.include(hidden?.message, "This login cannot see since when")
      assert.strictEqual(hidden?.advice, `grant pg_read_all_stats to ${name}`)
      yield* sql.unsafe(hidden?.advice ?? "")
      isFine(yield* sql.withTransaction(held))
    })
  )

  // What takes minutes to come about is put in the place of the system's.
  it.effect("tells of transactions that stay open, and of a clock that goes wrong", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const own = new URL(url)
      own.searchParams.set("options", "-c search_path=public,pg_catalog")
      yield* during(
        `create view pg_stat_activity as select pid, usename, datname, application_name, '1'::xid as backend_xid,
          now() - interval '2 minutes' as xact_start from pg_catalog.pg_stat_activity where pid <> pg_backend_pid()`,
        "drop view public.pg_stat_activity"
      )
      has(yield* of(own.href), "warn", /The transaction of process \d+ .+ has been open for 120 seconds/)
      yield* during(
        `create view pg_prepared_xacts as select 'forgotten' as gid, now() - interval '1 hour' as prepared`,
        "drop view public.pg_prepared_xacts"
      )
      has(yield* of(own.href), "warn", "The prepared transaction forgotten has been open for 3600 seconds")
      yield* during(
        "create function clock_timestamp() returns timestamptz language sql return pg_catalog.clock_timestamp() - interval '10 s'",
        "drop function public.clock_timestamp"
      )
      has(yield* of(own.href), "warn", /^Its clock is (9\.9|10\.0|10\.1) s behind this machine's/)
      yield* during(
        "create or replace function clock_timestamp() returns timestamptz language sql return pg_catalog.clock_timestamp() + interval '2 h'",
        "select 1"
      )
      has(yield* of(own.href), "fail", /^Its clock is .+ s ahead of this machine's/)
    })
  )
})
