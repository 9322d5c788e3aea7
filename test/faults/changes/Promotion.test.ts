/**
 * The feeds of changes after a failover: a standby that lacked the last commits is promoted, and ids are used again.
 *
 * @module-tag long
 */
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import * as Cluster from "../support/Cluster.ts"
import * as Follower from "../support/Follower.ts"
import * as Writers from "../support/Writers.ts"

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
      yield* reader.drain(after)
      yield* Follower.assertEqual(reader, standby.sql, `a reader from ${at - cut} ms`)
      if (at < cut - 2500) assert.strictEqual(reader.gone(), 0, `410 for a cursor from ${at - cut} ms`)
    }
    assert.isTrue(last !== undefined && last.at > cut)
    assert.strictEqual(readers.at(-1)?.reader.gone(), 1)
    console.log(readers.map(({ at, reader }) => `${at - cut}:${reader.gone()}`).join(" "))
  })
)
