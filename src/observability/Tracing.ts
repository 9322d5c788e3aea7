/**
 * Traces: the sampling, the spans, and the header `traceparent`. Effect makes a span of every named function where its
 * tracer is on. It is off here, and on only within a request or a run that is sampled. So all others cost nothing, and
 * background work makes no spans.
 */
import { Cause, Clock, Context, Effect, Exit, Option, Predicate, References, Tracer } from "effect"
import { Hex } from "effect/encoding"
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

/** Decides when the first span of this process is made; all others of the trace follow it. */
export interface Sampler {
  /** Follows the decision of a caller, if there is one. */
  readonly isParentBased: boolean
  /** Decides on a new trace: the same for the same id everywhere. */
  readonly takes: (traceId: string) => boolean
}

const bits = 52

/**
 * Takes a ratio of all ids: by their last 56 bits, which are random, and of these the higher ones, as many as a number
 * holds. A higher ratio takes all ids of a lower one, here and in services that follow the same rule.
 */
const isAmong = (ratio: number) => {
  const threshold = Math.round((1 - ratio) * 2 ** bits)
  return (traceId: string) => Number.parseInt(traceId.slice(18, 18 + bits / 4), 16) >= threshold
}

/** @param ratio of the samplers by ratio: from 0 for none to 1 for all */
export const makeSampler = (name: (typeof samplers)[number], ratio: number): Sampler => ({
  isParentBased: name.startsWith("parentbased_"),
  takes: isAmong(name.endsWith("always_on") ? 1 : name.endsWith("always_off") ? 0 : ratio)
})

/** The tracer and the sampler of this process; undefined if it makes no traces. */
export const Traces = Context.Reference<{ readonly tracer: Tracer.Tracer; readonly sampler: Sampler } | undefined>(
  "practice-data/observability/Tracing/Traces",
  { defaultValue: () => undefined }
)
export type Traces = NonNullable<typeof Traces.Service>

/** The id of the caller's trace, in a request that is not sampled. */
export const CallerTraceId = Context.Reference<string | undefined>(
  "practice-data/observability/Tracing/CallerTraceId",
  {
    defaultValue: () => undefined
  }
)

const traceParentShape = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** A later version may append a little to the four fields. */
const longestTraceParent = 256

const isZero = (id: string) => /^0+$/.test(id)

/** The span of a header `traceparent` of W3C Trace Context. An invalid header is ignored, as the specification says. */
export const parseTraceParent = (header: string | null | undefined): Tracer.ExternalSpan | undefined => {
  if (header == null || header.length > longestTraceParent) return undefined
  const [, version = "ff", traceId = "", spanId = "", flags = "", rest] = traceParentShape.exec(header) ?? []
  if (version === "ff" || (version === "00" && rest !== undefined) || isZero(traceId) || isZero(spanId))
    return undefined
  return Tracer.externalSpan({ traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 })
}

/** The header `traceparent` of a span. */
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
  Predicate.isError(defect)
    ? (defect.stack ?? "")
        .split("\n")
        .filter((line) => /^\s+at /.test(line))
        .join("\n")
        .slice(0, longestStack)
    : ""

/** A failure as the exporter writes it. */
const plain = (kind: string, stack = "") =>
  Exit.fail({ name: kind, message: kind, stack: `${kind}\n${stack}`.trimEnd() })

/**
 * The exit of a span to export. The exporter would write the message of every error, and a message of a database may
 * quote a row: so a span has the kind of an error, the code of a database, and the stack of a bug.
 */
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

/** A tracer whose spans export no messages of errors. */
export const describing = (tracer: Tracer.Tracer): Tracer.Tracer =>
  Tracer.make({
    span: (options) => {
      const span = tracer.span(options)
      const end: Tracer.Span["end"] = (time, exit) => span.end(time, described(span, exit))
      return new Proxy(span, { get: (target, key) => (key === "end" ? end : Reflect.get(target, key)) })
    }
  })

/** A span that is made by hand. The maker ends it. */
interface Made {
  readonly name: string
  readonly kind: Tracer.SpanKind
  /** Nanoseconds since 1970. */
  readonly startTime: bigint
}

export interface Root extends Made {
  /** Spans of other traces that led to this one. */
  readonly links?: ReadonlyArray<Tracer.AnySpan>
}

const make = (
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

/**
 * The first span of a new trace; undefined if it is not sampled.
 *
 * @param before a span that led to this, and decides for a parent-based sampler
 */
export const start = ({ sampler, tracer }: Traces, options: Root, before?: Tracer.AnySpan): Tracer.Span | undefined => {
  const span = make(tracer, undefined, options)
  const isSampled = before !== undefined && sampler.isParentBased ? before.sampled : sampler.takes(span.traceId)
  return isSampled ? span : undefined
}

/** The first span of this process in the trace of a caller. */
export const resume = ({ tracer }: Traces, options: Root, caller: Tracer.ExternalSpan): Tracer.Span =>
  make(tracer, caller, options)

const enabled = Context.make(References.TracerEnabled, true)

/** Runs an effect whose spans are below a span. */
export const within =
  (span: Tracer.AnySpan) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideContext(effect, Context.add(enabled, Tracer.ParentSpan, span))

/** The wall clock, in nanoseconds. */
export const now = (context: Context.Context<never>) => Context.get(context, Clock.Clock).currentTimeNanosUnsafe()

/** True if spans are made in a context. */
export const isTraced = (context: Context.Context<never>): boolean => Context.get(context, References.TracerEnabled)

/** A span below the one of a context, if that is sampled. */
export const child = (
  context: Context.Context<never>,
  name: string,
  { kind = "internal", startTime = now(context) }: Partial<Omit<Made, "name">> = {}
): Tracer.Span | undefined => {
  const parent = isTraced(context) ? Context.getOrUndefined(context, Tracer.ParentSpan) : undefined
  return parent?.sampled === true
    ? make(Context.get(context, Tracer.Tracer), parent, { name, kind, startTime })
    : undefined
}

/** Makes a span of an effect where the tracer is on. For every request: `Effect.fn` takes a stack trace. */
export const spanned =
  (name: string, attributes: Readonly<Record<string, unknown>>) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.contextWith((context: Context.Context<R>): Effect.Effect<A, E, R> =>
      isTraced(context) ? Effect.withSpan(effect, name, { attributes }) : effect
    )

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

/** The current span, if it is sampled. */
const currentSpan: Effect.Effect<Tracer.AnySpan | undefined> = Effect.withFiber((fiber) =>
  Effect.succeed(fiber.cache.tracerEnabled && fiber.cache.span?.sampled === true ? fiber.cache.span : undefined)
)

/**
 * The `traceparent` of a call to another service; undefined if this process makes no traces. A request that is not
 * sampled says so, in the caller's trace if there is one, so that no service decides again.
 */
export const outgoing: Effect.Effect<string | undefined> = Effect.withFiber((fiber) =>
  fiber.getRef(Traces) === undefined
    ? Effect.undefined
    : Effect.map(currentSpan, (span) => {
        const traceId = fiber.getRef(CallerTraceId) ?? Hex.random(32)
        return traceParentOf(span ?? { traceId, spanId: Hex.random(16), sampled: false })
      })
)

/** The `traceparent` by which later work is linked to the current span; undefined if that is not sampled. */
export const currentTraceParent: Effect.Effect<string | undefined> = Effect.map(currentSpan, (span) =>
  span === undefined ? undefined : traceParentOf(span)
)
