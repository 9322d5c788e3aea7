/**
 * The feeds of changes of a database whose records are written by logical replication.
 *
 * @module-tag long
 */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { eventually } from "../../support/eventually.ts"
import * as Cluster from "../../support/Cluster.ts"
import * as Follower from "../../support/Follower.ts"
import * as Writers from "../../support/Writers.ts"

const orders = ({ sql }: Cluster.Cluster) =>
  sql`select token from change_feeds union all select token from change_marks`

const subscribe = Effect.fnUntraced(function* (publication: string) {
  const publisher = yield* Cluster.make()
  const subscriber = yield* Cluster.make({ isNew: true })
  const near = yield* Follower.service(publisher)
  const far = yield* Follower.service(subscriber)
  // Its positions would never be reached by the other one.
  yield* Cluster.useIds(publisher, 20_000)
  yield* Effect.timeoutOption(Writers.write(publisher.sql), 500)
  yield* publisher.sql.unsafe(`create publication records ${publication}`)
  yield* subscriber.sql.unsafe(
    `create subscription records connection '${Cluster.connectionTo(publisher)} dbname=postgres' publication records`
  )
  const isLevel = eventually(
    "a subscriber that has all",
    Effect.map(
      Effect.forEach(
        [publisher, subscriber],
        ({ sql }) => sql<{ all: string }>`select md5(string_agg(record, ',' order by id)) as all from pets`
      ),
      (found) => new Set(found.flat().map(({ all }) => all)).size === 1
    )
  )
  return { publisher, subscriber, near, far, isLevel }
})

it.live("What is replicated into the tables is told: the first copy, the stream, deletions and TRUNCATE", () =>
  Effect.gen(function* () {
    const { far, isLevel, publisher, subscriber } = yield* subscribe("for table pets, clinics")
    const reader = Follower.make()
    const late = Follower.make()
    const writing = yield* Effect.forkChild(Writers.write(publisher.sql))
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

it.live("A publication for all tables replicates the records, and the subscriber keeps an order of its own", () =>
  Effect.gen(function* () {
    const { far, isLevel, near, publisher, subscriber } = yield* subscribe("for all tables")
    const reader = Follower.make()
    const there = Follower.make()
    yield* isLevel
    const writing = yield* Effect.forkChild(Writers.write(publisher.sql))
    for (let step = 0; step < 60; step++) {
      yield* reader.step(far, 1 + (step % 6))
      yield* there.step(near)
      yield* Effect.sleep(25)
    }
    yield* Fiber.interrupt(writing)
    yield* isLevel
    yield* Follower.settled(reader, far)
    yield* Follower.assertEqual(reader, publisher.sql)
    assert.strictEqual(reader.gone(), 0)
    const [here, elsewhere] = [yield* orders(publisher), yield* orders(subscriber)].map((rows) =>
      rows.map(({ token }) => token)
    )
    assert.isTrue(here?.every((token) => elsewhere?.includes(token) === false))
    const [furthest] = yield* subscriber.sql<{ is: boolean }>`
      select max(change_position) < change_horizon() as is from removals`
    assert.isTrue(furthest?.is, "the removals have positions of the subscriber")
    // The list of migrations is there already, and its copy is tried again and again.
    const unfinished = subscriber.sql<{ table: string }>`
      select srrelid::regclass::text as table from pg_subscription_rel where srsubstate <> 'r'`
    yield* eventually(
      "the copies of all other tables",
      Effect.map(unfinished, (rows) => rows.length === 1 && rows[0]?.table === "migrations")
    )
  })
)
