/** The span of a request, by the semantic conventions of OpenTelemetry for HTTP servers. */
import { Context, Exit, type Tracer } from "effect"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import { isProbe, type RequestFacts } from "./RequestFacts.ts"
import * as Tracing from "./Tracing.ts"

const isKnownMethod = (method: string) => /^(GET|HEAD|POST|PUT|DELETE|CONNECT|OPTIONS|TRACE|PATCH|QUERY)$/.test(method)

const nameOf = ({ endpoint, method }: RequestFacts) => {
  const verb = isKnownMethod(method) ? method : "HTTP"
  return endpoint === "other" ? verb : `${verb} ${endpoint}`
}

/**
 * The sampling of a request, decided when it arrives: its span if it has a valid key, and otherwise. The trace of a caller
 * with a key continues. Without one a new trace begins, linked to the caller's: any client can send a `traceparent`.
 */
export const sample = (context: Context.Context<never>, { headers }: HttpServerRequest, facts: RequestFacts) => {
  const traces = Context.get(context, Tracing.Traces)
  if (traces === undefined || isProbe(facts)) return undefined
  const caller = Tracing.parseTraceParent(headers["traceparent"])
  const options = { name: nameOf(facts), kind: "server", startTime: Tracing.now(context) } as const
  const withoutKey = Tracing.start(traces, { ...options, links: caller === undefined ? [] : [caller] })
  if (caller === undefined) return { withKey: withoutKey, withoutKey }
  // A sampler that ignores the caller's flag decides by the new id: the caller could choose an id that is sampled.
  const isSampled = traces.sampler.isParentBased ? caller.sampled : withoutKey !== undefined
  return { withKey: isSampled ? Tracing.start(traces, { ...options, parent: caller }, true) : undefined, withoutKey }
}

/** Ends the span of a request that has its response. Its headers and its query may hold secrets. */
export const end = (context: Context.Context<never>, span: Tracer.Span, facts: RequestFacts) => {
  const attributes = {
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
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) span.attribute(key, value)
  }
  span.end(Tracing.now(context), Exit.void)
}
