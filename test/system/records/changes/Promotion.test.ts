/**
 * The feeds of changes after a failover: a standby that lacked the last commits is promoted, and ids are used again.
 *
 * @module-tag long
 */
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import * as Cluster from "../../../support/Cluster.ts"
import * as Follower from "../../../support/Follower.ts"
import * as Writers from "../../../support/Writers.ts"

/** What a reader kept at a time. */
interface Kept {
  readonly at: number
  readonly state: Follower.State
}

/** Writes, and keeps what a reader has every few milliseconds, for a number of them. */
const history = Effect.fnUntraced(function* (cluster: Cluster.Cluster, from: Follower.Service, millis: number) {
  const reader = Follower.make()
  const kept: Array<Kept> = []
  const writing = yield* Effect.forkChild(Writers.write(cluster.sql))
  const end = (yield* Clock.currentTimeMillis) + millis
  for (let pages = 0; (yield* Clock.currentTimeMillis) < end; pages++) {
    // Some of them are in the middle of what there is.
    yield* reader.step(from, 1 + (pages % 9))
    kept.push({ at: yield* Clock.currentTimeMillis, state: reader.state() })
    yield* Effect.sleep(10)
  }
  yield* Fiber.interrupt(writing)
  return kept
})

const positionsFrom = (sql: Cluster.Cluster["sql"]) =>
  Effect.map(
    sql<{ next: string }>`select (pg_snapshot_xmax(pg_current_snapshot())::text::bigint)::text as next`,
    (rows) => Number(rows[0]?.next)
  )

it.live("A promoted standby that lacked the last second: no reader misses anything, and older cursors go on", () =>
  Effect.gen(function* () {
    const primary = yield* Cluster.make()
    const standby = yield* Cluster.standbyOf(primary)
    const before = yield* Follower.service(primary)
    const kept = [...(yield* history(primary, before, 4000))]
    yield* primary.sql`checkpoint`
    yield* Cluster.caughtUp(standby, primary)
    yield* Cluster.follow(standby, undefined)
    const cut = yield* Clock.currentTimeMillis
    kept.push(...(yield* history(primary, before, 1000)))
    const last = kept.at(-1)
    const lost = yield* positionsFrom(primary.sql)
    yield* primary.kill
    yield* Cluster.promote(standby)
    assert.isBelow(yield* positionsFrom(standby.sql), lost, "ids are used again")
    const after = yield* Follower.service(standby)
    const writing = yield* Effect.forkChild(Writers.write(standby.sql))
    const readers = kept.map(({ at, state }) => {
      const reader = Follower.make()
      reader.restore(state)
      return { at, reader }
    })
    // Some go on while ids are used again, the others when that is over.
    yield* Effect.forEach(
      readers.filter((_, index) => index % 2 === 0),
      ({ reader }) => reader.drain(after),
      { concurrency: 4 }
    )
    yield* Effect.sleep(1500)
    yield* Fiber.interrupt(writing)
    assert.isAbove(yield* positionsFrom(standby.sql), lost, "the ids have been used")
    for (const { at, reader } of readers) {
      yield* Follower.settled(reader, after)
      yield* Follower.assertEqual(reader, standby.sql, `a reader from ${at - cut} ms`)
      if (at < cut) assert.strictEqual(reader.gone(), 0, `410 for a cursor from ${at - cut} ms`)
    }
    assert.isTrue(last !== undefined && last.at > cut)
    assert.strictEqual(readers.at(-1)?.reader.gone(), 1)
  })
)

const { put } = Follower

/** A session in which a transaction may stay open. */
const session = Effect.fnUntraced(function* ({ sql }: Cluster.Cluster) {
  const reserved = yield* sql.reserve
  return (text: string) => reserved.executeUnprepared(text, [], undefined)
})

for (const reads of ["its primary, in the middle of a load", "a standby, to the end"]) {
  it.live(`A record whose newer version a reader of ${reads} has not read is read when that version was lost`, () =>
    Effect.gen(function* () {
      const primary = yield* Cluster.make()
      const standby = yield* Cluster.standbyOf(primary)
      const replica = yield* Cluster.standbyOf(primary)
      const isOnPrimary = reads.startsWith("its primary")
      const service = yield* Follower.service(primary, isOnPrimary ? primary : replica)
      const run = (text: string) => primary.sql.unsafe(text)
      const reader = Follower.make()
      yield* run(put("a", "first"))
      yield* Cluster.caughtUp(replica, primary)
      yield* Follower.settled(reader, service)
      const late = yield* session(primary)
      const atMost40 = run(put("r", "at 40"))
      yield* isOnPrimary ? Effect.andThen(atMost40, run(put("b", "first"))) : atMost40
      yield* late("begin")
      yield* late(put("late", "at 55"))
      yield* Cluster.caughtUp(standby, primary)
      yield* Effect.sleep(1500)
      yield* Cluster.caughtUp(standby, primary)
      yield* Cluster.follow(standby, undefined)
      yield* run(put("r", "at 60"))
      yield* Cluster.caughtUp(replica, primary)
      yield* Effect.sleep(1500)
      yield* reader.step(service, 1)
      assert.deepStrictEqual([...reader.state().copy.keys()], isOnPrimary ? ["a", "b"] : ["a"])
      yield* primary.kill
      yield* Cluster.promote(standby)
      const after = yield* Follower.service(standby)
      yield* reader.drain(after)
      yield* Follower.assertEqual(reader, standby.sql)
      assert.strictEqual(reader.state().copy.get("r")?.["name"], "at 40")
    }).pipe(Effect.scoped)
  )
}

it.live("A second standby follows the promoted one: readers of both miss nothing", () =>
  Effect.gen(function* () {
    const primary = yield* Cluster.make()
    const first = yield* Cluster.standbyOf(primary)
    const second = yield* Cluster.standbyOf(primary)
    const before = yield* Follower.service(primary)
    const old = [...(yield* history(primary, before, 2500))]
    yield* Cluster.caughtUp(second, primary)
    yield* Cluster.follow(second, undefined)
    yield* Cluster.caughtUp(first, primary)
    yield* Cluster.follow(first, undefined)
    const kept = [...old, ...(yield* history(primary, before, 700))].filter((_, index) => index % 4 === 0)
    yield* primary.kill
    yield* Cluster.promote(first)
    yield* Cluster.follow(second, first)
    const near = yield* Follower.service(first)
    const far = yield* Follower.service(first, second)
    const writing = yield* Effect.forkChild(Writers.write(first.sql))
    const readers = kept.map(({ state }) => {
      const reader = Follower.make()
      reader.restore(state)
      return reader
    })
    for (let round = 0; round < 6; round++) {
      for (const [index, reader] of readers.entries()) yield* reader.step((round + index) % 2 === 0 ? near : far, 5)
    }
    yield* Fiber.interrupt(writing)
    // Otherwise a standby learns only after a while which transactions have ended with the old primary.
    yield* first.sql`checkpoint`
    yield* Effect.sleep(1200)
    yield* Cluster.caughtUp(second, first)
    for (const [index, reader] of readers.entries()) {
      yield* Follower.settled(reader, index % 2 === 0 ? near : far)
      yield* Follower.assertEqual(reader, first.sql, `reader ${index} of ${readers.length}`)
    }
    assert.strictEqual(readers[0]?.gone(), 0)
    assert.isAbove(readers.at(-1)?.gone() ?? 0, 0)
  })
)

it.live("A cursor of a promoted server that is gone is gone on the standby of another one too", () =>
  Effect.gen(function* () {
    const primary = yield* Cluster.make()
    const first = yield* Cluster.standbyOf(primary)
    const second = yield* Cluster.standbyOf(primary)
    yield* primary.sql.unsafe(put("a", "first"))
    yield* Follower.settled(Follower.make(), yield* Follower.service(primary))
    yield* Cluster.caughtUp(first, primary)
    yield* Cluster.caughtUp(second, primary)
    yield* primary.kill
    yield* Cluster.promote(first)
    yield* first.sql.unsafe(put("a", "lost"))
    const reader = Follower.make()
    yield* Follower.settled(reader, yield* Follower.service(first))
    yield* first.kill
    yield* Cluster.promote(second)
    const third = yield* Cluster.standbyOf(second)
    const far = yield* Follower.service(second, third)
    yield* Follower.settled(Follower.make(), yield* Follower.service(second))
    yield* Cluster.caughtUp(third, second)
    yield* reader.drain(far)
    yield* Follower.assertEqual(reader, second.sql)
    assert.strictEqual(reader.gone(), 1)
  })
)

it.live("A switchover that loses nothing ends no cursor", () =>
  Effect.gen(function* () {
    const primary = yield* Cluster.make()
    const standby = yield* Cluster.standbyOf(primary)
    const kept = [...(yield* history(primary, yield* Follower.service(primary), 1500))]
    kept.push(...(yield* history(primary, yield* Follower.service(primary, standby), 1500)))
    yield* primary.sql`checkpoint`
    yield* Cluster.caughtUp(standby, primary)
    yield* primary.kill
    yield* Cluster.promote(standby)
    const after = yield* Follower.service(standby)
    yield* Effect.timeoutOption(Writers.write(standby.sql), 500)
    for (const { state } of kept) {
      const reader = Follower.make()
      reader.restore(state)
      yield* Follower.settled(reader, after)
      yield* Follower.assertEqual(reader, standby.sql)
      assert.strictEqual(reader.gone(), 0)
    }
  })
)
