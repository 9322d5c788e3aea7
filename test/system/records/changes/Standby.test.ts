/**
 * The feeds of changes where the records are read from a streaming replica.
 *
 * @module-tag long
 */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { pets } from "../../../../src/api/records/Pets.ts"
import * as Cluster from "../../../support/Cluster.ts"
import * as Follower from "../../../support/Follower.ts"
import * as Writers from "../../../support/Writers.ts"

it.live("A reader that goes back and forth between the primary and a lagging standby loses nothing", () =>
  Effect.gen(function* () {
    const primary = yield* Cluster.make()
    const standby = yield* Cluster.standbyOf(primary)
    const near = yield* Follower.service(primary)
    const far = yield* Follower.service(primary, standby)
    const reader = Follower.make()
    const only = Follower.make()
    const writing = yield* Effect.forkChild(Writers.write(primary.sql))
    for (let round = 0; round < 30; round++) {
      yield* standby.sql.unsafe(round % 3 === 2 ? "select pg_wal_replay_resume()" : "select pg_wal_replay_pause()")
      yield* Effect.sleep(50)
      yield* reader.step(near, 1 + (round % 7))
      yield* Effect.sleep(20)
      yield* reader.step(far, 1 + (round % 5))
      yield* only.step(far, 3)
    }
    yield* Fiber.interrupt(writing)
    assert.isAbove(Writers.commits(), 30)
    yield* standby.sql`select pg_wal_replay_resume()`
    yield* Cluster.caughtUp(standby, primary)
    // The end of a transaction that was rolled back reaches a standby a little later.
    yield* Follower.settled(reader, far)
    yield* Follower.settled(only, far)
    yield* Follower.assertEqual(reader, primary.sql)
    yield* Follower.assertEqual(only, primary.sql)
    yield* Follower.settled(reader, near)
    yield* Follower.assertEqual(reader, primary.sql)
    assert.deepStrictEqual([reader.gone(), only.gone()], [0, 0])
  })
)

it.live("A reader of a standby goes on after a crash of the primary, also before there is a mark of its new run", () =>
  Effect.gen(function* () {
    const primary = yield* Cluster.make()
    const standby = yield* Cluster.standbyOf(primary)
    const service = yield* Follower.service(primary, standby, false)
    const changes = service.changesOf(pets)
    const source = { changesOf: () => changes }
    const reader = Follower.make()
    yield* primary.sql.unsafe(Follower.put("a", "first"))
    yield* Cluster.caughtUp(standby, primary)
    yield* reader.drain(source)
    yield* primary.kill
    yield* primary.start
    yield* primary.sql.unsafe(Follower.put("a", "second"))
    yield* Cluster.caughtUp(standby, primary)
    yield* reader.drain(source)
    yield* service.clock.keep
    yield* Cluster.caughtUp(standby, primary)
    yield* reader.drain(source)
    yield* Follower.assertEqual(reader, primary.sql)
    assert.strictEqual(reader.gone(), 0)
  })
)
