/**
 * The feeds of changes after a recovery to a point in time, in a copy with another identifier, and after crashes.
 *
 * @module-tag long
 */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Random } from "effect"
import { layerShared } from "../../../../src/database/Database.ts"
import * as ApiKeys from "../../../../src/keys/ApiKeys.ts"
import * as Cluster from "../../../support/Cluster.ts"
import * as Follower from "../../../support/Follower.ts"
import * as Ledger from "../../../support/Ledger.ts"
import * as Program from "../../../support/Program.ts"
import * as Writers from "../../../support/Writers.ts"

const { put } = Follower

it.live("A recovery to a point in time: cursors from before go on, those from what was taken back are gone", () =>
  Effect.gen(function* () {
    const archive = yield* Cluster.newFolder
    const cluster = yield* Cluster.make({
      settings: { archive_mode: "on", archive_command: `mkdir -p ${archive} && cp %p ${archive}/%f` }
    })
    const service = yield* Follower.service(cluster)
    const run = (text: string) => cluster.sql.unsafe(text)
    yield* run(put("a", "first"))
    const backup = yield* Cluster.backUp(cluster)
    const early = Follower.make()
    yield* run(put("b", "first"))
    yield* Follower.settled(early, service)
    yield* Effect.sleep(2200)
    yield* run(put("c", "kept"))
    const [point] = yield* cluster.sql<{ lsn: string }>`select pg_current_wal_insert_lsn()::text as lsn`
    for (let n = 0; n < 20; n++) yield* run(put(`lost_${n}`, "lost"))
    yield* run(`delete from pets where id = 'a'`)
    const late = Follower.make()
    yield* Follower.settled(late, service)
    yield* run("select pg_switch_wal()::text")
    yield* cluster.kill

    const recovered = yield* Cluster.start(backup, {
      restore_command: `cp ${archive}/%f %p || cp ${cluster.folder}/pg_wal/%f %p`,
      recovery_target_lsn: point?.lsn ?? "",
      recovery_target_action: "promote",
      archive_mode: "off"
    })
    const after = yield* Follower.service(recovered)
    yield* Cluster.untilWritable(recovered)
    for (let n = 0; n < 30; n++) yield* recovered.sql.unsafe(put(`again_${n % 25}`, `again ${n}`))
    for (const [reader, gone] of [
      [early, 0],
      [late, 1]
    ] as const) {
      yield* reader.drain(after, 7)
      yield* Follower.assertEqual(reader, recovered.sql)
      assert.strictEqual(reader.gone(), gone)
      assert.isTrue(reader.state().copy.has("a") && reader.state().copy.has("c"))
    }
  })
)

it.live("A new base of positions is noticed by the sessions that wrote and read before", () =>
  Effect.gen(function* () {
    const cluster = yield* Cluster.make()
    const { sql } = cluster
    const service = yield* Follower.service(cluster)
    const reader = Follower.make()
    const session = yield* sql.reserve
    const write = (id: string, name: string) => session.executeUnprepared(put(id, name), [], undefined)
    for (let n = 0; n < 10; n++) {
      yield* write("a", `first ${n}`)
      yield* reader.drain(service)
    }
    yield* sql`alter table clinics disable trigger all`
    yield* sql`insert into clinics (organization_id, id, change_position) values (${Follower.organization}, 'restored', 1000000000)`
    yield* sql`alter table clinics enable trigger all`
    yield* service.clock.keep
    const [base] = yield* sql<{ base: number }>`select change_base()::float8 as base`
    assert.isAbove(base?.base ?? 0, 1_000_000_000)
    // One that comes after it has no plan from before.
    const other = yield* sql.reserve
    yield* other.executeUnprepared(put("c", "second"), [], undefined)
    const later = yield* Follower.service(cluster)
    yield* reader.drain(later)
    yield* write("a", "second")
    yield* write("b", "second")
    for (const from of [service, later]) {
      yield* reader.drain(from)
      yield* Follower.assertEqual(reader, sql)
    }
    assert.strictEqual(reader.gone(), 0)
  }).pipe(Effect.scoped)
)

it.live("What a reader has seen of a session that asks for asynchronous commits is there after a crash", () =>
  Effect.gen(function* () {
    const cluster = yield* Cluster.make({ settings: { wal_writer_delay: "10s" } })
    const { sql } = cluster
    const reader = Follower.make()
    yield* sql.unsafe(put("a", "first"))
    yield* Follower.settled(reader, yield* Follower.service(cluster))
    yield* sql.unsafe("alter system set synchronous_commit = off").unprepared
    for (let crash = 0; crash < 3; crash++) {
      yield* cluster.kill
      yield* cluster.start
      const service = yield* Follower.service(cluster, cluster, false)
      for (let n = 0; n < 4; n++) yield* sql.unsafe(put(`seen_${crash}_${n}`, "seen"))
      yield* sql.unsafe(`delete from pets where id = 'seen_${crash}_1'`)
      yield* reader.drain(service)
      yield* cluster.kill
      yield* cluster.start
      for (let n = 0; n < 3; n++) yield* sql.unsafe(put(`next_${crash}_${n}`, "next"))
      yield* reader.drain(service)
      yield* Follower.assertEqual(reader, sql)
      assert.strictEqual(reader.gone(), 0)
    }
  })
)

it.live(
  "The service and Postgres killed with -9 at random, under writers: a reader over HTTP loses nothing, and goes on",
  () =>
    Effect.gen(function* () {
      const cluster = yield* Cluster.make()
      const { key } = yield* ApiKeys.create({ organization: Follower.organization, name: "Reader" }).pipe(
        Effect.provide(layerShared(cluster.sql))
      )
      const writing = yield* Effect.forkChild(Writers.write(cluster.sql))
      const reader = Follower.make()
      const readFor = Effect.fnUntraced(function* (millis: number) {
        const program = yield* Ledger.start("data-api", cluster.url)
        const source = Follower.overHttp(program.client, key)
        const reading = Effect.forever(Effect.andThen(reader.step(source, 5), Effect.sleep(5)))
        yield* Effect.timeoutOption(reading, millis)
        if ((yield* Random.nextIntBetween(0, 2)) === 0) {
          yield* cluster.kill
          yield* cluster.start
          yield* Effect.timeoutOption(reading, 300)
        }
        // It may be in the middle of an answer.
        yield* Effect.raceFirst(reading, Program.kill(program))
      }, Effect.scoped)
      for (let life = 0; life < 5; life++) yield* readFor(yield* Random.nextIntBetween(200, 1500))
      yield* Fiber.interrupt(writing)
      const program = yield* Ledger.start("data-api", cluster.url)
      yield* Follower.settled(reader, Follower.overHttp(program.client, key))
      yield* Follower.assertEqual(reader, cluster.sql)
      assert.strictEqual(reader.gone(), 0)
      assert.isAbove(reader.state().copy.size, 0)
    })
)
