/** The limits of the processor's bodies: of each, and of all together. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { BodyTooLarge, bodyReader } from "../../../src/psp/StripeClient.ts"

const make = () => {
  const read = bodyReader({ each: 10, together: 15 })
  return (response: Response) => Effect.tryPromise({ try: () => read(response), catch: (cause) => ({ cause }) })
}

/** A body of pieces of these sizes, which then ends or hangs; how many were asked for, and whether it was cancelled. */
const bodyOf = (sizes: ReadonlyArray<number>, hangs = false, headers: Readonly<Record<string, string>> = {}) => {
  const state = { isCancelled: false, pieces: 0 }
  const stream = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        const size = sizes[state.pieces]
        state.pieces += 1
        if (size !== undefined) controller.enqueue(new Uint8Array(size))
        else if (!hangs) controller.close()
      },
      cancel: () => {
        state.isCancelled = true
      }
    },
    { highWaterMark: 0 }
  )
  return { response: new Response(stream, { headers }), state }
}

describe("bodies of the processor", () => {
  it.effect("up to the limit are read, one after the other", () =>
    Effect.gen(function* () {
      const read = make()
      for (const _ of [1, 2, 3, 4]) assert.lengthOf(yield* read(bodyOf([4, 6]).response), 10)
      assert.lengthOf(yield* read(new Response(null)), 0)
    })
  )

  it.effect.each([
    ["at the first byte past it", bodyOf([5, 5, 1, 1, 1]), 3],
    ["unread, if its length says so", bodyOf([5, 5], false, { "content-length": "11" }), 0]
  ] as const)("past the limit are cancelled %s", ([, { response, state }, pieces]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* Effect.flip(make()(response))).cause, new BodyTooLarge({ limit: "each" }))
      assert.deepStrictEqual(state, { isCancelled: true, pieces })
    })
  )

  it.effect("are cancelled if they do not fit beside the ones being read, until these end", () =>
    Effect.gen(function* () {
      const read = make()
      const first = bodyOf([10], true)
      const reading = yield* Effect.forkChild(read(first.response), { startImmediately: true })
      yield* Effect.repeat(Effect.yieldNow, { until: () => first.state.pieces > 1 })
      const second = bodyOf([5, 1])
      assert.deepStrictEqual((yield* Effect.flip(read(second.response))).cause, new BodyTooLarge({ limit: "together" }))
      assert.isTrue(second.state.isCancelled)
      assert.lengthOf(yield* read(bodyOf([5]).response), 5)
      yield* Fiber.interrupt(reading)
    })
  )
})
