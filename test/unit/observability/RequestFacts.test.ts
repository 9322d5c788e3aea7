/** The account of one request. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Account, note, Note, polling } from "../../../src/observability/RequestFacts.ts"

const key = `pda_live_${"a1B2".repeat(9)}zz`

const make = (path = "/a", endpoint = "other") =>
  new Account({ id: key, method: "POST", path, endpoint, userAgent: `curl ${key}`, address: undefined })

it("Times of an account add up; of any other fact the last note counts, and a note without it leaves it", () => {
  const account = make()
  account.note({ database: 1, waited: 2, polled: 3, rows: 0, organization: "a", refusal: "load", outcome: "full" })
  account.note({ database: 10, waited: 20, polled: 30, taskId: "t", idempotencyKey: "i", keyPrefix: "pda_live_a1B2" })
  account.note({ rows: 7, organization: "b" })
  assert.deepInclude(account, { database: 11, waited: 22, polled: 33, rows: 7, organization: "b" })
  assert.deepInclude(account, { refusal: "load", outcome: "full", taskId: "t", idempotencyKey: "i" })
  assert.deepInclude(account, { keyPrefix: "pda_live_a1B2" })
})

it("An account has no key in what a client sent, and 256 characters of it", () => {
  const { id, path, userAgent } = make(`/${key}/${"x".repeat(300)}`)
  assert.deepStrictEqual([id, userAgent], ["pda_live_a1B2…", "curl pda_live_a1B2…"])
  assert.match(path, /^\/pda_live_a1B2…\/x{200,}$/)
})

it.effect("The time in which a client chose to wait is noted, whatever comes of it", () =>
  Effect.gen(function* () {
    const account = make()
    const waiting = polling(Effect.andThen(Effect.sleep("3 seconds"), Effect.fail("late")))
    const fiber = yield* Effect.forkChild(Effect.flip(Effect.provideService(waiting, Note, account.note)), {
      startImmediately: true
    })
    yield* TestClock.adjust("3 seconds")
    assert.isDefined(fiber.pollUnsafe())
    assert.strictEqual(account.polled, 3000)
    yield* note({ rows: 1 })
    assert.isUndefined(account.rows)
  })
)
