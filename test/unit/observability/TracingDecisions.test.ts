/** Which requests are sampled, and which span a caller names. */
import { assert, describe, it } from "@effect/vitest"
import { Array, Effect, References, Tracer } from "effect"
import { Hex } from "effect/encoding"
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
    const traces = {
      tracer: Tracer.make({ span: (options) => new Tracer.NativeSpan(options) }),
      sampler: Tracing.makeSampler(name, 0)
    }
    const root = { name: "run", kind: "internal", startTime: 0n } as const
    assert.deepStrictEqual(
      [undefined, parent(true), parent(false)].map((before) => Tracing.start(traces, root, before) !== undefined),
      [alone, taken, left]
    )
  })

  it("by ratio takes so many of all, and all that a smaller ratio takes", () => {
    const ids = Array.makeBy(20_000, () => Hex.random(32))
    const takenAt = (ratio: number) => ids.filter(Tracing.makeSampler("traceidratio", ratio).takes)
    assert.strictEqual(takenAt(1).length, ids.length)
    assert.strictEqual(takenAt(0).length, 0)
    const [few, half] = [takenAt(0.01), new Set(takenAt(0.5))]
    assert.isAbove(few.length, 120)
    assert.isBelow(few.length, 280)
    assert.isAbove(half.size, 9600)
    assert.isBelow(half.size, 10_400)
    assert.isTrue(few.every((id) => half.has(id)))
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
    const header = `00-${traceId}-${spanId}-0${sampled ? 1 : 0}`
    const found = Tracing.parseTraceParent(header)
    assert.deepInclude(found, { traceId, spanId, sampled })
    assert.strictEqual(found && Tracing.traceParentOf(found), header)
  })

  it.each([undefined, null, "", "garbage", `00-${"0".repeat(32)}-${spanId}-01`, `00-${traceId}-${spanId}`])(
    "that is %j is as if there were none",
    (header) => assert.isUndefined(Tracing.parseTraceParent(header))
  )
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
