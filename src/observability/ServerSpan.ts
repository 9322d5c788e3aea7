/** The span of a request, by the semantic conventions of OpenTelemetry for HTTP servers. */
import { Context, type Effect, Exit, type Tracer } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { RequestFacts } from "./RequestFacts.ts"
import * as SpanEnd from "./SpanEnd.ts"
import * as TraceParent from "./TraceParent.ts"
import * as Tracing from "./Tracing.ts"

/** Whether nobody wants a trace of it: probes ask every second or so. */
const isProbe = ({ endpoint }: RequestFacts) => endpoint.startsWith("/api/v1/health")

const isKnownMethod = (method: string) => /^(GET|HEAD|POST|PUT|DELETE|CONNECT|OPTIONS|TRACE|PATCH|QUERY)$/.test(method)

const nameOf = ({ endpoint, method }: RequestFacts) => {
  const verb = isKnownMethod(method) ? method : "HTTP"
  return endpoint === "other" ? verb : `${verb} ${endpoint}`
}

/** The name or address by which a client reached the service; it is the client's word, and may be anything. */
const host = /^(\[[0-9a-f:.]{2,45}\]|[\w.-]{1,255})(?::(\d{1,5}))?$/i

/**
 * The sampling of a request, decided when it arrives. The trace of a caller with a valid key continues. Without one a new
 * trace begins, linked to the caller's: any client can send a `traceparent` of its choice.
 */
export interface Sampling {
  readonly traces: Tracing.Traces
  readonly caller: Tracer.ExternalSpan | undefined
  readonly startTime: bigint
  /** The id of the trace if the request has a valid key; undefined if it is not sampled then. */
  readonly withKey: string | undefined
  /** The same for any other request. */
  readonly withoutKey: string | undefined
}

/** Decides on the sampling of a request. What is handed on of the caller's trace is among the facts. */
export const sample = (
  context: Context.Context<never>,
  { headers }: HttpServerRequest.HttpServerRequest,
  facts: RequestFacts
): Sampling | undefined => {
  const traces = Context.get(context, Tracing.Traces)
  if (traces === undefined || isProbe(facts)) return undefined
  const startTime = Tracing.now(context)
  const caller = TraceParent.parse(headers["traceparent"])
  const withoutKey = Tracing.sample(traces)
  if (caller === undefined) return { traces, caller, startTime, withKey: withoutKey, withoutKey }
  facts.trace = { ...caller, sampled: false }
  // A sampler that ignores the caller's flag decides by the new id: the caller could choose an id that is sampled.
  const isSampled = traces.sampler.isParentBased ? caller.sampled : withoutKey !== undefined
  return { traces, caller, startTime, withKey: isSampled ? caller.traceId : undefined, withoutKey }
}

/** Begins the span of a request if it is sampled. */
export const start = (
  { caller, startTime, traces, withKey, withoutKey }: Sampling,
  { headers }: HttpServerRequest.HttpServerRequest,
  facts: RequestFacts,
  hasKey: boolean
): Tracer.Span | undefined => {
  const traceId = hasKey ? withKey : withoutKey
  if (traceId === undefined) return undefined
  const origin = hasKey ? { parent: caller } : { links: caller === undefined ? [] : [caller] }
  const span = Tracing.start(traces, traceId, { name: nameOf(facts), kind: "server", startTime, ...origin })
  facts.trace = span
  const [, name, port] = host.exec(headers["host"] ?? "") ?? []
  if (name !== undefined) span.attribute("server.address", name)
  if (port !== undefined) span.attribute("server.port", Number(port))
  return span
}

/** Handles the request, with all of its spans below its own. */
export const within = <A, E, R>(span: Tracer.Span | undefined, handled: Effect.Effect<A, E, R>) =>
  span === undefined ? handled : Tracing.within(span)(handled)

/** What a span says of a request whose response is there. Its headers and its query may hold secrets. */
const attributesOf = (facts: RequestFacts): Readonly<Record<string, string | number | undefined>> => ({
  "http.request.method": isKnownMethod(facts.method) ? facts.method : "_OTHER",
  "url.scheme": "http",
  "url.path": facts.path,
  "http.route": facts.endpoint === "other" ? undefined : facts.endpoint,
  "http.response.status_code": facts.status,
  "http.response.body.size": facts.bytes,
  "client.address": facts.address,
  "user_agent.original": facts.userAgent,
  "practice_data.request_id": facts.id,
  "practice_data.organization": facts.organization,
  "practice_data.rows": facts.rows,
  "practice_data.refusal": facts.refusal,
  "practice_data.task_id": facts.taskId,
  "practice_data.outcome": facts.outcome
})

/** Ends it. A response of 500 or more is a failure; any other is an answer. */
export const end = (context: Context.Context<never>, span: Tracer.Span, facts: RequestFacts): void => {
  for (const [key, value] of Object.entries(attributesOf(facts))) {
    if (value !== undefined) span.attribute(key, value)
  }
  if (facts.status >= 500) span.attribute(SpanEnd.errorType, String(facts.status))
  span.end(Tracing.now(context), Exit.void)
}
