/**
 * Random histories of writers, and of readers that keep copies in step, as `npm run faults -- sync` plays them by the
 * thousand; and that they find out where something is left out that keeps the readers from losing anything.
 */
import { assert, layer } from "@effect/vitest"
import { Array, Effect } from "effect"
import * as InProcessStand from "../../../scripts/faults/sync/InProcessStand.ts"
import * as PostgresStand from "../../../scripts/faults/sync/PostgresStand.ts"
import { isFailed } from "../../../scripts/faults/sync/outcome.ts"
import { play } from "../../../scripts/faults/sync/play.ts"
import { historyOn, run } from "../../../scripts/faults/sync/run.ts"
import { tables } from "../../../scripts/faults/sync/Room.ts"
import type { Stand } from "../../../scripts/faults/sync/Stand.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const seed = 1

/** The first history that fails. */
const failure = Effect.fnUntraced(function* (stand: Stand, numbers: Iterable<number>) {
  for (const number of numbers) {
    const played = yield* play(stand, yield* historyOn(stand, seed, number))
    if (isFailed(played)) return played
  }
  return undefined
})

const options = { excludeTestServices: true } as const
const long = { tags: ["long"] }

layer(TestDatabase.layer, options)("Histories lose nothing", (it) => {
  it.effect("on Postgres", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      const stand = yield* InProcessStand.over(url, sql)
      assert.isUndefined((yield* failure(stand, Array.range(1, 5)))?.story())
    })
  )

  it.effect(
    "on the embedded database",
    () =>
      Effect.gen(function* () {
        const stand = yield* InProcessStand.embedded
        assert.isUndefined((yield* failure(stand, Array.range(1, 15)))?.story())
      }),
    long
  )

  it.effect(
    "over HTTP, on Postgres, a replica of it, and the embedded database",
    () =>
      Effect.gen(function* () {
        const stands = [yield* PostgresStand.make(undefined)]
        const embedded = yield* InProcessStand.embedded
        const { failed } = yield* run({
          seed,
          numbers: Array.range(1, 50),
          stands,
          embedded,
          told: 3,
          isReduced: false
        })
        assert.deepStrictEqual(failed, [])
      }),
    long
  )
})

const mutants = {
  "the horizon": `create or replace function change_horizon() returns bigint language sql stable parallel restricted
    return 1e15::bigint`,
  "the triggers of removals": tables
    .flatMap((table) => [`alter table ${table} disable trigger removed`, `alter table ${table} disable trigger moved`])
    .join(";"),
  "that the triggers fire always": tables.map((table) => `alter table ${table} enable trigger user`).join(";")
}

for (const [what, statements] of Object.entries(mutants)) {
  layer(TestDatabase.layer, options)("Histories find out", (it) => {
    it.effect(
      `when ${what} is left out`,
      () =>
        Effect.gen(function* () {
          const { sql, url } = yield* TestDatabase
          const stand = yield* InProcessStand.over(url, sql)
          for (const statement of statements.split(";")) yield* sql.unsafe(statement)
          const found = yield* failure(stand, Array.range(1, 400))
          const byChanges = found?.outcomes.filter(({ manner }) => manner === "changes") ?? []
          assert.isTrue(byChanges.some(({ lost, stale }) => lost + stale > 0))
        }),
      what === "the horizon" ? {} : long
    )
  })
}

layer(TestDatabase.layer, options)("Histories find out", (it) => {
  it.effect(
    "when a search has no margin",
    () =>
      Effect.gen(function* () {
        const { sql, url } = yield* TestDatabase
        const stand = yield* InProcessStand.over(url, sql)
        for (const number of Array.range(1, 400)) {
          const history = yield* historyOn(stand, seed, number)
          const { outcomes } = yield* play(stand, { ...history, margin: 0 })
          if (outcomes.some(({ lost, manner, stale }) => manner === "margin" && lost + stale > 0)) return
        }
        assert.fail("Nothing was lost")
      }),
    long
  )
})
