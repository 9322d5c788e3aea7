/** How much an organization may have pending, by any scheduler. Decisions: "Fairness, bounds and age of tasks". */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Array, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as Fairness from "../../../src/deletions/Fairness.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import * as SchedulerMemory from "../../../src/deletions/SchedulerMemory.ts"
import * as SchedulerPostgres from "../../../src/deletions/SchedulerPostgres.ts"
import * as Distribution from "../../../src/database/Distribution.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import {
  claimAll,
  completes,
  delay,
  delivery,
  emptied,
  inItsOwnTime,
  onDatabase,
  organization
} from "../../support/deletions/support.ts"

const bounds: Fairness.Bounds = {
  unknown: { tasks: 3, bytes: 100_000 },
  known: { tasks: 6, bytes: 100_000 }
}

const fewBytes: Fairness.Bounds = { ...bounds, unknown: { tasks: 100, bytes: 150 } }

const schedule = (key: string, owner = organization) =>
  Effect.flatMap(Scheduler, (scheduler) =>
    Effect.map(scheduler.schedule(delivery(key, undefined, owner)), ({ _tag }) => _tag)
  )

const outcomesOf = (count: number, owner = organization) =>
  Effect.forEach(Array.range(1, count), (index) => schedule(`${owner}-${index}`, owner))

const postgres = (given: Fairness.Bounds, distribution?: Distribution.Distribution) =>
  emptied(Layer.effect(Scheduler, SchedulerPostgres.make({ delay, bounds: given, distribution })))

const stores = [
  {
    store: "in memory",
    of: (given: Fairness.Bounds) => Layer.effect(Scheduler, SchedulerMemory.make(delay, undefined, given))
  },
  { store: "over Postgres", of: postgres },
  {
    store: "over Postgres, one organization at a time",
    of: (given: Fairness.Bounds) => postgres(given, Distribution.distributed)
  }
]

layer(
  TestDatabase.layerDatabases,
  onDatabase
)((it) => {
  describe.each(stores)("$store", ({ of }) => {
    it.effect("an organization stores as many deliveries as it may, and the others when some are done", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* outcomesOf(4), ["Scheduled", "Scheduled", "Scheduled", "Full"])
        assert.deepStrictEqual(yield* outcomesOf(1, "org_b"), ["Scheduled"])
        yield* TestClock.adjust(delay)
        assert.strictEqual(yield* schedule("another"), "Full")
        for (const claim of yield* claimAll()) yield* completes(claim)
        yield* TestClock.adjust("1 second")
        assert.strictEqual(yield* schedule("another"), "Scheduled")
        assert.strictEqual(yield* schedule(`${organization}-4`), "Scheduled")
      }).pipe(Effect.provide(of(bounds)), inItsOwnTime)
    )

    it.effect(
      "what is stored is still a duplicate where nothing more may be, and another payload of its key is refused",
      () =>
        Effect.gen(function* () {
          yield* outcomesOf(4)
          assert.strictEqual(yield* schedule(`${organization}-1`), "Duplicate")
          const { schedule: again } = yield* Scheduler
          const other = delivery(`${organization}-1`, { invoices: [{ invoice_id: "another" }] })
          assert.strictEqual((yield* again(other))._tag, "KeyReused")
        }).pipe(Effect.provide(of(bounds)), inItsOwnTime)
    )

    it.effect("the bytes that an organization has pending are bounded as well", () =>
      Effect.gen(function* () {
        const outcomes = yield* outcomesOf(10)
        assert.strictEqual(outcomes[0], "Scheduled")
        assert.strictEqual(outcomes[9], "Full")
      }).pipe(Effect.provide(of(fewBytes)), inItsOwnTime)
    )
  })

  it.effect("an organization with a row may have more pending than one without", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`insert into organizations ${sql.insert({ organization_id: "org_known", id: "org_known" })}`
      const outcomes = yield* outcomesOf(7, "org_known")
      assert.deepStrictEqual(outcomes, [...Array.replicate("Scheduled", 6), "Full"])
    }).pipe(Effect.provide(postgres(bounds)), inItsOwnTime)
  )

  it.effect("deliveries that are stored at the same time, by several processes, stay about within the bound", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const processes = yield* Effect.replicateEffect(SchedulerPostgres.make({ delay, bounds: many }), 4)
      yield* Effect.forEach(
        Array.range(1, 150),
        (index) =>
          Effect.forEach(processes, (process, number) => process.schedule(delivery(`${index}-${number}`)), {
            concurrency: "unbounded"
          }),
        { concurrency: 8 }
      )
      const [row] = yield* sql<{ count: number }>`select count(*)::int as count from deletion_tasks`
      assert.isAtLeast(row?.count ?? 0, 200)
      assert.isAtMost(row?.count ?? 0, 210)
    }).pipe(Effect.provide(postgres(bounds)), inItsOwnTime)
  )
})

const many: Fairness.Bounds = { known: { tasks: 200, bytes: 1e9 }, unknown: { tasks: 200, bytes: 1e9 } }

test.effect("what is pending is not counted for each delivery", () =>
  Effect.gen(function* () {
    const hasRoom = Fairness.makeRoom(Fairness.bounds)
    let counts = 0
    const count = Effect.sync(() => ({ tasks: 0, bytes: 0, isKnown: true, count: ++counts }))
    for (let index = 0; index < 6000; index++) assert.isTrue(yield* hasRoom("org_a", 100, count))
    assert.strictEqual(counts, 1)
  })
)
