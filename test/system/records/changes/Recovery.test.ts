/**
 * The feed of changes after a recovery to a point in time, in a copy with another identifier, after crashes and failovers,
 * and after the files of a cluster were put back: it has the same identifier and timeline, and gives the same transaction
 * ids again.
 *
 * @module-tag long
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Cluster from "../../../support/Cluster.ts"
import * as Follower from "../../../support/Follower.ts"

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
    yield* early.drain(service)
    yield* Effect.sleep(2200)
    yield* run(put("c", "kept"))
    const [point] = yield* cluster.sql<{ lsn: string }>`select pg_current_wal_insert_lsn()::text as lsn`
    for (let n = 0; n < 20; n++) yield* run(put(`lost_${n}`, "lost"))
    yield* run(`delete from pets where id = 'a'`)
    const late = Follower.make()
    yield* late.drain(service)
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
    yield* Follower.goesOn(early, after, recovered.sql, { limit: 7 })
    yield* Follower.goesOn(late, after, recovered.sql, { gone: 1, limit: 7 })
    for (const { copy } of [early, late]) assert.isTrue(copy().has("a") && copy().has("c"))
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
    yield* sql`insert into clinics (organization_id, id, record, change_position) values (${Follower.organization}, 'restored', '{}', 1000000000)`
    yield* sql`alter table clinics enable trigger all`
    yield* service.clock.tick
    const [base] = yield* sql<{ base: number }>`select change_base()::float8 as base`
    assert.isAbove(base?.base ?? 0, 1_000_000_000)
    // One that comes after it has no plan from before.
    const other = yield* sql.reserve
    yield* other.executeUnprepared(put("c", "second"), [], undefined)
    const later = yield* Follower.service(cluster)
    yield* reader.drain(later)
    yield* write("a", "second")
    yield* write("b", "second")
    for (const from of [service, later]) yield* Follower.goesOn(reader, from, sql)
  })
)

for (const [how, isStopped] of [
  ["A copy of a stopped server", true],
  ["A volume's snapshot of a running server, and it is served again only later,", false]
] as const) {
  it.live(`${how} is put back: readers of what is lost get 410, and the others go on`, () =>
    Effect.gen(function* () {
      const cluster = yield* Cluster.make()
      const run = (text: string) => cluster.sql.unsafe(text)
      const [early, late, latest] = [Follower.make(), Follower.make(), Follower.make()]
      yield* Effect.gen(function* () {
        const service = yield* Follower.service(cluster)
        yield* run(put("a", "first"))
        yield* run(put("b", "first"))
        yield* late.drain(service)
        yield* early.drain(service)
      }).pipe(Effect.scoped)
      if (isStopped) yield* cluster.stop
      const copy = yield* cluster.snapshot
      if (isStopped) yield* cluster.start

      const restore = Effect.gen(function* () {
        yield* cluster.kill
        yield* cluster.putBack(copy)
        yield* cluster.start
      })
      const lose = Effect.gen(function* () {
        const service = yield* Follower.service(cluster)
        for (let n = 0; n < 5; n++) yield* run(put(`lost_${n}`, "lost"))
        yield* late.drain(service)
        yield* run(`delete from pets where id = 'a'`)
        yield* latest.drain(service)
        if (isStopped) yield* restore
      })
      yield* Effect.scoped(lose)
      if (!isStopped) yield* restore
      // The ids that were lost are given again, and more.
      for (let n = 0; n < 30; n++) yield* run(put(`again_${n % 25}`, `again ${n}`))
      const after = yield* Follower.service(cluster)
      yield* Follower.goesOn(early, after, cluster.sql)
      for (const reader of [late, latest]) yield* Follower.goesOn(reader, after, cluster.sql, { gone: 1 })
    })
  )
}

it.live(
  "Restarts and crashes end no cursor, also where a transaction that stays open keeps the marks from proving much",
  () =>
    Effect.gen(function* () {
      const cluster = yield* Cluster.make()
      const service = yield* Follower.service(cluster)
      const reader = Follower.make()
      yield* reader.drain(service)
      for (const [n, end] of [cluster.stop, cluster.kill, cluster.stop, cluster.kill, cluster.kill].entries()) {
        yield* Effect.gen(function* () {
          const reserved = yield* cluster.sql.reserve
          yield* cluster.sql.unsafe(put(`before_${n}`, "written"))
          yield* reserved.executeUnprepared("begin", [], undefined)
          yield* reserved.executeUnprepared(put(`open_${n}`, "lost"), [], undefined)
          yield* cluster.sql.unsafe(put(`after_${n}`, "written"))
          yield* reader.drain(service)
          yield* end
        }).pipe(Effect.scoped)
        yield* cluster.start
        yield* cluster.sql.unsafe(put(`next_${n}`, "written"))
        yield* Follower.goesOn(reader, service, cluster.sql)
      }
      assert.lengthOf(yield* cluster.sql`select timeline from change_marks`, 6)
    })
)

for (const end of ["A crash", "A failover"]) {
  it.live(`${end} that loses nothing ends no cursor, also where half a record of the write-ahead log is left`, () =>
    Effect.gen(function* () {
      const primary = yield* Cluster.make({ settings: { wal_writer_delay: "10ms" } })
      const standby = yield* Cluster.standbyOf(primary)
      const reader = Follower.make()
      yield* primary.sql.unsafe(put("a", "first"))
      // Marks only once: what is seen after it is proven by its place in the log.
      const first = yield* Follower.service(primary, false)
      yield* first.clock.tick
      yield* reader.drain(first)
      yield* primary.sql.unsafe(put("b", "seen"))
      yield* Cluster.leaveHalfARecord(primary)
      yield* reader.drain(yield* Follower.service(primary, false))
      yield* Cluster.received(standby, primary)
      yield* primary.kill
      const after = end === "A crash" ? primary : standby
      yield* after === primary ? primary.start : Cluster.promote(standby)
      yield* after.sql.unsafe(put("c", "next"))
      yield* Follower.goesOn(reader, yield* Follower.service(after), after.sql)
    })
  )
}
