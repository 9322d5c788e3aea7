/**
 * The feed of changes after a restore, where transaction ids mean something else, and where records are written by logical
 * replication; and a delivery while the synchronous standby is lost.
 *
 * @module-tag long
 */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Array, Duration, Effect, Fiber, Random } from "effect"
import { type Database, TaskDatabase } from "../../../src/database/Database.ts"
import { makeScheduler } from "../../../src/deletions/Scheduler.ts"
import { clinics } from "../../../src/api/records/Organizations.ts"
import * as LocalPostgres from "../../support/LocalPostgres.ts"
import * as Cluster from "./Cluster.ts"
import * as Changes from "../../support/changes.ts"
import { delivery } from "../../support/deletions/tasks.ts"
import { clientOf } from "../../support/TestDatabase.ts"
import * as Tools from "../../support/Tools.ts"
import { eventually } from "../../support/eventually.ts"

const insert = (sql: Database, from: number, to: number) =>
  sql.unsafe(`insert into pets (organization_id, id, name)
    select '${Changes.organization}', 'pet_' || n, 'name ' || n from generate_series(${from}, ${to}) n`)

/** Pets, written in several transactions, and some removed; ids that are far above those of a new cluster. */
const fill = Effect.fnUntraced(function* (cluster: Cluster.Cluster) {
  const { sql } = cluster
  yield* Cluster.useIds(cluster, 5000)
  yield* insert(sql, 1, 300)
  yield* sql`update pets set name = 'again' where id < 'pet_2'`
  yield* sql`delete from pets where id like 'pet_9%'`
  yield* sql`insert into clinics (organization_id, id) values (${Changes.organization}, 'clinic_1')`
})

/** A reader that has everything. */
const readAll = (from: Changes.Service, resource?: typeof clinics) => {
  const reader = Changes.follower(from, resource)
  return Effect.as(reader.drain(), reader)
}

/** Later changes are told to those that have read all. */
const tellsChanges = Effect.fnUntraced(function* (readers: ReadonlyArray<Changes.Follower>, sql: Database) {
  yield* insert(sql, 1001, 1010)
  yield* sql`update pets set name = 'later' where id in ('pet_5', 'pet_1003')`
  yield* sql`delete from pets where id = 'pet_7'`
  yield* Effect.forEach(readers, (reader) => reader.isEqual(sql, { gone: reader.gone() }))
})

const withTools = it.live.skipIf(Tools.binaries === undefined)
const made = Cluster.make({ binaries: Tools.binaries })

withTools(Tools.named("pg_restore --jobs=4 into a fresh cluster beside a running service"), () =>
  Effect.gen(function* () {
    const source = yield* made
    yield* fill(source)
    const old = yield* readAll(yield* Changes.service(source))
    const file = join(yield* LocalPostgres.enterableFolder, "dump")
    yield* Tools.run("pg_dump", "-d", source.url, "-Fc", "-f", file)
    const target = yield* Cluster.empty({ binaries: Tools.binaries })
    for (const role of ["api", "intake", "worker", "writer"])
      yield* target.sql.unsafe(`create role practice_data_${role} nologin`)
    const service = yield* Changes.service(target)
    const early = Changes.follower(service)
    const polling = yield* Effect.forkChild(Effect.forever(Effect.andThen(early.step(50), Effect.sleep(5))))
    yield* Tools.run("pg_restore", "-d", target.url, "--jobs=4", file)
    const reader = Changes.follower(service)
    yield* reader.isEqual(target.sql, { limit: 70 })
    assert.isAbove(reader.copy.size, 200)
    yield* old.move(service)
    yield* old.isEqual(target.sql, { gone: 1 })
    yield* Fiber.interrupt(polling)
    yield* early.drain()
    yield* tellsChanges([reader, old, early], target.sql)
  })
)

/** What is dumped of the table, what happens to it, how it is restored, and how often its reader starts again. */
const restores = [
  ["A table that is dropped and restored alone", [], "drop table pets", [], 1],
  ["Data alone that is restored", ["--data-only"], "delete from pets", [], 0],
  ["Data alone that is restored without triggers", ["--data-only"], "delete from pets", ["--disable-triggers"], 1]
] as const

for (const [name, parts, loss, flags, gone] of restores) {
  withTools(Tools.named(`${name}: the cursors of others are not gone, its own are ${gone} times`), () =>
    Effect.gen(function* () {
      const source = yield* made
      yield* fill(source)
      const service = yield* Changes.service(source)
      const old = yield* readAll(service)
      const other = yield* readAll(service, clinics)
      const file = join(yield* LocalPostgres.enterableFolder, "dump")
      yield* Tools.run("pg_dump", "-d", source.url, "-Fc", "-t", "pets", ...parts, "-f", file)
      yield* insert(source.sql, 2001, 2005)
      yield* old.isEqual(source.sql)
      yield* source.sql.unsafe(loss)
      yield* Tools.run("pg_restore", "-d", source.url, ...flags, file)
      // It does so each second, and finds that triggers were disabled.
      yield* service.clock.tick
      yield* other.isEqual(source.sql)
      yield* old.isEqual(source.sql, { gone, limit: 70 })
      yield* tellsChanges([old], source.sql)
      yield* source.sql`insert into clinics (organization_id, id) values (${Changes.organization}, 'clinic_2')`
      yield* other.isEqual(source.sql)
    })
  )
}

/** Writes and removes pets until it is interrupted. */
const write = ({ sql }: Cluster.Cluster) =>
  Effect.forever(
    Effect.gen(function* () {
      const [id, kind] = [`pet_${yield* Random.nextIntBetween(0, 30)}`, yield* Random.nextIntBetween(0, 4)]
      yield* kind === 0 ? sql`delete from pets where id = ${id}` : sql.unsafe(Changes.put(id, `name ${kind}`))
      yield* Effect.sleep(2)
    })
  )

it.live("What is replicated into the tables is told: the first copy, the stream and TRUNCATE", () =>
  Effect.gen(function* () {
    const publisher = yield* Cluster.make()
    const subscriber = yield* Cluster.make({ isNew: true })
    const far = yield* Changes.service(subscriber)
    // Its positions would never be reached by the other one.
    yield* Cluster.useIds(publisher, 20_000)
    yield* Effect.timeoutOption(write(publisher), 500)
    yield* publisher.sql`create publication records for table pets, clinics`
    // A subscription that keeps the times of its publisher.
    yield* subscriber.sql`alter database postgres set practice_data.keep_times = on`
    yield* subscriber.sql.unsafe(
      `create subscription records connection '${Cluster.connectionTo(publisher)} dbname=postgres' publication records`
    )
    const isLevel = eventually(
      "a subscriber that has all",
      Effect.forEach(
        [publisher, subscriber],
        ({ sql }) => sql<{ all: string }>`select md5(string_agg(record, ',' order by id)) as all from pets`
      ),
      (found) => new Set(found.flat().map(({ all }) => all)).size === 1
    )
    const [reader, late] = [Changes.follower(far), Changes.follower(far)]
    const writing = yield* Effect.forkChild(write(publisher))
    const readOn = Effect.forEach(Array.range(1, 40), (step) => Effect.delay(reader.step(1 + (step % 6)), 25))
    yield* readOn
    // Apply workers commit asynchronously unless they are told otherwise: a crash loses what nobody has seen.
    yield* subscriber.stopImmediately
    yield* subscriber.start
    yield* readOn
    yield* Fiber.interrupt(writing)
    yield* isLevel
    for (const each of [reader, late]) yield* each.isEqual(publisher.sql, { gone: 0 })
    yield* publisher.sql`truncate pets`
    yield* isLevel
    yield* reader.isEqual(publisher.sql, { gone: 1 })
  })
)

it.live("A repetition does not confirm a delivery that a synchronous standby lacks", () =>
  Effect.gen(function* () {
    const { sql, url } = yield* Cluster.make()
    const client = yield* clientOf(url, { maxConnections: 2, statementTimeout: "5 seconds" })
    const { schedule } = yield* Effect.provideService(makeScheduler(Duration.hours(1)), TaskDatabase, client)
    const wants = Effect.fnUntraced(function* (standby: string) {
      yield* sql.unsafe(`alter system set synchronous_standby_names = '${standby}'`)
      yield* sql`select pg_reload_conf()`
      const shown = sql<{ name: string }>`select current_setting('synchronous_standby_names') as name`
      yield* eventually("the setting", shown, ([row]) => row?.name === standby)
    })
    yield* wants("lost")
    for (const time of ["first", "second"])
      assert.strictEqual((yield* Effect.flip(schedule(delivery("one"))))._tag, "SchedulerUnavailable", time)
    assert.lengthOf(yield* sql`select from deletion_tasks`, 1)
    yield* wants("")
    assert.strictEqual((yield* schedule(delivery("one"))).status, "duplicate")
  })
)
