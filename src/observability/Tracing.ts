/**
 * Traces: the sampling, the spans, and the header `traceparent`. Effect makes a span of every named function where its
 * tracer is on. It is off here, and on only within a request or a run that is sampled. So all others cost nothing, and
 * background work makes no spans.
 */
import { Cause, Clock, Context, Effect, Exit, type Fiber, Option, Predicate, References, Tracer } from "effect"
import { Hex } from "effect/encoding"
import { Headers, HttpTraceContext } from "effect/http"
import { isSqlError } from "effect/sql/SqlError"

/** The samplers of OpenTelemetry: the values of `OTEL_TRACES_SAMPLER`. */
export const samplers = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio"
] as const

const bits = 52

/**
 * Decides when the first span of this process is made; all others of the trace follow it. By ratio, the last 56 bits of an
 * id decide, which are random, and of these the higher ones, as many as a number holds. A higher ratio takes all ids of a
 * lower one, here and in services that follow the same rule.
 */
export const makeSampler = (name: (typeof samplers)[number], ratio: number) => {
  const share = name.endsWith("always_on") ? 1 : name.endsWith("always_off") ? 0 : ratio
  const threshold = Math.round((1 - share) * 2 ** bits)
  return {
    /** Follows the decision of a caller, if there is one. */
    isParentBased: name.startsWith("parentbased_"),
    takes: (traceId: string) => Number.parseInt(traceId.slice(18, 18 + bits / 4), 16) >= threshold
  }
}

type Sampler = ReturnType<typeof makeSampler>

/** The tracer and the sampler of this process; undefined if it makes no traces. */
export const Traces = Context.Reference<{ readonly tracer: Tracer.Tracer; readonly sampler: Sampler } | undefined>(
  "practice-data/observability/Tracing/Traces",
  { defaultValue: () => undefined }
)
export type Traces = NonNullable<typeof Traces.Service>

/** The id of the caller's trace, in a request that is not sampled. */
export const CallerTraceId = Context.Reference<string | undefined>(
  "practice-data/observability/Tracing/CallerTraceId",
  { defaultValue: () => undefined }
)

/** The span of a `traceparent` of W3C Trace Context. An invalid one, or one of another version, is ignored. */
export const parseTraceParent = (traceparent: string | null | undefined): Tracer.ExternalSpan | undefined =>
  traceparent == null
    ? undefined
    : Option.getOrUndefined(HttpTraceContext.w3c(Headers.fromRecordUnsafe({ traceparent })))

export const traceParentOf = (span: Pick<Tracer.AnySpan, "traceId" | "spanId" | "sampled">): string =>
  `00-${span.traceId}-${span.spanId}-${span.sampled ? "01" : "00"}`

/** The attribute of a span that failed: one of a few kinds of errors. */
export const errorType = "error.type"

const longestKind = 64
const longestStack = 4096

/** An error of the client is no failure of this service. */
const isOfClient = (error: unknown) =>
  Predicate.hasProperty(error, "httpApiStatus") && Number(error.httpApiStatus) < 500

const kindOf = (error: unknown): string => {
  if (isSqlError(error)) return error.reason._tag
  const named = Predicate.hasProperty(error, "_tag") ? error._tag : Predicate.isError(error) ? error.name : typeof error
  return String(named).slice(0, longestKind)
}

const codeOf = (error: unknown) => {
  const cause = isSqlError(error) ? error.reason.cause : undefined
  const code = Predicate.hasProperty(cause, "code") ? cause.code : undefined
  return Predicate.isString(code) && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/** The stack of a bug, without its message. */
const stackOf = (defect: unknown) =>
  (Predicate.isError(defect) ? (defect.stack ?? "") : "")
    .split("\n")
    .filter((line) => /^\s+at /.test(line))
    .join("\n")
    .slice(0, longestStack)

/** A failure as the exporter writes it. */
const plain = (kind: string, stack = "") =>
  Exit.fail({ name: kind, message: kind, stack: `${kind}\n${stack}`.trimEnd() })

/** The exit of a span to export, and attributes that describe it. */
const described = (span: Tracer.Span, exit: Exit.Exit<unknown, unknown>): Exit.Exit<unknown, unknown> => {
  const attribute = span.attributes.get(errorType)
  const given = Predicate.isString(attribute) ? attribute : undefined
  if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)) return given === undefined ? exit : plain(given)
  const isBug = !exit.cause.reasons.some(Cause.isFailReason)
  const error = Cause.squash(exit.cause)
  if (!isBug && isOfClient(error)) return Exit.void
  const kind = kindOf(error)
  if (given === undefined) span.attribute(errorType, kind)
  const code = codeOf(error)
  if (code !== undefined) span.attribute("db.response.status_code", code)
  return plain(kind, isBug ? stackOf(error) : "")
}

type SpanOptions = ConstructorParameters<typeof Tracer.NativeSpan>[0]

/**
 * A span that is exported when it ends. The exporter would write the message of every error, and a message of a database
 * may quote a row: it gets the kind of an error, the code of a database, and the stack of a bug.
 */
class DescribedSpan extends Tracer.NativeSpan {
  readonly #exported: Tracer.Span

  constructor(options: SpanOptions, exported: Tracer.Span) {
    super(options)
    this.#exported = exported
  }

  override get traceId() {
    return this.#exported.traceId
  }

  override get spanId() {
    return this.#exported.spanId
  }

  override end(time: bigint, exit: Exit.Exit<unknown, unknown>) {
    const shown = described(this, exit)
    super.end(time, exit)
    for (const [name, value] of this.attributes) this.#exported.attribute(name, value)
    for (const event of this.events) this.#exported.event(...event)
    this.#exported.end(time, shown)
  }
}

/** A tracer whose spans export no messages of errors. */
export const describing = (tracer: Tracer.Tracer): Tracer.Tracer =>
  Tracer.make({ span: (options) => new DescribedSpan(options, tracer.span(options)) })

/** A span that is made by hand. The maker ends it. */
export interface Root {
  readonly name: string
  readonly kind: Tracer.SpanKind
  /** Nanoseconds since 1970. */
  readonly startTime: bigint
  /** Spans of other traces that led to this one. */
  readonly links?: ReadonlyArray<Tracer.AnySpan>
}

/** Makes a span that is sampled: the first of a new trace without a parent. */
export const make = (
  tracer: Tracer.Tracer,
  parent: Tracer.AnySpan | undefined,
  { kind, links = [], name, startTime }: Root
): Tracer.Span =>
  tracer.span({
    name,
    kind,
    startTime,
    parent: Option.fromUndefinedOr(parent),
    links: links.map((span) => ({ span, attributes: {} })),
    annotations: Context.empty(),
    root: parent === undefined,
    sampled: true
  })

/** The first span of a new trace, if it is sampled. A span that led to it decides for a parent-based sampler. */
export const start = ({ sampler, tracer }: Traces, options: Root, before?: Tracer.AnySpan): Tracer.Span | undefined => {
  const span = make(tracer, undefined, options)
  const isSampled = before !== undefined && sampler.isParentBased ? before.sampled : sampler.takes(span.traceId)
  return isSampled ? span : undefined
}

const enabled = Context.make(References.TracerEnabled, true)

/** Runs an effect whose spans are below a span. */
export const within =
  (span: Tracer.AnySpan) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideContext(effect, Context.add(enabled, Tracer.ParentSpan, span))

/** The wall clock, in nanoseconds. */
export const now = (context: Context.Context<never>) => Context.get(context, Clock.Clock).currentTimeNanosUnsafe()

/** Makes a span of an effect where the tracer is on. For every request: `Effect.fn` takes a stack trace. */
export const spanned =
  (name: string, attributes: Readonly<Record<string, unknown>>) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber): Effect.Effect<A, E, R> =>
      fiber.cache.tracerEnabled ? Effect.withSpan(effect, name, { attributes }) : effect
    )

/** The current span, if it is sampled. */
const sampledOf = ({ cache }: Fiber.Fiber<unknown, unknown>) =>
  cache.tracerEnabled && cache.span?.sampled === true ? cache.span : undefined

/** Makes a span below the current one, if that is sampled, of something that ends now. */
export const record = (name: string, startTime: bigint): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    const parent = sampledOf(fiber)
    if (parent !== undefined) {
      make(fiber.getRef(Tracer.Tracer), parent, { name, kind: "internal", startTime }).end(
        fiber.getRef(Clock.Clock).currentTimeNanosUnsafe(),
        Exit.void
      )
    }
    return Effect.void
  })

/** Runs an effect in no trace, within the trace of a span. */
const outside = ({ spanId, traceId }: Tracer.AnySpan) =>
  Effect.provideContext(
    Context.make(References.TracerEnabled, false).pipe(
      Context.add(Tracer.ParentSpan, Tracer.externalSpan({ traceId, spanId, sampled: false }))
    )
  )

/**
 * Runs an effect in a trace of its own, if it is sampled. It is linked to the current span. If one of its links is
 * sampled, so is the trace, as if that were its parent.
 */
export const root =
  ({
    attributes = {},
    ...options
  }: Omit<Root, "startTime"> & {
    readonly startTime?: bigint
    readonly attributes?: Readonly<Record<string, unknown>>
  }) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => {
      const traces = fiber.getRef(Traces)
      if (traces === undefined) return effect
      const clock = fiber.getRef(Clock.Clock)
      const { span: current } = fiber.cache
      const links = [...(options.links ?? []), ...(current === undefined ? [] : [current])]
      const startTime = options.startTime ?? clock.currentTimeNanosUnsafe()
      const before = links.find(({ sampled }) => sampled)
      const span = start(traces, { ...options, links, startTime }, before)
      if (span === undefined) return current === undefined ? effect : outside(current)(effect)
      for (const [key, value] of Object.entries(attributes)) span.attribute(key, value)
      return Effect.onExit(within(span)(effect), (exit) =>
        Effect.sync(() => span.end(clock.currentTimeNanosUnsafe(), exit))
      )
    })

/**
 * The `traceparent` of a call to another service; undefined if this process makes no traces. A request that is not
 * sampled says so, in the caller's trace if there is one, so that no service decides again.
 */
export const outgoing: Effect.Effect<string | undefined> = Effect.withFiber((fiber) => {
  if (fiber.getRef(Traces) === undefined) return Effect.undefined
  const span = sampledOf(fiber)
  const traceId = fiber.getRef(CallerTraceId) ?? Hex.random(32)
  return Effect.succeed(traceParentOf(span ?? { traceId, spanId: Hex.random(16), sampled: false }))
})

/** The `traceparent` by which later work is linked to the current span; undefined if that is not sampled. */
export const currentTraceParent: Effect.Effect<string | undefined> = Effect.withFiber((fiber) => {
  const span = sampledOf(fiber)
  return Effect.succeed(span === undefined ? undefined : traceParentOf(span))
})
