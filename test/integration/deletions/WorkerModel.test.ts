/**
 * Any schedule of deliveries, rounds, faults, kills, pauses and clock jumps against a small model, in memory and over
 * Postgres: it runs exactly once in effect with any number of workers, killed at any
 * point; never before its time; dead after 8 attempts; nothing is lost.
 */
import { it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { long, tries } from "../../support/tries.ts"
import { play, schedules } from "./workerModel.ts"
import { delay, inItsOwnTime, onDatabase, postgres } from "../../support/deletions/support.ts"
import { outcomeOf } from "../../support/deletions/invoiceFixture.ts"

const rule = "each accepted task is run exactly once in effect, or dead after 8 attempts, and never before its time"

for (const { often, options } of tries({ few: 15, many: 300, size: 60, maxShrinks: 500 }))
  it.effect.prop(
    `in memory ${rule}${often}`,
    schedules,
    (given) =>
      Effect.suspend(() => {
        const runs = new Map<string, number>()
        const scheduler = Scheduler.layerMemory(delay, (_, { taskId }) =>
          Effect.sync(() => {
            runs.set(taskId, (runs.get(taskId) ?? 0) + 1)
            return outcomeOf({})
          })
        )
        return play(given, ({ taskId }) => Effect.succeed(runs.get(taskId) ?? 0)).pipe(
          Effect.provide(Layer.fresh(scheduler)),
          Effect.scoped,
          inItsOwnTime
        )
      }),
    options
  )

const [overAll, overOne] = postgres

/** Invoices that were changed far in the future, so that each deletion adds a microsecond. */
const makeInvoices = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  yield* sql`truncate invoices`
  yield* sql`
    insert into invoices (organization_id, id, created_at, updated_at)
    select 'org_a', n, '2026-01-01', '9000-01-01' from generate_series(1, 4) n`
  return sql
})

layer(
  TestDatabase.layerDatabases,
  onDatabase
)((test) => {
  const bounds = { size: 60, maxShrinks: 50 }
  const ofAll = tries({ few: 4, many: 20, ...bounds }).map((each) => ({ ...overAll, ...each }))
  const ofOne = { ...overOne, often: "", options: { ...long, arbitrary: { runs: 15, ...bounds } } }
  for (const { often, options, scheduler, store } of [...ofAll, ofOne])
    test.effect.prop(
      `${store} ${rule}${often}`,
      schedules,
      (given) =>
        Effect.gen(function* () {
          const sql = yield* makeInvoices
          const effects = ({ key }: { readonly key: string }) =>
            Effect.map(
              sql<{ effects: number }>`
              select extract(microseconds from updated_at)::int as effects from invoices where id = ${key}`,
              ([row]) => row?.effects ?? 0
            )
          yield* play(given, effects)
        }).pipe(Effect.provide(Layer.fresh(scheduler)), Effect.scoped, inItsOwnTime),
      options
    )
})
