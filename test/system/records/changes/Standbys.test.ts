/**
 * The feeds of changes beside standbys: how far they are behind, and after a failover to one that may have lacked the last
 * commits.
 *
 * @module-tag long
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "../../../support/eventually.ts"
import { inTime } from "../../../support/inTime.ts"
import * as Cluster from "../../../support/Cluster.ts"
import * as Follower from "../../../support/Follower.ts"

const { put } = Follower

const opened = Effect.gen(function* () {
  const cluster = yield* Cluster.make()
  const service = yield* Follower.service(cluster)
  yield* cluster.sql.unsafe(put("a"))
  yield* Follower.settled(Follower.make(), service)
  // Of what began before a process looked for the first time, it knows no more than that.
  yield* Effect.sleep(1200)
  const reserved = yield* cluster.sql.reserve
  const run = (text: string) => reserved.executeUnprepared(text, [], undefined)
  return { cluster, run, sql: cluster.sql }
})

const lagOf = (service: Follower.Service) => Effect.map(Follower.make().drain(service), ({ lag }) => lag)

/** The lag is an age, give or take a second. */
const isAbout = Effect.fnUntraced(function* (service: Follower.Service, seconds: number) {
  const lag = yield* lagOf(service)
  assert.isAtLeast(lag, seconds - 1)
  assert.isAtMost(lag, inTime(seconds + 1))
})

it.live("A transaction that stays open delays changes of others on a standby, and the lag says for how long", () =>
  Effect.gen(function* () {
    const { cluster, run, sql } = yield* opened
    const standby = yield* Cluster.standbyOf(cluster)
    const far = yield* Follower.service(cluster, standby)
    yield* Follower.settled(Follower.make(), far)
    yield* run("begin")
    yield* run(put("open"))
    yield* sql.unsafe(put("later"))
    yield* Effect.sleep(3000)
    yield* isAbout(far, 3)
    yield* run("commit")
    yield* eventually("a standby that has all", lagOf(far), (lag) => lag === 0)
  })
)

it.live(
  "A standby says how far it is behind: paused, delayed, or cut off from its primary; and 0 when it has all",
  () =>
    Effect.gen(function* () {
      const { cluster, sql } = yield* opened
      const standby = yield* Cluster.standbyOf(cluster)
      const far = yield* Follower.service(cluster, standby)
      const isLevel = eventually("a standby that has all", lagOf(far), (lag) => lag === 0)
      yield* isLevel
      // Nothing is written: it has all that there is.
      yield* Effect.sleep(3000)
      assert.strictEqual(yield* lagOf(far), 0)
      for (const [stop, goOn] of [
        [standby.sql`select pg_wal_replay_pause()`, standby.sql`select pg_wal_replay_resume()`],
        [Cluster.follow(standby, undefined), Cluster.follow(standby, cluster)]
      ] as const) {
        yield* stop
        yield* sql.unsafe(put(`lagging ${(yield* sql`select from pets`).length}`))
        yield* Effect.sleep(4000)
        yield* isAbout(far, 3)
        yield* goOn
        yield* isLevel
      }
    })
)

it.live("A standby whose primary no process has seen lags at least since a process has looked", () =>
  Effect.gen(function* () {
    const primary = yield* Cluster.make()
    yield* (yield* Follower.service(primary, primary, false)).clock.keep
    const standby = yield* Cluster.standbyOf(primary)
    yield* Cluster.caughtUp(standby, primary)
    yield* primary.stopImmediately
    const far = yield* Follower.service(primary, standby)
    yield* eventually("a lag that grows", lagOf(far), (lag) => lag >= 3)
  })
)

it.live("A reader of a standby goes on after a crash of the primary, also before there is a mark of its new run", () =>
  Effect.gen(function* () {
    const primary = yield* Cluster.make()
    const standby = yield* Cluster.standbyOf(primary)
    const service = yield* Follower.service(primary, standby, false)
    const reader = Follower.make()
    yield* primary.sql.unsafe(put("a", "first"))
    yield* Cluster.caughtUp(standby, primary)
    yield* reader.drain(service)
    yield* primary.kill
    yield* primary.start
    yield* primary.sql.unsafe(put("a", "second"))
    yield* Cluster.caughtUp(standby, primary)
    yield* reader.drain(service)
    yield* service.clock.keep
    yield* Cluster.caughtUp(standby, primary)
    yield* Follower.goesOn(reader, service, primary.sql)
  })
)

for (const end of ["A crash", "A failover"]) {
  it.live(`${end} that loses nothing ends no cursor, also where half a record of the write-ahead log is left`, () =>
    Effect.gen(function* () {
      const primary = yield* Cluster.make({ settings: { wal_writer_delay: "10ms" } })
      const standby = yield* Cluster.standbyOf(primary)
      const reader = Follower.make()
      yield* primary.sql.unsafe(put("a", "first"))
      yield* Follower.settled(reader, yield* Follower.service(primary, primary, false))
      yield* primary.sql.unsafe(put("b", "seen"))
      yield* Cluster.leaveHalfARecord(primary)
      yield* reader.drain(yield* Follower.service(primary, primary, false))
      yield* Cluster.received(standby, primary)
      yield* primary.kill
      const after = end === "A crash" ? primary : standby
      yield* after === primary ? primary.start : Cluster.promote(standby)
      yield* after.sql.unsafe(put("c", "next"))
      yield* Follower.goesOn(reader, yield* Follower.service(after), after.sql)
    })
  )
}
