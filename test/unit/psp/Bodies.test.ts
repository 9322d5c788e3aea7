/** The limits of the processor's bodies: of each, and of all together. */
import { assert, describe, it } from "@effect/vitest"
import { Data, Effect, Fiber } from "effect"
import { BodyTooLarge, bodyReader } from "../../../src/psp/StripeClient.ts"

class Rejected extends Data.TaggedError("Rejected")<{ readonly why: unknown }> {}

const make = () => {
  const read = bodyReader({ each: 10, together: 15 })
  return (response: Response) => Effect.tryPromise({ try: () => read(response), catch: (why) => new Rejected({ why }) })
}

/** A body of pieces of so many bytes, which then ends or says nothing more; and whether it was given up. */
const bodyOf = (pieces: ReadonlyArray<number>, hangs = false, headers: Readonly<Record<string, string>> = {}) => {
  const state = { isGivenUp: false, pieces: 0 }
  const stream = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        const size = pieces[state.pieces]
        state.pieces += 1
        if (size !== undefined) controller.enqueue(new Uint8Array(size))
        else if (!hangs) controller.close()
      },
      cancel: () => {
        state.isGivenUp = true
      }
    },
    { highWaterMark: 0 }
  )
  return { response: new Response(stream, { headers }), state }
}

const aTurn = Effect.promise(() => Promise.resolve())
const fork = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkChild(effect, { startImmediately: true })

describe("BoundedBody", () => {
  it.effect("reads bodies of the limit, one after the other", () =>
    Effect.gen(function* () {
      const read = make()
      for (const _ of [1, 2, 3, 4]) assert.lengthOf(yield* read(bodyOf([4, 6]).response), 10)
      assert.lengthOf(yield* read(new Response(null)), 0)
    })
  )

  it.effect("gives a body up at the first byte past the limit", () =>
    Effect.gen(function* () {
      const { response, state } = bodyOf([5, 5, 1, 1, 1])
      assert.deepStrictEqual((yield* Effect.flip(make()(response))).why, new BodyTooLarge({ limit: "each" }))
      assert.deepStrictEqual(state, { isGivenUp: true, pieces: 3 })
    })
  )

  it.effect("does not begin to read a body that says that it is larger", () =>
    Effect.gen(function* () {
      const { response, state } = bodyOf([5, 5], false, { "content-length": "11" })
      assert.deepStrictEqual((yield* Effect.flip(make()(response))).why, new BodyTooLarge({ limit: "each" }))
      assert.deepStrictEqual(state, { isGivenUp: true, pieces: 0 })
    })
  )

  it.effect("gives a body up that does not fit beside the ones being read, until these end", () =>
    Effect.gen(function* () {
      const read = make()
      const first = bodyOf([10], true)
      const reading = yield* fork(read(first.response))
      yield* Effect.repeat(aTurn, { until: () => first.state.pieces > 1 })
      const second = bodyOf([5, 1])
      assert.deepStrictEqual((yield* Effect.flip(read(second.response))).why, new BodyTooLarge({ limit: "together" }))
      assert.isTrue(second.state.isGivenUp)
      assert.lengthOf(yield* read(bodyOf([5]).response), 5)
      assert.isUndefined(reading.pollUnsafe())
      yield* Fiber.interrupt(reading)
    })
  )
})
