/** Which requests are sampled, and which span a caller names. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, References, Tracer } from "effect"
import { HttpServerRequest } from "effect/http"
import { Account } from "../../../src/observability/RequestFacts.ts"
import * as ServerSpan from "../../../src/observability/ServerSpan.ts"
import * as Tracing from "../../../src/observability/Tracing.ts"

const [traceId, spanId] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"]

const parent = (sampled: boolean) => Tracing.parseTraceParent(`00-${traceId}-${spanId}-0${sampled ? 1 : 0}`)

describe("a sampler", () => {
  it.each([
    ["always_on", true, true, true],
    ["always_off", false, false, false],
    ["parentbased_always_on", true, true, false],
    ["parentbased_always_off", false, true, false],
    ["parentbased_traceidratio", false, true, false],
    ["traceidratio", false, false, false]
  ] as const)("%s without a parent, with a sampled one, and with one that is not", (name, alone, taken, left) => {
    const traces = { tracer: Tracer.nativeTracer, sampler: Tracing.makeSampler(name, 0) }
    const root = { name: "run", kind: "internal", startTime: 0n } as const
    assert.deepStrictEqual(
      [undefined, parent(true), parent(false)].map((before) => Tracing.start(traces, root, before) !== undefined),
      [alone, taken, left]
    )
  })

  // The threshold of a probability in the specification: 56 bits from the right, and those at or above it are taken.
  it.each([
    [0.5, "ffffffffffffffffff80000000000000", true],
    [0.5, "0000000000000000007fffffffffffff", false],
    [0.25, "000000000000000000c0000000000000", true],
    [0.25, "ffffffffffffffffffbfffffffffffff", false]
  ])("of ratio %d decides on %s by its last 56 bits", (ratio, id, isTaken) => {
    assert.strictEqual(Tracing.makeSampler("parentbased_traceidratio", ratio).takes(id), isTaken)
  })
})

describe("a traceparent", () => {
  it.each([true, false])("is read as it is written, sampled: %s", (sampled) => {
    assert.deepInclude(parent(sampled), { traceId, spanId, sampled })
  })

  it.each([null, "garbage", `00-${"0".repeat(32)}-${spanId}-01`])("that is %j is as if there were none", (header) =>
    assert.isUndefined(Tracing.parseTraceParent(header))
  )
})

describe("a request whose caller chose an id that is sampled", () => {
  const given = { id: "id", method: "POST", path: "/", endpoint: "/", userAgent: undefined, address: undefined }
  // A sampler by ratio takes it, however small the ratio.
  const headers = { traceparent: `00-${"f".repeat(32)}-${spanId}-01` }
  const request = HttpServerRequest.fromWeb(new Request("http://localhost/", { headers }))

  it.each([
    ["traceidratio", false],
    ["parentbased_always_off", true]
  ] as const)("is sampled by %s only if it has a key: %s", (name, isSampled) => {
    const traces = { tracer: Tracer.nativeTracer, sampler: Tracing.makeSampler(name, 0.000_001) }
    const found = ServerSpan.sample(Context.make(Tracing.Traces, traces), request, new Account(given))
    assert.isUndefined(found?.withoutKey)
    assert.strictEqual(found?.withKey !== undefined, isSampled)
  })
})

it("an exported text is one line, bounded, and without secrets", () => {
  const span = Tracing.make(Tracing.describing(Tracer.nativeTracer), undefined, {
    name: "a",
    kind: "client",
    startTime: 0n
  })
  span.attribute("text", `  select 1\n  from a where b = 'Bearer secret' ${"x".repeat(5000)}`)
  assert.match(String(span.attributes.get("text")), /^select 1 from a where b = 'Bearer …' x{4000,}…/)
})

describe("a run within a trace", () => {
  it.effect("is linked to it, and where it is not sampled, says nothing in its name", () =>
    Effect.gen(function* () {
      const spans: Tracer.NativeSpan[] = []
      const tracer = Tracer.make({
        span: (options) => {
          const span = new Tracer.NativeSpan(options)
          spans.push(span)
          return span
        }
      })
      const decisions = [true, false, true]
      const sampler = { isParentBased: false, takes: () => decisions.shift() ?? false }
      const run = Effect.andThen(
        Effect.annotateCurrentSpan("annotated", true),
        Effect.withSpan(Effect.void, "statement")
      ).pipe(Tracing.root({ name: "run", kind: "internal" }))
      yield* Effect.andThen(run, run).pipe(
        Tracing.root({ name: "round", kind: "internal" }),
        Effect.provideService(Tracing.Traces, { tracer, sampler }),
        Effect.provideService(Tracer.Tracer, tracer),
        Effect.provideService(References.TracerEnabled, false)
      )
      const ended = spans.filter(({ status }) => status._tag === "Ended")
      const [round, sampled] = ended
      assert.deepStrictEqual(
        ended.map(({ attributes, links, name }) => [
          name,
          attributes.has("annotated"),
          links.map(({ span }) => span.spanId)
        ]),
        [
          ["round", false, []],
          ["run", true, [round?.spanId]],
          ["statement", false, []]
        ]
      )
      assert.notStrictEqual(sampled?.traceId, round?.traceId)
      assert.strictEqual(ended[2]?.traceId, sampled?.traceId)
    })
  )
})
