/** A reader of changes may wait for some. Decisions: changes, `wait`. */
import { assert, layer } from "@effect/vitest"
import { Array, Clock, Duration, Effect, Fiber } from "effect"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import type { ChangesNotServed, CursorExpired, CursorInvalid } from "../../../src/api/Errors.ts"
import { pets } from "../../../src/api/records/Pets.ts"
import type { Database } from "../../../src/database/Database.ts"
import * as ChangeClock from "../../../src/records/ChangeClock.ts"
import * as Postgres from "../../../src/records/Postgres.ts"
import type { Changes, ReadError } from "../../../src/records/Repository.ts"
import { eventually } from "../../support/eventually.ts"
import { settled } from "../../support/settled.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { long } from "../../support/tries.ts"
import * as Pages from "../../../src/records/Pages.ts"

const wait = Duration.seconds(20)

type Reading = Fiber.Fiber<Changes, CursorInvalid | CursorExpired | ChangesNotServed | ReadError>

let organizations = 0

const unlimited = { all: Infinity, perOrganization: Infinity }

/** A feed whose reader has seen all that there is, with its clock watching, and how many statements were run. */
const feedOf = Effect.fnUntraced(function* (limits: ChangeClock.Limits, times = 20) {
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
  const watching = ChangeClock.make(counted, counted, undefined, limits)
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
      Effect.retry({ while: (error) => error._tag === "RecordStoreDown", times }),
      Effect.provideService(CurrentOrganization, CurrentOrganization.known(owner))
    )
  yield* sql`insert into pets (organization_id, id) values (${organization}, 'a')`
  yield* settled(sql)
  /** The cursor of a reader whose first load is complete: any other one is woken once it is. */
  const loaded = Effect.fnUntraced(function* (owner: string) {
    let page = yield* changes({ limit: 10 }, owner)
    while (!page.isComplete) page = yield* changes({ cursor: page.cursor, limit: 10 }, owner)
    return page.cursor
  })
  const cursor = yield* loaded(organization)
  yield* Effect.forkScoped(clock.watch)
  const insert = (owner = organization) =>
    sql`insert into pets (organization_id, id, name) values (${owner}, ${`new_${statements}`}, 'new')`
  return { clock, changes, cursor, loaded, insert, organization, statements: () => statements, waiters: () => waiters }
})

const feed = feedOf(unlimited)

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
        assert.include(Pages.toText(json), '"name":"new"')
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
        const { changes, clock, loaded, statements, waiters } = yield* feed
        const waiting: Array<Reading> = []
        for (const group of Array.range(1, 40)) {
          const owner = `org_without_records_${group}`
          const cursor = yield* loaded(owner)
          const readers = Array.makeBy(25, () =>
            Effect.forkChild(changes({ cursor, limit: 10, wait }, owner), { startImmediately: true })
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

  it.effect(
    "gets what one change brings, with 500 of one organization, and none is told that the store is busy",
    () =>
      Effect.gen(function* () {
        const { changes, cursor, insert, waiters } = yield* feedOf(unlimited, 0)
        const waiting: Array<Reading> = []
        for (const group of Array.range(1, 20)) {
          const readers = Array.makeBy(25, () =>
            Effect.forkChild(changes({ cursor, limit: 1000, wait }), { startImmediately: true })
          )
          waiting.push(...(yield* Effect.all(readers)))
          yield* eventually(
            "all wait",
            Effect.sync(() => waiters() === 25 * group)
          )
        }
        yield* insert()
        const pages = yield* Fiber.joinAll(waiting)
        assert.deepStrictEqual([...new Set(pages.map(({ rows }) => rows))], [1])
      }),
    long
  )

  it.effect("waits no more where as many wait as may, of its organization or in all", () =>
    Effect.gen(function* () {
      const { changes, clock, cursor, organization, waiters } = yield* feedOf({ all: 5, perOrganization: 3 })
      const ask = (owner: string) => changes({ limit: 10, wait, ...(owner === organization ? { cursor } : {}) }, owner)
      const others = ["org_of_others_1", "org_of_others_2", "org_of_others_3"]
      const waiting = yield* Effect.forEach([organization, organization, organization, ...others.slice(1)], (owner) =>
        Effect.forkChild(ask(owner), { startImmediately: true })
      )
      yield* eventually(
        "all wait",
        Effect.sync(() => waiters() === 5)
      )
      for (const owner of [organization, "org_of_others_1"]) assert.isTrue((yield* ask(owner)).isEmpty)
      assert.isTrue(waiting.every((fiber) => fiber.pollUnsafe() === undefined))
      yield* clock.stopWaiting
      yield* Fiber.joinAll(waiting)
    })
  )

  it.effect("has an eighth of the connections for one organization, and half of them in all", () =>
    Effect.sync(() => assert.deepStrictEqual(ChangeClock.limitsFor(2000), { all: 1000, perOrganization: 250 }))
  )

  it.effect("waits no more once the service stops", () =>
    Effect.gen(function* () {
      const { changes, clock, cursor } = yield* feed
      yield* clock.stopWaiting
      assert.isTrue((yield* changes({ cursor, limit: 10, wait })).isEmpty)
    })
  )
})
