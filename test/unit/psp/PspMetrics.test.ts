/** The metrics of the processor. */
import { assert, describe, it } from "@effect/vitest"
import { Array, Context, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import { PspClient } from "../../../src/psp/PspClient.ts"
import { AccountFailed, CursorUnknown, PspUnavailable } from "../../../src/psp/PspPage.ts"
import { PspReads } from "../../../src/psp/PspReads.ts"
import { layerPsp } from "../../http/inProcess.ts"
import { samples, withRegistry } from "../../support/metrics.ts"
import { type Answer, clinic, organization } from "./fakes.ts"

const found = Effect.succeed({ data: [], hasMore: false })
const down = Effect.fail(new PspUnavailable({ reason: "StripeConnectionError" }))

/** Reads of a clinic whose processor answers so. */
const readsOver = Effect.fnUntraced(function* (list: () => Answer) {
  const client = Layer.succeed(PspClient, PspClient.of({ list }))
  const context = yield* Layer.build(layerPsp(client, [{ organization, clinic, account: "acct_oak" }]))
  const read = Context.get(context, PspReads)
    .read("charges", clinic, { limit: 1 })
    .pipe(Effect.provideService(CurrentOrganization, CurrentOrganization.known(organization)), Effect.exit)
  return { read }
})

const outcome = (name: string) => `practice_data_processor_requests_total{outcome="${name}"}`
const count = "practice_data_processor_request_duration_seconds_count"

describe("calls of the processor", () => {
  it.effect("are counted by what came of them", () =>
    Effect.gen(function* () {
      let answer: Answer = found
      const { read } = yield* readsOver(() => answer)
      yield* read
      answer = Effect.fail(new CursorUnknown())
      yield* read
      answer = Effect.fail(new AccountFailed({ reason: "StripePermissionError 403" }))
      yield* read
      answer = Effect.never
      const hanging = yield* Effect.forkScoped(read, { startImmediately: true })
      yield* TestClock.adjust("8 seconds")
      yield* Fiber.join(hanging)
      const all = yield* samples
      assert.deepStrictEqual(
        ["success", "cursor_unknown", "account_failed", "interrupted", "unavailable"].map((name) => all[outcome(name)]),
        [1, 1, 1, 1, 0]
      )
      assert.strictEqual(all[count], 4)
    }).pipe(withRegistry)
  )

  it.effect("that fail open a circuit, which shows until one succeeds", () =>
    Effect.gen(function* () {
      let answer: Answer = down
      const { read } = yield* readsOver(() => answer)
      const state = Effect.map(samples, (all) => [
        all["practice_data_processor_circuit_open"],
        all['practice_data_dependency_up{dependency="processor"}'],
        all['practice_data_dependency_outages_total{dependency="processor"}']
      ])
      assert.deepStrictEqual(yield* state, [0, 1, 0])
      yield* Effect.forEach(Array.range(1, 5), () => read)
      assert.deepStrictEqual(yield* state, [1, 0, 1])
      // A read that the open circuit refuses is no call.
      yield* read
      assert.strictEqual((yield* samples)[count], 5)
      answer = found
      yield* TestClock.adjust("5 seconds")
      yield* read
      assert.deepStrictEqual(yield* state, [0, 1, 1])
    }).pipe(withRegistry)
  )

  it.effect("for an account that fail open its circuit alone", () =>
    Effect.gen(function* () {
      const { read } = yield* readsOver(() => Effect.fail(new AccountFailed({ reason: "StripePermissionError 403" })))
      yield* Effect.forEach(Array.range(1, 5), () => read)
      const all = yield* samples
      assert.strictEqual(all["practice_data_processor_account_circuits_open"], 1)
      assert.strictEqual(all["practice_data_processor_circuit_open"], 0)
    }).pipe(withRegistry)
  )
})
