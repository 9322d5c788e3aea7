/** A request with its response, whichever way it is answered: its id, its facts, its headers, its observers. */
import { randomUUID } from "node:crypto"
import { STATUS_CODES } from "node:http"
import { Clock, Context, References, type Tracer } from "effect"
import { HttpServerResponse } from "effect/http"
import { errorHeader, errorName } from "../api/Errors.ts"
import * as RequestFacts from "../observability/RequestFacts.ts"
import * as Time from "../observability/Time.ts"
import { compress } from "./Compression.ts"

type Response = HttpServerResponse.HttpServerResponse

const visibleAscii = /^[\x21-\x7e]{1,128}$/

/** The id that the client sent if it is 1 to 128 visible ASCII characters, otherwise a new one. */
export const toRequestId = (sent: string | ReadonlyArray<string> | undefined): string =>
  typeof sent === "string" && visibleAscii.test(sent) ? sent : randomUUID()

/** An error of no endpoint: the text of its status, and the header that names it. */
export const statusError = (status: number) => {
  const detail = STATUS_CODES[status] ?? ""
  return { body: { detail }, headers: { [errorHeader]: errorName(detail) } }
}

/** The responses of node:http itself to requests that it refused while they were handled, by their `IncomingMessage`. */
export const Refusals = Context.Reference("practice-data/http/Exchange/Refusals", {
  defaultValue: () => new WeakMap<object, Pick<RequestFacts.RequestFacts, "id" | "status" | "refusal" | "bytes">>()
})

type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** A request that is handled. */
export interface Exchange {
  /** As in the header of the response. */
  readonly id: string
  readonly head: RequestFacts.Head
  readonly notes: RequestFacts.Notes
  readonly trace: Tracer.Span | undefined
  /** When the request came, in milliseconds of the monotonic clock. */
  readonly started: number
  readonly encodings: string | undefined
}

const monotonic = (context: Context.Context<never>) => Time.monotonicMillis(Context.get(context, Clock.Clock))

/** Begins an exchange, and its span where it is sampled. */
export const begin = (
  context: Context.Context<never>,
  given: Pick<RequestFacts.Head, "method" | "path" | "endpoint" | "address">,
  headers: Headers,
  started = monotonic(context)
): Exchange => {
  const id = toRequestId(headers["x-request-id"])
  const head = RequestFacts.describeHead({ id, ...given, userAgent: headers["user-agent"]?.toString() })
  const trace = RequestFacts.startSpan(context, headers["traceparent"]?.toString(), head)
  const encodings = headers["accept-encoding"]?.toString()
  return { id, head, notes: { database: 0, waited: 0 }, trace, started, encodings }
}

/** A context in which handlers and statements note facts of a request, and log lines have its id. */
export const provide = <R>(outer: Context.Context<R>, { id, notes }: Exchange): Context.Context<R> =>
  outer.pipe(
    Context.add(RequestFacts.CurrentNotes, notes),
    Context.add(References.CurrentLogAnnotations, {
      ...Context.get(outer, References.CurrentLogAnnotations),
      request_id: id
    })
  )

/** The headers that every response has, beside its own. Those that may have records are not cached. */
const headersOfAll = ({ head, id }: Exchange) =>
  head.method === "POST"
    ? { "cache-control": "no-store", "x-content-type-options": "nosniff", "x-request-id": id }
    : { "x-request-id": id }

/** Compresses a response if the client accepts it, and adds the headers of all. */
export const complete = (response: Response, exchange: Exchange): Response =>
  HttpServerResponse.setHeaders(compress(response, exchange.encodings), headersOfAll(exchange))

/** The same, as node:http sends it: copies of effect's headers cost 3 % of a single record. */
export const completeRaw = (response: Response, exchange: Exchange) => {
  const { body, headers, status } = compress(response, exchange.encodings)
  const all: Readonly<Record<string, string>> = { ...headers, ...headersOfAll(exchange) }
  return { body, status, headers: all }
}

const bodyLength = ({ body }: Pick<Response, "body">) => (body._tag === "Empty" ? 0 : (body.contentLength ?? 0))

/**
 * Passes the facts of a request to observers, and ends its span.
 *
 * @param response undefined if the client left before, or was refused
 */
export const conclude = (
  context: Context.Context<never>,
  { head, notes, started, trace }: Exchange,
  response: Pick<Response, "status" | "body"> | undefined,
  source?: object
) => {
  const status = response?.status ?? 499
  const facts: RequestFacts.RequestFacts = {
    ...head,
    ...notes,
    // A statement may be refused, and then succeed elsewhere.
    refusal: status < 400 ? undefined : notes.refusal,
    status,
    bytes: response === undefined || head.method === "HEAD" ? 0 : bodyLength(response),
    duration: monotonic(context) - started,
    trace,
    ...(source && Context.get(context, Refusals).get(source))
  }
  for (const observer of Context.get(context, RequestFacts.RequestObservers)) observer(facts)
  if (trace !== undefined) RequestFacts.endSpan(context, trace, facts)
}
