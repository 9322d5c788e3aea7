/**
 * Random histories of writers, and of readers that keep copies in step, as `npm run faults -- sync` plays them by the
 * thousand; and histories without one of the rules, in which readers lose records.
 */
import { assert, layer } from "@effect/vitest"
import { Array, Effect } from "effect"
import * as InProcessStand from "../../../scripts/faults/sync/InProcessStand.ts"
import * as PostgresStand from "../../../scripts/faults/sync/PostgresStand.ts"
import { isFailed } from "../../../scripts/faults/sync/outcome.ts"
import { play } from "../../../scripts/faults/sync/play.ts"
import { historyOn, run } from "../../../scripts/faults/sync/run.ts"
import type { Stand } from "../../../scripts/faults/sync/Stand.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { long } from "../../support/tries.ts"

const seed = 1

/** The first history that fails. */
const failure = Effect.fnUntraced(function* (stand: Stand, numbers: Iterable<number>) {
  for (const number of numbers) {
    const played = yield* play(stand, yield* historyOn(stand, seed, number))
    if (isFailed(played)) return played
  }
  return undefined
})

const onPostgres = Effect.flatMap(TestDatabase, ({ sql, url }) => InProcessStand.over(url, sql))

const options = { excludeTestServices: true } as const

layer(TestDatabase.layer, options)("histories", (it) => {
  it.effect("lose nothing on Postgres", () =>
    Effect.gen(function* () {
      assert.isUndefined((yield* failure(yield* onPostgres, Array.range(1, 5)))?.story())
    })
  )

  it.effect(
    "lose nothing over HTTP, on Postgres that crashes and fails over, a replica of it, and the embedded database",
    () =>
      Effect.gen(function* () {
        const stands = [yield* PostgresStand.make(undefined)]
        const embedded = yield* InProcessStand.embedded
        const numbers = Array.range(1, 20)
        const { failed } = yield* run({ seed, numbers, stands, embedded, events: 0.2, told: 3, isReduced: false })
        assert.deepStrictEqual(failed, [])
      }),
    { ...long, timeout: 120_000 }
  )
})
