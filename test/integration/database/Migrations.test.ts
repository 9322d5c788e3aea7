/** Migrations apply once, in order, whoever applies them at the same time. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Logger } from "effect"
import * as Migrations from "../../../src/database/Migrations.ts"
import { addField } from "../../../src/database/migrations/addField.ts"
import { eventually } from "../../support/eventually.ts"
import { clientOf, emptyDatabase, newLogin, TestDatabase } from "../../support/TestDatabase.ts"
import { microchip } from "./microchip.ts"

const { migrate, missing, requireMigrated } = Migrations
const files = Object.keys(Migrations.all)
const empty = Effect.flatMap(emptyDatabase, (url) => clientOf(url))

const messageOf = (sql: Effect.Success<typeof empty>) =>
  Effect.match(requireMigrated("The database", sql), { onFailure: ({ message }) => message, onSuccess: () => "" })

const unmigrated = "The database is not migrated. Run: npm run cli -- migrate"

layer(TestDatabase.layerDatabases, { excludeTestServices: true, concurrent: true })("migrations", (it) => {
  it.effect("are missing above the last recorded one, apply once, and are not required of a role that sees none", () =>
    Effect.gen(function* () {
      const sql = yield* empty
      assert.deepStrictEqual(yield* missing(sql), { isEmpty: true, files })
      assert.strictEqual(yield* messageOf(sql), unmigrated)
      assert.deepStrictEqual(yield* migrate(sql), files)
      assert.isTrue(yield* Migrations.isMigrated(sql))
      const recorded = yield* sql`select * from migrations order by migration_id`
      assert.deepStrictEqual(yield* migrate(sql), [])
      assert.deepStrictEqual(yield* sql`select * from migrations order by migration_id`, recorded)

      yield* sql`delete from migrations where migration_id > 1`
      assert.deepStrictEqual(yield* missing(sql), { isEmpty: false, files: files.slice(1) })
      const older = `The database lacks the migrations ${files.slice(1).join(", ")}. Run: npm run cli -- migrate`
      assert.strictEqual(yield* messageOf(sql), older)
      yield* sql`revoke select on migrations from practice_data_worker`
      yield* sql`set role practice_data_worker`
      assert.strictEqual(yield* messageOf(sql), "")
    })
  )

  it.effect("name the role that may not make tables, and what to run", () =>
    Effect.gen(function* () {
      const { name, url } = yield* newLogin("worker")
      const sql = yield* clientOf(
        Object.assign(new URL(url), { pathname: new URL(yield* emptyDatabase).pathname }).href
      )
      const { message } = yield* Effect.flip(migrate(sql))
      assert.match(message, new RegExp(`^The role ${name} may not create tables in public. .*owner to ${name}$`))
    })
  )

  it.effect("are waited for, with one warning", () =>
    Effect.gen(function* () {
      const sql = yield* empty
      const messages: Array<unknown> = []
      const log = Logger.layer([Logger.make<unknown, void>(({ message }) => void messages.push(message))])
      const waiting = yield* Effect.forkChild(Effect.provide(Migrations.untilMigrated("The database", sql), log))
      yield* eventually("a warning", () => messages.length > 0)
      yield* Effect.sleep("600 millis")
      assert.deepStrictEqual(messages.flat(), [unmigrated])
      yield* migrate(sql)
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(messages.flat().slice(1), ["The database is migrated"])
    })
  )

  it.effect("apply once when several processes migrate two databases of a server, which share the roles, at once", () =>
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

  it.effect("are not stopped by an older row with an empty id, nor is one that adds a field later", () =>
    Effect.gen(function* () {
      const sql = yield* empty
      const ids = files.indexOf("00018_ids")
      yield* migrate(sql, Object.fromEntries(Object.entries(Migrations.all).slice(0, ids)))
      yield* sql`insert into pets (organization_id, id) values ('org_a', '')`
      const later = { ...Migrations.all, "90001_microchip": addField(microchip) }
      assert.deepStrictEqual(yield* migrate(sql, later), [...files.slice(ids), "90001_microchip"])
      assert.lengthOf(yield* sql`update pets set id = 'pet_a' where id = '' returning id`, 1)
    })
  )
})
