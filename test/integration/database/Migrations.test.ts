/** Migrations apply once, by their names, also if several processes apply them at the same time. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Logger } from "effect"
import { SqlClient } from "effect/sql"
import * as Migrations from "../../../src/database/Migrations.ts"
import { eventually } from "../../support/eventually.ts"
import { clientOf, emptyDatabase, TestDatabase } from "../../support/TestDatabase.ts"

const { migrate, missing, requireMigrated, script } = Migrations
const files = Object.keys(Migrations.all)
const empty = Effect.flatMap(emptyDatabase, (url) => clientOf(url))

const messageOf = (sql: Effect.Success<typeof empty>) =>
  Effect.match(requireMigrated("The database", sql), { onFailure: ({ message }) => message, onSuccess: () => "" })

const table = (name: string) => script(`create table ${name} ()`)

layer(TestDatabase.layerDatabases, { excludeTestServices: true, concurrent: true })("migrations", (it) => {
  it.effect("that are not recorded are missing, apply once, and a role that sees none needs none", () =>
    Effect.gen(function* () {
      const sql = yield* empty
      assert.deepStrictEqual(yield* missing(sql), { isEmpty: true, names: files })
      assert.strictEqual(yield* messageOf(sql), "The database is not migrated. Run: npm run cli -- migrate")
      assert.deepStrictEqual(yield* migrate(sql), files)
      assert.isTrue(yield* Migrations.isMigrated(sql))
      const recorded = yield* sql`select * from migrations order by name`
      assert.deepStrictEqual(yield* migrate(sql), [])
      assert.deepStrictEqual(yield* sql`select * from migrations order by name`, recorded)

      yield* sql`delete from migrations where name <> ${files[1]}`
      assert.deepStrictEqual(yield* missing(sql), { isEmpty: false, names: files.toSpliced(1, 1) })
      const older = `The database lacks the migrations ${files.toSpliced(1, 1).join(", ")}. Run: npm run cli -- migrate`
      assert.strictEqual(yield* messageOf(sql), older)
      yield* sql`revoke select on migrations from practice_data_worker`
      yield* sql`set role practice_data_worker`
      assert.strictEqual(yield* messageOf(sql), "")
    })
  )

  it.effect.each(["LATIN1", "SQL_ASCII"])("refuse a database of %s, and make nothing", (encoding) =>
    Effect.gen(function* () {
      const url = new URL(yield* emptyDatabase)
      const { sql } = yield* TestDatabase
      url.pathname += `_${encoding.toLowerCase()}`
      yield* sql.unsafe(`create database ${url.pathname.slice(1)} encoding '${encoding}'
        template template0 lc_collate 'C' lc_ctype 'C' strategy file_copy`)
      const other = yield* clientOf(url.href)
      const { message } = yield* Effect.flip(migrate(other))
      const says = `^The encoding of the database is ${encoding}, .+: create database NAME .+'UTF8'`
      assert.match(message, new RegExp(says))
      assert.lengthOf(yield* other`select from pg_class where relnamespace = 'public'::regnamespace`, 0)
    })
  )

  it.effect("last longer than the database lets a transaction last", () =>
    Effect.gen(function* () {
      const sql = yield* empty
      yield* sql`
        select set_config(name, '200ms', false) from pg_settings where name in ('statement_timeout', 'transaction_timeout')`
      assert.deepStrictEqual(yield* migrate(sql, { slow: script("select pg_sleep(0.5)") }), ["slow"])
    })
  )

  it.effect("are waited for, with one warning", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const [last = ""] = files.slice(-1)
      yield* sql`update migrations set name = 'other' where name = ${last}`
      const messages: Array<unknown> = []
      const log = Logger.layer([Logger.make<unknown, void>(({ message }) => void messages.push(message))])
      const waiting = yield* Effect.forkChild(Effect.provide(Migrations.untilMigrated("The database", sql), log))
      yield* eventually("a warning", () => messages.length > 0)
      const lacks = `The database lacks the migrations ${last}. Run: npm run cli -- migrate`
      assert.deepStrictEqual(messages.flat(), [lacks])
      yield* sql`update migrations set name = ${last} where name = 'other'`
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(messages.flat().slice(1), ["The database is migrated"])
    })
  )

  it.effect("apply once when several processes migrate two databases of a server at once", () =>
    Effect.gen(function* () {
      const urls = [yield* emptyDatabase, yield* emptyDatabase]
      const clients = yield* Effect.forEach([...urls, ...urls], (url) => clientOf(url))
      const applied = yield* Effect.forEach(clients, (sql) => migrate(sql), { concurrency: "unbounded" })
      assert.deepStrictEqual(applied.flat().toSorted(), [...files, ...files].toSorted())
    })
  )

  it.effect("that fail leave nothing behind, and can be tried again", () =>
    Effect.gen(function* () {
      const sql = yield* empty
      yield* sql`create table charge_refunds (in_the_way integer)`
      const first = Object.fromEntries(Object.entries(Migrations.all).slice(0, 1))
      yield* Effect.flip(migrate(sql, first))
      assert.lengthOf(yield* sql`select 1 from pg_tables where schemaname = 'public'`, 1)
      yield* sql`drop table charge_refunds`
      assert.deepStrictEqual(yield* migrate(sql, first), files.slice(0, 1))
    })
  )

  it.effect("are applied in the order of their list, whatever their names and what is recorded", () =>
    Effect.gen(function* () {
      const sql = yield* empty
      const first = { "00001_first": table("first"), "00020_next": table("next") }
      yield* migrate(sql, { ...first, "90001_own": table("own") })
      const later = { ...first, "00019_later": table("later"), "99999_last": table("last") }
      assert.deepStrictEqual(yield* migrate(sql, later), ["00019_later", "99999_last"])
    })
  )

  it.effect("revoke what others are granted, by default or since, and the right to connect", () =>
    Effect.gen(function* () {
      const [sql, other] = [yield* empty, `other_${process.pid}`]
      yield* Effect.acquireRelease(sql.unsafe(`create role ${other}`), () =>
        Effect.orDie(Effect.andThen(sql.unsafe(`drop owned by ${other}`), sql.unsafe(`drop role ${other}`)))
      )
      for (const objects of ["tables", "functions"])
        yield* sql.unsafe(`alter default privileges grant all on ${objects} to ${other}`)
      yield* migrate(sql)
      const may = sql`
        select oid::regclass::text from pg_class where relkind in ('r', 'v') and relnamespace = 'public'::regnamespace
          and has_table_privilege(${other}, oid, 'select, insert, update, delete, truncate, references, trigger')
        union all select oid::regproc::text from pg_proc where prosecdef and pronamespace = 'public'::regnamespace
          and has_function_privilege(${other}, oid, 'execute')
        union all select datname from pg_database
          where datname = current_database() and has_database_privilege(${other}, oid, 'connect')`
      assert.deepStrictEqual(yield* may, [])
      const granted = script(`grant select on api_keys to ${other}; grant execute on function change_begin to public`)
      yield* Effect.provideService(granted, SqlClient.SqlClient, sql)
      yield* migrate(sql)
      assert.deepStrictEqual(yield* may, [])
    })
  )

  it.effect("name the roles by a prefix, and say what a login that may create none has to ask for", () =>
    Effect.gen(function* () {
      const [url, prefix] = [new URL(yield* emptyDatabase), `prefix_${process.pid}`]
      const [admin, owner] = [yield* clientOf(url.href), `${prefix}_owner`]
      yield* admin.unsafe(`create role ${owner} login password 'secret'`)
      yield* admin.unsafe(`alter database ${url.pathname.slice(1)} owner to ${owner}`)
      const sql = yield* clientOf(Object.assign(url, { username: owner, password: "secret" }).href)
      const { message } = yield* Effect.flip(migrate(sql, Migrations.all, prefix))
      const [, statements = ""] = message.split(`The login ${owner} may not create roles. As one that may, run: `)
      yield* Effect.provideService(script(statements), SqlClient.SqlClient, admin)
      assert.deepStrictEqual(yield* migrate(sql, Migrations.all, prefix), files)
      assert.isUndefined(yield* Migrations.grantNeeded(sql))
      assert.deepStrictEqual(yield* admin`select has_table_privilege(${`${prefix}_api`}, 'charges', 'select') as may`, [
        { may: true }
      ])
      yield* admin.unsafe(`revoke ${prefix}_api from ${owner}`)
      const needed = yield* Migrations.grantNeeded(sql)
      assert.match(needed ?? "", /^grant prefix_\d+_api, .+ to prefix_\d+_owner with admin option$/)
    })
  )
})
