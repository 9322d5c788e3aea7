/** The memory that large bodies share, and what is answered when there is no more of it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { HttpServerRequest } from "effect/http"
import { Budget, readBody } from "../../../src/http/JsonBodyServer.ts"

const kibibyte = 1024

/** A request of a body that arrives in pieces of 16 KiB, its length announced or not. */
const requestOf = (size: number, headers: Readonly<Record<string, string>> = { "content-length": String(size) }) => {
  let left = size
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      const piece = Math.min(left, 16 * kibibyte)
      left -= piece
      if (piece > 0) controller.enqueue(new Uint8Array(piece).fill(0x20))
      else controller.close()
    }
  })
  return HttpServerRequest.fromWeb(new Request("http://localhost/", { method: "POST", headers, body, duplex: "half" }))
}

const limit = 1024 * kibibyte

/** Reads bodies of these sizes, each in a scope that stays open, and says which were read. */
const readAll = (budget: Budget, sizes: ReadonlyArray<number>, headers?: Readonly<Record<string, string>>) =>
  Effect.forEach(sizes, (size) =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const read = yield* Effect.exit(
        Scope.provide(readBody(requestOf(size, headers), { maxBytes: limit, budget }), scope)
      )
      return { scope, read }
    })
  )

const lengthOf = ({ read }: { readonly read: Exit.Exit<Uint8Array, unknown> }) =>
  Exit.isSuccess(read) ? read.value.length : undefined

describe("large bodies", () => {
  it.effect("share the memory beyond the first 64 KiB of each", () =>
    Effect.gen(function* () {
      const budget = new Budget(200 * kibibyte)
      const sizes = [164, 164, 65, 64, 10].map((size) => size * kibibyte)
      const read = yield* readAll(budget, sizes)
      assert.deepStrictEqual(read.map(lengthOf), [...sizes.slice(0, 2), undefined, ...sizes.slice(3)])
    })
  )

  it.effect("give it back when their requests are over, read or not", () =>
    Effect.gen(function* () {
      const budget = new Budget(200 * kibibyte)
      for (let round = 0; round < 5; round++) {
        const read = yield* readAll(budget, [264 * kibibyte, 300 * kibibyte, 10 * limit])
        assert.deepStrictEqual(read.map(lengthOf), [264 * kibibyte, undefined, undefined])
        for (const { scope } of read) yield* Scope.close(scope, Exit.void)
      }
      assert.isTrue(budget.take(200 * kibibyte))
      assert.isFalse(budget.take(1))
    })
  )

  it.effect("are counted by what was received, whatever they announce", () =>
    Effect.gen(function* () {
      const budget = new Budget(100 * kibibyte)
      const chunked = { "transfer-encoding": "chunked" }
      const read = yield* readAll(budget, [164 * kibibyte, 65 * kibibyte], chunked)
      assert.deepStrictEqual(read.map(lengthOf), [164 * kibibyte, undefined])
      const small = yield* readAll(new Budget(0), [64 * kibibyte], { "content-length": String(limit) })
      assert.deepStrictEqual(small.map(lengthOf), [64 * kibibyte])
    })
  )

  it.effect("are refused at the byte that is too much, announced or not", () =>
    Effect.gen(function* () {
      const budget = new Budget(10 * limit)
      for (const headers of [undefined, { "transfer-encoding": "chunked" }]) {
        const read = yield* readAll(budget, [limit, limit + 1], headers)
        assert.deepStrictEqual(read.map(lengthOf), [limit, undefined])
      }
    })
  )
})
