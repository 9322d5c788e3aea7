/** The sampling of requests and of runs, and what an exported span holds. */
import { assert, it } from "@effect/vitest"
import { Context, Effect, identity, Layer, Option, References, Tracer } from "effect"
import { TestClock } from "effect/testing"
import { startSpan } from "../../../src/observability/RequestFacts.ts"
import * as Tracing from "../../../src/observability/Tracing.ts"
import { keeping } from "../../support/Recorded.ts"

const [traceId, spanId] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"]

// The threshold of a probability in the specification: 56 bits from the right, and those at or above it are taken.
it.each([
  [0.5, "ffffffffffffffffff80000000000000", true],
  [0.5, "0000000000000000007fffffffffffff", false],
  [0.25, "000000000000000000c0000000000000", true],
  [0.25, "ffffffffffffffffffbfffffffffffff", false]
])("a ratio of %d decides on %s by its last 56 bits", (ratio, id, isTaken) => {
  assert.strictEqual(Tracing.isTaken(ratio, id), isTaken)
})

const given = { id: "id", method: "POST", path: "/", endpoint: "/", userAgent: undefined, address: undefined }
const caller = `00-${traceId}-${spanId}`

it.each([
  [0, undefined, false],
  [1, undefined, true],
  [0, `${caller}-01`, true],
  [1, `${caller}-00`, false],
  [0, "garbage", false],
  [1, `00-${"0".repeat(32)}-${spanId}-00`, true]
] as const)("with a ratio of %d, a request with the traceparent %s is traced: %s", (ratio, traceparent, isTraced) => {
  const traces = { tracer: Tracer.nativeTracer, describe: identity, ratio }
  const span = startSpan(Context.make(Tracing.Traces, traces), traceparent, given)
  assert.strictEqual(span !== undefined, isTraced)
  const parent = Option.getOrUndefined(span?.parent ?? Option.none())
  const continued = traceparent?.startsWith(caller) === true && isTraced ? [traceId, spanId] : [undefined, undefined]
  assert.deepStrictEqual([parent?.traceId, parent?.spanId], continued)
})

it.effect("an exported span has a bounded text without secrets, no event, and a true duration", () =>
  Effect.gen(function* () {
    const { spans, tracer } = keeping()
    yield* Effect.flatMap(Effect.currentSpan, (span) => {
      span.attribute("text", `  select 1\n  from a where b = 'Bearer secret' ${"x".repeat(5000)}`)
      span.event("a line", 0n, { text: "secret" })
      return Effect.andThen(TestClock.setTime(-600_000), TestClock.adjust("1 second"))
    }).pipe(Effect.withSpan("a"), Effect.provide(Layer.provide(Tracing.layer(1), Layer.succeed(Tracer.Tracer, tracer))))
    assert.match(String(spans[0]?.attributes.get("text")), /^select 1 from a where b = 'Bearer …' x{4000,}…/)
    assert.deepStrictEqual(spans[0]?.events, [])
    assert.deepInclude(spans[0]?.status, { startTime: 0n, endTime: 1_000_000_000n })
  })
)

it.effect.each([
  [1, true],
  [0, false]
] as const)("with a ratio of %d, a run is a trace of its own: %s", ([ratio, isTraced]) =>
  Effect.gen(function* () {
    const { spans, tracer } = keeping()
    yield* Effect.withSpan(Effect.void, "statement").pipe(
      Tracing.root({ name: "run", kind: "internal" }),
      Effect.provideService(Tracing.Traces, { tracer, describe: identity, ratio }),
      Effect.provideService(Tracer.Tracer, tracer),
      Effect.provideService(References.TracerEnabled, false)
    )
    const [run, statement] = spans
    const expected = isTraced ? ["Ended", "statement"] : ["Started", undefined]
    assert.deepStrictEqual([run?.status._tag, statement?.name], expected)
    assert.strictEqual(run?.parent._tag, "None")
    if (isTraced) assert.strictEqual(statement?.traceId, run?.traceId)
  })
)
