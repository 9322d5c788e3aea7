/** The retry policy: the kinds of failures, and the delays. */
import { assert, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Random } from "effect"
import { ConnectionError, SqlError, UnknownError } from "effect/sql/SqlError"
import { TestClock } from "effect/testing"
import { backoff, isPassing, maximumAttempts, pause } from "../../../src/deletions/Retries.ts"

/** A failure of a statement, with a code. */
const failed = (Reason: typeof ConnectionError | typeof UnknownError, code?: string) =>
  new SqlError({
    reason: new Reason({ cause: Object.assign(new Error("No"), { code }), message: "No", operation: "query" })
  })

const codes = {
  passing:
    "08000 08001 08006 08P01 53000 53100 53200 53300 53400 57P01 57P02 57P03 57P04 57P05 25006 25P03 40001 40P01 55P03",
  permanent:
    "22003 22P02 23502 23503 23505 23514 26000 0A000 2200H 28000 40002 42501 42703 42883 42P01 54001 55000 55006 57014 57000 58030 58P01 P0001 P0002 XX000 XX001 XX002 ABCDE EPIPE"
}

it.each(Object.entries(codes))("a failure with one of these codes is %s: %s", (kind, all) => {
  for (const code of all.split(" ")) assert.strictEqual(isPassing(failed(UnknownError, code)), kind === "passing", code)
})

it("a lost connection passes, and an error of the driver alone is permanent", () => {
  for (const code of [undefined, "ECONNRESET", "EPIPE", "08006"])
    assert.isTrue(isPassing(failed(ConnectionError, code)))
  assert.isFalse(isPassing(failed(UnknownError, "")))
})

/** Chance at its ends. */
const chance = (value: number) =>
  Effect.provideService(Random.Random, { nextIntUnsafe: () => 0, nextDoubleUnsafe: () => value })

it.effect("a failed task waits for at least a second, and at most 5 seconds, doubled to 5 minutes", () =>
  Effect.gen(function* () {
    const longest: Array<number> = []
    for (let attempt = 1; attempt < maximumAttempts; attempt++) {
      assert.deepStrictEqual(yield* chance(0)(backoff(attempt)), Duration.seconds(1))
      longest.push(Math.round(Duration.toSeconds(yield* chance(1 - 1e-9)(backoff(attempt)))))
    }
    assert.deepStrictEqual(longest, [5, 10, 20, 40, 80, 160, 300])
  })
)

it.effect("a task that others delay waits half as long as it has been due, from 1 to 10 seconds", () =>
  Effect.gen(function* () {
    const scheduledFor = yield* DateTime.now
    const pauses: Array<number> = []
    for (const passed of [0, 2, 4, 13, 60]) {
      yield* TestClock.setTime(DateTime.toEpochMillis(scheduledFor) + passed * 1000)
      pauses.push(Duration.toSeconds(yield* pause(scheduledFor)))
    }
    assert.deepStrictEqual(pauses, [1, 1, 2, 6.5, 10])
  })
)
