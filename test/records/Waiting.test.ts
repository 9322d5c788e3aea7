/** A reader of changes may wait for some. Decisions: changes, `wait`. */
import { assert, layer } from "@effect/vitest"
import { Array, Clock, Duration, Effect, Fiber } from "effect"
import { CurrentOrganization } from "../../src/api/CurrentOrganization.ts"
import type { ChangesNotServed, CursorExpired, CursorInvalid } from "../../src/api/Errors.ts"
import { pets } from "../../src/api/records/Pets.ts"
import type { Database } from "../../src/database/Database.ts"
import * as ChangeClock from "../../src/records/ChangeClock.ts"
import * as Postgres from "../../src/records/Postgres.ts"
import type { Changes, ReadError } from "../../src/records/Repository.ts"
import { eventually } from "../blackbox/support/eventually.ts"
import { settled } from "../support/settled.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { long } from "../support/tries.ts"
import * as Json from "../../src/records/Json.ts"

const wait = Duration.seconds(20)

let organizations = 0

/** A feed whose reader has seen all that there is, with its clock watching, and how many statements were run. */
const feed = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  const organization = `org_${++organizations}`
  let statements = 0
  const run: Database["run"] = (request, statement) => {
    statements++
    return sql.run(request, statement)
  }
  const runShort: Database["runShort"] = (request, statement, alone) => {
    statements++
    return sql.runShort(request, statement, alone)
  }
  const counting: Readonly<Record<PropertyKey, unknown>> = { run, runShort }
  const counted = new Proxy(sql, { get: (target, name) => counting[name] ?? Reflect.get(target, name) })
  let waiters = 0
  const watching = ChangeClock.make(counted, counted)
  const clock: typeof watching = {
    ...watching,
    wait: (seen, within) =>
      Effect.andThen(
        Effect.sync(() => waiters++),
        watching.wait(seen, within)
      )
  }
  const repository = Postgres.make(counted, pets, { clock })
  const changes = (request: Parameters<typeof repository.changes>[0], owner = organization) =>
    repository.changes(request).pipe(
      // So many at once may wait too long for a connection on a machine that is busy.
      Effect.retry({ while: (error) => error._tag === "RecordStoreDown", times: 20 }),
      Effect.provideService(CurrentOrganization, CurrentOrganization.known(owner))
    )
  yield* sql`insert into pets (organization_id, id) values (${organization}, 'a')`
  yield* settled(sql)
  const { cursor } = yield* changes({ limit: 10 })
  yield* Effect.forkScoped(clock.watch)
  const insert = (owner = organization) =>
    sql`insert into pets (organization_id, id, name) values (${owner}, ${`new_${statements}`}, 'new')`
  return { clock, changes, cursor, insert, statements: () => statements, waiters: () => waiters }
})

layer(TestDatabase.layer, { excludeTestServices: true })("a reader that waits", (it) => {
  it.effect(
    "gets what is written meanwhile, within about a second; what another organization writes wakes nobody",
    () =>
      Effect.gen(function* () {
        const { changes, cursor, insert } = yield* feed
        const waiting = yield* Effect.forkChild(changes({ cursor, limit: 10, wait }), { startImmediately: true })
        yield* insert("org_of_others")
        yield* Effect.sleep("1500 millis")
        assert.isUndefined(waiting.pollUnsafe())
        const written = yield* Clock.currentTimeMillis
        yield* insert()
        const { json } = yield* Fiber.join(waiting)
        assert.include(Json.toText(json), '"name":"new"')
        assert.isBelow((yield* Clock.currentTimeMillis) - written, 10_000)
      })
  )

  it.effect("gets an empty page when the time is over", () =>
    Effect.gen(function* () {
      const { changes, cursor } = yield* feed
      const { isEmpty } = yield* changes({ cursor, limit: 10, wait: Duration.millis(50) })
      assert.isTrue(isEmpty)
    })
  )

  it.effect(
    "costs no statement while nothing happens, beside the few of the watch, with a thousand of them",
    () =>
      Effect.gen(function* () {
        const { changes, clock, statements, waiters } = yield* feed
        const waiting: Array<Fiber.Fiber<Changes, CursorInvalid | CursorExpired | ChangesNotServed | ReadError>> = []
        for (const group of Array.range(1, 40)) {
          const readers = Array.makeBy(25, () =>
            Effect.forkChild(changes({ limit: 10, wait }, `org_without_records_${group}`), { startImmediately: true })
          )
          waiting.push(...(yield* Effect.all(readers)))
          yield* eventually(
            "all wait",
            Effect.sync(() => waiters() === 25 * group)
          )
        }
        const before = statements()
        yield* Effect.sleep("2 seconds")
        assert.isBelow(statements() - before, 20)
        yield* clock.stopWaiting
        assert.strictEqual((yield* Fiber.joinAll(waiting)).length, 1000)
      }),
    long
  )

  it.effect("waits no more once the service stops", () =>
    Effect.gen(function* () {
      const { changes, clock, cursor } = yield* feed
      yield* clock.stopWaiting
      assert.isTrue((yield* changes({ cursor, limit: 10, wait })).isEmpty)
    })
  )
})
