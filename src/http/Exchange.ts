/** The parts of every request, whichever way it is answered: its id, its facts, the headers of its response, its observers. */
import { randomUUID } from "node:crypto"
import { STATUS_CODES } from "node:http"
import { Context, References } from "effect"
import type { HttpServerResponse } from "effect/http"
import { errorHeader, errorName } from "../api/Errors.ts"
import { Accounting } from "../database/Store.ts"
import * as RequestFacts from "../observability/RequestFacts.ts"
import { compress } from "./Compression.ts"

type Response = HttpServerResponse.HttpServerResponse

const visibleAscii = /^[\x21-\x7e]{1,128}$/

/** The id that the client sent if it is 1 to 128 visible ASCII characters, otherwise a new one. */
export const requestIdOf = (sent: string | ReadonlyArray<string> | undefined): string =>
  typeof sent === "string" && visibleAscii.test(sent) ? sent : randomUUID()

/** An error of no endpoint: the text of its status, and the header that names it. */
export const statusError = (status: number) => {
  const detail = STATUS_CODES[status] ?? ""
  return { body: { detail }, headers: { [errorHeader]: errorName(detail) } }
}

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
 */
export const completed = (answer: Response, method: string, { "accept-encoding": encodings }: Headers, id: string) => {
  const response = compress(answer, encodings?.toString())
  // By assignment, for every request: with spread objects it takes three times as long.
  const headers: Record<string, string> = { ...response.headers }
  if (method === "POST") {
    headers["cache-control"] = "no-store"
    headers["x-content-type-options"] = "nosniff"
  }
  headers["x-request-id"] = id
  return { response, headers }
}

const lengthOf = ({ body }: Response) => (body._tag === "Empty" ? 0 : (body.contentLength ?? 0))

/**
 * Completes the facts of a request, and passes them to observers.
 *
 * @param response undefined if the client left before
 */
export const conclude = (
  facts: RequestFacts.Account,
  observers: typeof RequestFacts.RequestObservers.Service,
  response: Response | undefined
) => {
  facts.status = response?.status ?? 499
  facts.bytes = response === undefined || facts.method === "HEAD" ? 0 : lengthOf(response)
  // A statement was refused, and run again.
  if (facts.status < 400) facts.refusal = undefined
  for (const observer of observers) observer(facts)
}
