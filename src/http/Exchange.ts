/** The parts of every request, whichever way it is answered: its facts, the headers of its response, its observers. */
import { Context, References } from "effect"
import type { HttpServerResponse } from "effect/http"
import { headerNames } from "../api/openapi/Document.ts"
import { Accounting } from "../database/Store.ts"
import * as RequestFacts from "../observability/RequestFacts.ts"
import { compress } from "./Compression.ts"
import { wasRefused } from "./ServedRequest.ts"

type Response = HttpServerResponse.HttpServerResponse

/** The origins whose pages may use the APIs (CORS), which browsers allow only if the service does; by default none. */
export const CrossOrigins = Context.Reference<ReadonlyArray<string>>("practice-data/http/Exchange/CrossOrigins", {
  defaultValue: () => []
})

/** The headers that a page of another origin can read. */
export const exposedHeaders = [...headerNames, "date", "deprecation", "sunset"]

const exposed = exposedHeaders.join(",")

/** A context in which handlers and statements can note facts of a request, and log lines have its id. */
export const contextOf = <R>(outer: Context.Context<R>, facts: RequestFacts.Account, id: string): Context.Context<R> =>
  outer.pipe(
    Context.add(RequestFacts.Note, facts.note),
    Context.add(Accounting, (statement) => {
      if ("refused" in statement) facts.refusal = statement.refused === "Busy" ? "load" : "outage"
      else facts.addStatement(statement.took, statement.waited)
    }),
    Context.add(References.CurrentLogAnnotations, {
      ...Context.get(outer, References.CurrentLogAnnotations),
      request_id: id
    })
  )

type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/**
 * Compresses a response if the client accepts it, and adds the headers of all to its own. Those that may have records are
 * not cached.
 *
 * @param origins whose pages may read it; undefined for none
 */
export const completed = (
  answer: Response,
  method: string,
  { "accept-encoding": encodings, origin }: Headers,
  id: string,
  origins?: ReadonlyArray<string>
) => {
  const response = compress(answer, encodings?.toString())
  // By assignment, for every request: with spread objects it takes three times as long.
  const headers: Record<string, string> = { ...response.headers }
  if (method === "POST") {
    headers["cache-control"] = "no-store"
    headers["x-content-type-options"] = "nosniff"
  }
  headers["x-request-id"] = id
  if (origins !== undefined) {
    const reader = origin?.toString() ?? ""
    if (origins.includes(reader)) {
      headers["access-control-allow-origin"] = reader
      headers["access-control-expose-headers"] = exposed
    }
    headers["vary"] = headers["vary"] === undefined ? "Origin" : `${headers["vary"]}, Origin`
  }
  return { response, headers }
}

const lengthOf = ({ body }: Response) => (body._tag === "Empty" ? 0 : (body.contentLength ?? 0))

/**
 * Completes the facts of a request, and passes them to observers.
 *
 * @param source the request of the server
 * @param response undefined if the client left before
 */
export const conclude = (
  facts: RequestFacts.Account,
  observers: typeof RequestFacts.RequestObservers.Service,
  source: object,
  response: Response | undefined
) => {
  facts.status = response?.status ?? 499
  facts.bytes = response === undefined || facts.method === "HEAD" ? 0 : lengthOf(response)
  // A statement was refused, and run again.
  if (facts.status < 400) facts.refusal = undefined
  if (response !== undefined || !wasRefused(source)) for (const observer of observers) observer(facts)
}
