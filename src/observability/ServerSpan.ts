/** The span of a request, by the semantic conventions of OpenTelemetry for HTTP servers. */
import { Context, Effect, Exit, type Tracer } from "effect"
import type { HttpServerRequest } from "effect/http"
import { isProbe, type RequestFacts } from "./RequestFacts.ts"
import * as Tracing from "./Tracing.ts"

type Request = HttpServerRequest.HttpServerRequest

const isKnownMethod = (method: string) => /^(GET|HEAD|POST|PUT|DELETE|CONNECT|OPTIONS|TRACE|PATCH|QUERY)$/.test(method)

const nameOf = ({ endpoint, method }: RequestFacts) => {
  const verb = isKnownMethod(method) ? method : "HTTP"
  return endpoint === "other" ? verb : `${verb} ${endpoint}`
}

/** The name or address by which a client reached the service; it is the client's word, and may be anything. */
const host = /^(\[[0-9a-f:.]{2,45}\]|[\w.-]{1,255})(?::(\d{1,5}))?$/i

/**
 * The sampling of a request, decided when it arrives: its span if it has a valid key, and otherwise. The trace of a caller
 * with a key continues. Without one a new trace begins, linked to the caller's: any client can send a `traceparent`.
 */
export const sample = (context: Context.Context<never>, { headers }: Request, facts: RequestFacts) => {
  const traces = Context.get(context, Tracing.Traces)
  if (traces === undefined || isProbe(facts)) return undefined
  const caller = Tracing.parseTraceParent(headers["traceparent"])
  const options = { name: nameOf(facts), kind: "server", startTime: Tracing.now(context) } as const
  const withoutKey = Tracing.start(traces, { ...options, links: caller === undefined ? [] : [caller] })
  if (caller === undefined) return { caller, withKey: withoutKey, withoutKey }
  // A sampler that ignores the caller's flag decides by the new id: the caller could choose an id that is sampled.
  const isSampled = traces.sampler.isParentBased ? caller.sampled : withoutKey !== undefined
  return { caller, withKey: isSampled ? Tracing.make(traces.tracer, caller, options) : undefined, withoutKey }
}

/** Handles a request with all of its spans below its own. */
export const within = <A, E, R>(
  span: Tracer.Span | undefined,
  sampling: ReturnType<typeof sample>,
  handled: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  if (span !== undefined) return Tracing.within(span)(handled)
  const caller = sampling?.caller
  return caller === undefined ? handled : Effect.provideService(handled, Tracing.CallerTraceId, caller.traceId)
}

/** The attributes of a span whose request has its response. Its other headers and its query may hold secrets. */
const attributesOf = (facts: RequestFacts, headers: Request["headers"]) => {
  const [, name, port] = host.exec(headers["host"] ?? "") ?? []
  return {
    "server.address": name,
    "server.port": port === undefined ? undefined : Number(port),
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
    "practice_data.outcome": facts.outcome,
    // Any other response is an answer.
    [Tracing.errorType]: facts.status >= 500 ? String(facts.status) : undefined
  }
}

export const end = (
  context: Context.Context<never>,
  span: Tracer.Span,
  { headers }: Request,
  facts: RequestFacts
): void => {
  for (const [key, value] of Object.entries(attributesOf(facts, headers))) {
    if (value !== undefined) span.attribute(key, value)
  }
  span.end(Tracing.now(context), Exit.void)
}
