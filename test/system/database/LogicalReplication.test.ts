/**
 * The feeds of changes of a database whose records are written by logical replication.
 *
 * @module-tag long
 */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Random } from "effect"
import { eventually } from "../../support/eventually.ts"
import * as Cluster from "../../support/Cluster.ts"
import * as Follower from "../../support/Follower.ts"

/** Writes and removes pets until it is interrupted. */
const write = ({ sql }: Cluster.Cluster) =>
  Effect.forever(
    Effect.gen(function* () {
      const [id, kind] = [`pet_${yield* Random.nextIntBetween(0, 30)}`, yield* Random.nextIntBetween(0, 4)]
      yield* kind === 0 ? sql`delete from pets where id = ${id}` : sql.unsafe(Follower.put(id, `name ${kind}`))
      yield* Effect.sleep(2)
    })
  )

const subscribe = Effect.fnUntraced(function* (publication: string) {
  const publisher = yield* Cluster.make()
  const subscriber = yield* Cluster.make({ isNew: true })
  const near = yield* Follower.service(publisher)
  const far = yield* Follower.service(subscriber)
  // Its positions would never be reached by the other one.
  yield* Cluster.useIds(publisher, 20_000)
  yield* Effect.timeoutOption(write(publisher), 500)
  yield* publisher.sql.unsafe(`create publication records ${publication}`)
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
  return { publisher, subscriber, near, far, isLevel }
})

it.live("What is replicated into the tables is told: the first copy, the stream, deletions and TRUNCATE", () =>
  Effect.gen(function* () {
    const { far, isLevel, publisher, subscriber } = yield* subscribe("for table pets, clinics")
    const reader = Follower.make()
    const late = Follower.make()
    const writing = yield* Effect.forkChild(write(publisher))
    for (let step = 0; step < 60; step++) {
      yield* reader.step(far, 1 + (step % 6))
      yield* Effect.sleep(25)
    }
    // Apply workers commit asynchronously unless they are told otherwise: a crash loses what nobody has seen.
    yield* subscriber.kill
    yield* subscriber.start
    for (let step = 0; step < 20; step++) {
      yield* reader.step(far, 1 + (step % 6))
      yield* Effect.sleep(25)
    }
    yield* Fiber.interrupt(writing)
    yield* isLevel
    for (const follower of [reader, late]) {
      yield* Follower.settled(follower, far)
      yield* Follower.assertEqual(follower, publisher.sql)
      assert.strictEqual(follower.gone(), 0)
    }
    yield* publisher.sql`truncate pets`
    yield* isLevel
    yield* reader.drain(far)
    yield* Follower.assertEqual(reader, publisher.sql)
    assert.strictEqual(reader.gone(), 1)
  })
)
