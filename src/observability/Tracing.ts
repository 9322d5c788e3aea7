/**
 * Traces: the sampling, the spans, and the header `traceparent`. Effect makes a span of every named function where its
 * tracer is on. It is off here, and on only within a request or a run that is sampled. So all others cost nothing, and
 * background work makes no spans.
 */
import { Cause, Clock, Context, Effect, Exit, Layer, Option, Predicate, References, Tracer } from "effect"
import { Headers, HttpTraceContext } from "effect/http"
import { isSqlError } from "effect/sql/SqlError"
import { SpanPropagationEnabled } from "effect/sql/Statement"
import { safe } from "./Logging.ts"

/**
 * Decides on the first span of a trace: the last 56 bits of its id decide, which are random, and of these the higher 52,
 * which a number holds. A higher ratio takes all ids of a lower one, as in services with the same rule.
 */
export const isTaken = (ratio: number, traceId: string) =>
  Number.parseInt(traceId.slice(18, 31), 16) >= (1 - ratio) * 2 ** 52

/** The traces of this process. */
export interface Traces {
  /** Makes the first spans of traces. */
  readonly tracer: Tracer.Tracer
  /** Applied to those that are sampled: most are made only for the decision. */
  readonly describe: (span: Tracer.Span) => Tracer.Span
  /** The share of traces that are made, unless their caller decides. */
  readonly ratio: number
}

/** Undefined if this process makes no traces. */
export const Traces = Context.Reference<Traces | undefined>("practice-data/observability/Tracing/Traces", {
  defaultValue: () => undefined
})

/** The span of a `traceparent` of W3C Trace Context. An invalid one, or one of another version, is ignored. */
export const parseTraceParent = (traceparent: string | null | undefined): Tracer.ExternalSpan | undefined =>
  traceparent == null
    ? undefined
    : Option.getOrUndefined(HttpTraceContext.w3c(Headers.fromRecordUnsafe({ traceparent })))

/** The attribute of a span that failed: one of a few kinds of errors. */
export const errorType = "error.type"

/** The most characters of an exported text. */
export const longest = 4096

/** An error of the client is no failure of this service. */
const isOfClient = (error: unknown) =>
  Predicate.hasProperty(error, "httpApiStatus") && Number(error.httpApiStatus) < 500

const errorKind = (error: unknown): string => {
  if (isSqlError(error)) return error.reason._tag
  if (Predicate.hasProperty(error, "_tag")) return String(error._tag)
  return Predicate.isError(error) ? error.name : typeof error
}

const sqlState = (error: unknown) => {
  const cause = isSqlError(error) ? error.reason.cause : undefined
  const code = Predicate.hasProperty(cause, "code") ? cause.code : undefined
  return Predicate.isString(code) && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/** A failure as the exporter writes it. */
const failed = (kind: string) => Exit.fail({ name: kind, message: kind, stack: kind })

/** The exit of a span to export, and attributes that describe it. */
const described = (span: Tracer.Span, exit: Exit.Exit<unknown, unknown>): Exit.Exit<unknown, unknown> => {
  const given = span.attributes.get(errorType)
  if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)) {
    return Predicate.isString(given) ? failed(given) : exit
  }
  const error = Cause.squash(exit.cause)
  if (isOfClient(error)) return Exit.void
  const kind = errorKind(error)
  if (given === undefined) span.attribute(errorType, kind)
  const code = sqlState(error)
  if (code !== undefined) span.attribute("db.response.status_code", code)
  return failed(kind)
}

/**
 * Has a span exported with bounded texts without secrets. Effect's exporter would write the message of every error, and a
 * message of a database may quote a row: it gets the kind of an error, and the code of a database.
 */
const describe =
  (clock: Clock.Clock) =>
  (span: Tracer.Span): Tracer.Span => {
    // The wall clock may be set while the span runs.
    const start = clock.currentTimeNanosUnsafe() - clock.monotonicTimeNanosUnsafe()
    const [attribute, end] = [span.attribute.bind(span), span.end.bind(span)]
    return Object.assign<Tracer.Span, Pick<Tracer.Span, "attribute" | "end" | "event">>(span, {
      // A statement without the indentation of our source.
      attribute: (key, value) =>
        attribute(key, Predicate.isString(value) ? safe(value.replaceAll(/\s+/g, " ").trim(), longest) : value),
      // Such as a log line, whose message may quote anything.
      event: () => {},
      end: (_, exit) => end(start + clock.monotonicTimeNanosUnsafe(), described(span, exit))
    })
  }

/** Makes traces with the tracer around: a share of them, unless their caller decides. */
export const layer = (ratio: number) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const tracer = yield* Tracer.Tracer
      const traces = { tracer, describe: describe(yield* Clock.Clock), ratio }
      return Layer.mergeAll(
        Layer.succeed(Traces, traces),
        Layer.succeed(Tracer.Tracer, Tracer.make({ span: (options) => traces.describe(tracer.span(options)) })),
        // A statement says how long it waited for its connection to open.
        Layer.succeed(SpanPropagationEnabled, true)
      )
    })
  )

/**
 * Starts a span by hand, if this process makes traces and it is sampled: as its parent, otherwise by ratio. Without a
 * parent, it is the first of a trace. The caller ends it.
 */
export const start = (
  context: Context.Context<never>,
  name: string,
  kind: Tracer.SpanKind,
  parent?: Tracer.AnySpan
): Tracer.Span | undefined => {
  const traces = Context.get(context, Traces)
  if (traces === undefined || parent?.sampled === false) return undefined
  const span = traces.tracer.span({
    name,
    kind,
    startTime: now(context),
    parent: Option.fromUndefinedOr(parent),
    links: [],
    annotations: Context.empty(),
    root: parent === undefined,
    sampled: true
  })
  return parent !== undefined || isTaken(traces.ratio, span.traceId) ? traces.describe(span) : undefined
}

const enabled = Context.make(References.TracerEnabled, true)

/** Runs an effect whose spans are below a span, if there is one. */
export const within = <A, E, R>(
  span: Tracer.Span | undefined,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  span === undefined ? effect : Effect.provideContext(effect, Context.add(enabled, Tracer.ParentSpan, span))

/** The wall clock, in nanoseconds. */
export const now = (context: Context.Context<never>) => Context.get(context, Clock.Clock).currentTimeNanosUnsafe()

/** Makes a span of an effect where the tracer is on. For every request: `Effect.fn` takes a stack trace. */
export const spanned =
  (name: string, attributes: Readonly<Record<string, unknown>>) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber): Effect.Effect<A, E, R> =>
      fiber.cache.tracerEnabled ? Effect.withSpan(effect, name, { attributes }) : effect
    )

/** Runs an effect in a trace of its own. */
export const root =
  ({ attributes = {}, kind, name }: Pick<Tracer.Span, "kind" | "name"> & Pick<Tracer.SpanOptions, "attributes">) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => {
      const span = start(fiber.context, name, kind)
      if (span === undefined) return effect
      for (const [key, value] of Object.entries(attributes)) span.attribute(key, value)
      return Effect.onExit(within(span, effect), (exit) => Effect.sync(() => span.end(now(fiber.context), exit)))
    })

/** The `traceparent` of the current span, for calls; undefined if that is not sampled. */
export const currentTraceParent: Effect.Effect<string | undefined> = Effect.withFiber(({ cache }) => {
  const { span, tracerEnabled } = cache
  const isSampled = tracerEnabled && span?.sampled === true
  return Effect.succeed(isSampled ? `00-${span.traceId}-${span.spanId}-01` : undefined)
})
