/**
 * Traces: when one is made, and of what. Effect makes a span of every named function where its tracer is on. Here it is
 * off, also while traces are exported, and on only in a request or a run that is sampled. So all others cost nothing, and
 * what the service does by itself each second makes no spans.
 */
import { Clock, Context, Effect, type Exit, Option, References, Tracer } from "effect"
import { Hex } from "effect/encoding"
import { CurrentRequest } from "./RequestFacts.ts"
import * as Sampler from "./Sampler.ts"
import * as SpanEnd from "./SpanEnd.ts"
import * as TraceParent from "./TraceParent.ts"

/** How this process makes traces. */
export interface Traces {
  readonly tracer: Tracer.Tracer
  readonly sampler: Sampler.Sampler
}

/** How this process makes traces; nothing where it makes none. */
export const Traces = Context.Reference<Traces | undefined>("practice-data/observability/Tracing/Traces", {
  defaultValue: () => undefined
})

/** A tracer whose spans say how they ended as `SpanEnd` does. */
export const describing = (tracer: Tracer.Tracer): Tracer.Tracer =>
  Tracer.make({
    span: (options) => {
      const span = tracer.span(options)
      const end = span.end.bind(span)
      span.end = (time, exit) => end(time, SpanEnd.describe(span, exit))
      return span
    }
  })

export interface Root {
  readonly name: string
  readonly kind: Tracer.SpanKind
  /** The caller's span, in another service. */
  readonly parent?: Tracer.ExternalSpan | undefined
  /** Spans of other traces that led to this one. */
  readonly links?: ReadonlyArray<Tracer.AnySpan>
  /** Nanoseconds since 1970. */
  readonly startTime: bigint
}

const none: ReadonlyArray<Tracer.AnySpan> = []

/**
 * The id of a trace that begins here; undefined if it is not sampled.
 *
 * @param before a span that led to this, and decides for a parent-based sampler
 */
export const sample = ({ sampler }: Traces, before?: Tracer.AnySpan) => {
  const traceId = Hex.random(32)
  return Sampler.isSampled(sampler, traceId, before) ? traceId : undefined
}

/** The first span of a trace in this process. */
export const start = ({ tracer }: Traces, traceId: string, { kind, links = none, name, parent, startTime }: Root) => {
  const span = tracer.span({
    name,
    kind,
    startTime,
    parent: Option.fromUndefinedOr(parent),
    links: links.map((linked) => ({ span: linked, attributes: {} })),
    annotations: Context.empty(),
    root: parent === undefined,
    sampled: true
  })
  // The tracer would make another one, which nobody has decided on.
  return Object.defineProperty(span, "traceId", { value: traceId })
}

const enabled = Context.make(References.TracerEnabled, true)

/** Runs an effect whose spans are below a span. */
export const within =
  (span: Tracer.AnySpan) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideContext(effect, Context.add(enabled, Tracer.ParentSpan, span))

/** Time on the wall clock, in nanoseconds. */
export const now = (context: Context.Context<never>) => Context.get(context, Clock.Clock).currentTimeNanosUnsafe()

/** Whether spans are made in a context. */
export const isTraced = (context: Context.Context<never>): boolean => Context.get(context, References.TracerEnabled)

/** A span below the one of a context, where that is sampled. Whoever makes it ends it. */
export const child = (
  context: Context.Context<never>,
  name: string,
  { kind = "internal", startTime = now(context) }: Partial<Pick<Root, "kind" | "startTime">> = {}
): Tracer.Span | undefined => {
  const parent = isTraced(context) ? Context.getOrUndefined(context, Tracer.ParentSpan) : undefined
  return parent?.sampled === true
    ? Context.get(context, Tracer.Tracer).span({
        name,
        kind,
        startTime,
        parent: Option.some(parent),
        links: [],
        annotations: Context.empty(),
        root: false,
        sampled: true
      })
    : undefined
}

/** Makes a span of an effect where the tracer is on. For what runs in every request: `Effect.fn` takes a stack trace. */
export const spanned =
  (name: string, attributes: Readonly<Record<string, unknown>>) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.contextWith((context: Context.Context<R>): Effect.Effect<A, E, R> =>
      isTraced(context) ? Effect.withSpan(effect, name, { attributes }) : effect
    )

/** Runs an effect that is in no trace, whatever is around it. */
const outside = ({ spanId, traceId }: Tracer.AnySpan) =>
  Effect.provideContext(
    Context.make(References.TracerEnabled, false).pipe(
      Context.add(Tracer.ParentSpan, Tracer.externalSpan({ traceId, spanId, sampled: false }))
    )
  )

/**
 * Runs an effect in a trace of its own, if it is sampled. It is linked to the span around it. If one of its links is
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
      const { span: around } = fiber.cache
      const links = around === undefined ? (options.links ?? none) : [...(options.links ?? none), around]
      const traceId = sample(
        traces,
        links.find(({ sampled }) => sampled)
      )
      if (traceId === undefined) return around === undefined ? effect : outside(around)(effect)
      const startTime = options.startTime ?? clock.currentTimeNanosUnsafe()
      const span = start(traces, traceId, { ...options, links, startTime })
      for (const [key, value] of Object.entries(attributes)) span.attribute(key, value)
      const end = (exit: Exit.Exit<unknown, unknown>) =>
        Effect.sync(() => span.end(clock.currentTimeNanosUnsafe(), exit))
      return Effect.onExit(within(span)(effect), end)
    })

/** The span around, where one is sampled. */
const currentSpan: Effect.Effect<Tracer.AnySpan | undefined> = Effect.withFiber((fiber) =>
  Effect.succeed(fiber.cache.tracerEnabled && fiber.cache.span?.sampled === true ? fiber.cache.span : undefined)
)

/**
 * The `traceparent` of a call to another service; nothing where no traces are made. Of a request that is not sampled it
 * says so, and goes on with the caller's trace where there is one, so that nobody decides again.
 */
export const outgoing: Effect.Effect<string | undefined> = Effect.withFiber((fiber) => {
  if (fiber.getRef(Traces) === undefined) return Effect.undefined
  const { span, tracerEnabled } = fiber.cache
  if (tracerEnabled && span?.sampled === true) return Effect.succeed(TraceParent.format(span))
  const traceId = fiber.getRef(CurrentRequest)?.trace?.traceId ?? Hex.random(32)
  return Effect.succeed(TraceParent.format({ traceId, spanId: Hex.random(16), sampled: false }))
})

/** The `traceparent` by which something later can be linked to what happens now; nothing where that is not sampled. */
export const currentTraceParent: Effect.Effect<string | undefined> = Effect.map(currentSpan, (span) =>
  span === undefined ? undefined : TraceParent.format(span)
)
