/** Which requests are sampled, by sampler, and who has a say in it. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Sent, send } from "../../support/inProcess.ts"
import { OtlpCollector } from "../../support/OtlpCollector.ts"
import { callerOf, delivery, exported, isOfUse, traced, traceOf } from "./traced.ts"

const live = { excludeTestServices: true, timeout: "1 minute" } as const

const strangers: ReadonlyArray<Sent & { readonly caller: string }> = [
  { caller: "with no key", headers: { authorization: undefined } },
  {
    caller: "with an unknown key",
    headers: { authorization: "Bearer pda_live_0123456789abcdefghijklmnopqrstuv012345" }
  },
  { caller: "with a key of another form", headers: { authorization: "Bearer a-key" } },
  { caller: "at the intake", ...delivery("of a stranger") },
  { caller: "at an unknown path", path: "/nothing" }
]

layer(traced({ OTEL_TRACES_SAMPLER: "always_on" }), live)("the trace of a caller", (it) => {
  it.effect.each(strangers)("$caller is another one, and linked to it", (request) =>
    Effect.gen(function* () {
      const caller = callerOf("00")
      yield* send({ ...request, headers: { ...request.headers, ...caller.headers } })
      const { root } = yield* traceOf(caller.traceId)
      assert.notStrictEqual(root.traceId, caller.traceId)
      assert.strictEqual(root.parentSpanId, "")
      assert.deepStrictEqual(root.links, [{ traceId: caller.traceId, spanId: caller.spanId }])
    })
  )
})

// An id that a sampler by ratio takes, however small the ratio.
const chosen = { traceparent: `00-${"f".repeat(32)}-00f067aa0ba902b7-01` }

layer(traced({ OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.000001" }), live)("by ratio", (it) => {
  it.effect("no caller can choose to be sampled", () =>
    Effect.gen(function* () {
      for (const { headers, ...request } of [{}, ...strangers])
        for (let times = 0; times < 5; times++) yield* send({ ...request, headers: { ...headers, ...chosen } })
      yield* exported
      const { spans } = yield* OtlpCollector
      assert.deepStrictEqual(yield* spans, [])
    })
  )
})

layer(traced({ OTEL_TRACES_SAMPLER: "parentbased_always_off" }), live)("by parent", (it) => {
  it.effect("only a caller with a valid key chooses to be sampled", () =>
    Effect.gen(function* () {
      for (const { headers, ...request } of strangers) yield* send({ ...request, headers: { ...headers, ...chosen } })
      const caller = callerOf("01")
      yield* send({ headers: caller.headers })
      const { all } = yield* traceOf(caller.traceId)
      const { spans } = yield* OtlpCollector
      assert.sameMembers(
        (yield* spans).filter((span) => !isOfUse(span)).map(({ spanId }) => spanId),
        all.map(({ spanId }) => spanId)
      )
    })
  )
})
