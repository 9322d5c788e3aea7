/** Readers that wait for changes. */
import { assert, layer } from "@effect/vitest"
import { Array, Duration, Effect, Fiber } from "effect"
import { pets } from "../../../src/api/records/Pets.ts"
import type { Database } from "../../../src/database/Database.ts"
import * as ChangeClock from "../../../src/records/ChangeClock.ts"
import * as Pages from "../../../src/records/Pages.ts"
import * as Postgres from "../../../src/records/Postgres.ts"
import { elsewhere, openTransaction } from "../../support/deletions/sessions.ts"
import { eventually } from "../../support/eventually.ts"
import { settled } from "../../support/settled.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { long } from "../../support/tries.ts"
import { asKnown } from "./stores.ts"

const wait = Duration.seconds(20)

let organizations = 0

/** A feed, its clock watching, and a reader of it that has seen all that there is. */
const feedOf = Effect.fnUntraced(function* (limits = { all: Infinity, perOrganization: Infinity }, times = 20) {
  const { sql } = yield* TestDatabase
  const organization = `org_${++organizations}`
  // The clock runs its statements alone, readers theirs on a shared connection.
  const counts = { clock: 0, reads: 0, waits: 0 }
  const run: Database["run"] = (request, statement) => {
    counts.clock++
    return sql.run(request, statement)
  }
  const runShort: Database["runShort"] = (request, statement, alone) => {
    counts.reads++
    return sql.runShort(request, statement, alone)
  }
  const counting: Readonly<Record<PropertyKey, unknown>> = { run, runShort }
  const counted = new Proxy(sql, { get: (target, name) => counting[name] ?? Reflect.get(target, name) })
  const watching = ChangeClock.make(counted, counted, undefined, limits)
  const clock: typeof watching = {
    ...watching,
    wait: (seen, within) => {
      counts.waits++
      return watching.wait(seen, within)
    }
  }
  const repository = Postgres.make(counted, pets, { clock })
  const changes = (request: Parameters<typeof repository.changes>[0], owner = organization) =>
    asKnown(owner)(
      // So many at once may wait too long for a connection on a busy machine.
      Effect.retry(repository.changes(request), { while: (error) => error._tag === "RecordStoreDown", times })
    )
  yield* sql`insert into pets (organization_id, id) values (${organization}, 'a')`
  yield* settled(sql)
  const cursorOf = Effect.fnUntraced(function* (owner: string) {
    let page = yield* changes({ limit: 10 }, owner)
    while (!page.isComplete) page = yield* changes({ cursor: page.cursor, limit: 10 }, owner)
    return page.cursor
  })
  const cursor = yield* cursorOf(organization)
  yield* Effect.forkScoped(clock.watch)
  let inserted = 0
  const insert = (owner = organization) =>
    sql`insert into pets (organization_id, id, name) values (${owner}, ${`new_${++inserted}`}, 'new')`
  /** Readers of organizations that wait. */
  const waiting = Effect.fnUntraced(function* (owners: ReadonlyArray<string>, limit = 10) {
    const expected = counts.waits + owners.length
    const fibers = yield* Effect.forEach(owners, (owner) =>
      Effect.flatMap(owner === organization ? Effect.succeed(cursor) : cursorOf(owner), (from) =>
        Effect.forkScoped(changes({ cursor: from, limit, wait }, owner), { startImmediately: true })
      )
    )
    yield* eventually("all wait", () => counts.waits === expected)
    return fibers
  })
  /** Waits for two ticks of the clock, at least. */
  const ticks = Effect.suspend(() => {
    const before = counts.clock
    return eventually("two ticks", () => counts.clock >= before + 4)
  })
  return { changes, clock, counts, cursor, insert, organization, ticks, waiting }
})

const atOnce = Effect.timeout("10 seconds")

const isPending = (fiber: Fiber.Fiber<unknown, unknown>) => fiber.pollUnsafe() === undefined

layer(TestDatabase.layer, { excludeTestServices: true })("a reader that waits", (it) => {
  it.effect("gets a change of its organization as soon as it is committed; until then, waiting costs no read", () =>
    Effect.gen(function* () {
      const { counts, insert, organization, ticks, waiting } = yield* feedOf()
      const readers = yield* waiting(Array.makeBy(30, () => organization))
      const before = counts.reads
      yield* insert("org_of_others")
      yield* ticks
      assert.strictEqual(counts.reads, before)
      assert.isTrue(readers.every(isPending))
      yield* insert()
      for (const { json } of yield* atOnce(Fiber.joinAll(readers))) assert.include(Pages.toText(json), '"name":"new"')
    })
  )

  it.effect("gets a change of a transaction that was running when it read", () =>
    Effect.gen(function* () {
      const { insert, organization, waiting } = yield* feedOf()
      const sql = yield* elsewhere
      const late = sql`insert into pets (organization_id, id, name) values (${organization}, 'late', 'late')`
      const { commit } = yield* openTransaction(sql, late)
      yield* insert("org_of_later_ones")
      const readers = yield* waiting([organization])
      yield* commit
      for (const { json } of yield* atOnce(Fiber.joinAll(readers))) assert.include(Pages.toText(json), '"name":"late"')
    })
  )

  it.effect("gets an empty page on a timeout", () =>
    Effect.gen(function* () {
      const { changes, cursor } = yield* feedOf()
      assert.isTrue((yield* changes({ cursor, limit: 10, wait: Duration.millis(50) })).isEmpty)
    })
  )

  it.effect(
    "gets a change beside 499 others of its organization, and none gets a busy store",
    () =>
      Effect.gen(function* () {
        const { insert, organization, waiting } = yield* feedOf(undefined, 0)
        const readers = yield* Effect.forEach(Array.range(1, 20), () =>
          waiting(
            Array.makeBy(25, () => organization),
            1000
          )
        )
        yield* insert()
        const pages = yield* Fiber.joinAll(readers.flat())
        assert.deepStrictEqual(
          pages.map(({ rows }) => rows),
          Array.makeBy(500, () => 1)
        )
      }),
    long
  )

  it.effect("gets its answer at once if too many wait already, of its organization or in all", () =>
    Effect.gen(function* () {
      const { changes, clock, cursor, organization, waiting } = yield* feedOf({ all: 5, perOrganization: 3 })
      const readers = yield* waiting([organization, organization, organization])
      assert.isTrue((yield* changes({ cursor, limit: 10, wait })).isEmpty)
      readers.push(...(yield* waiting(["org_of_others_1", "org_of_others_2"])))
      assert.isTrue((yield* changes({ limit: 10, wait }, "org_of_others_3")).isEmpty)
      assert.isTrue(readers.every(isPending))
      yield* clock.stopWaiting
      yield* Fiber.joinAll(readers)
      assert.deepStrictEqual(ChangeClock.limitsFor(2000), { all: 1000, perOrganization: 250 })
    })
  )

  it.effect("gets its answer at once when the service stops, and afterwards", () =>
    Effect.gen(function* () {
      const { changes, clock, cursor, organization, waiting } = yield* feedOf()
      const readers = yield* waiting([organization])
      yield* clock.stopWaiting
      assert.isTrue((yield* atOnce(Fiber.joinAll(readers))).every(({ isEmpty }) => isEmpty))
      assert.isTrue((yield* atOnce(changes({ cursor, limit: 10, wait }))).isEmpty)
    })
  )
})
