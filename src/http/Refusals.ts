/** The responses of the server itself, to requests that no route gets. */
import { randomUUID } from "node:crypto"
import { type IncomingMessage, STATUS_CODES } from "node:http"
import type { Socket } from "node:net"
import { DateTime } from "effect"
import { errorHeader, errorName } from "../api/Errors.ts"
import * as RequestFacts from "../observability/RequestFacts.ts"
import { ServedRequest } from "./ServedRequest.ts"

const visibleAscii = /^[\x21-\x7e]{1,128}$/

/** The id that the client sent if it is 1 to 128 visible ASCII characters, otherwise a new one. */
export const requestIdOf = (sent?: string | ReadonlyArray<string>): string =>
  typeof sent === "string" && visibleAscii.test(sent) ? sent : randomUUID()

/** An error of no endpoint: the text of its status, and the header that names it. */
export const statusError = (status: number) => {
  const detail = STATUS_CODES[status] ?? ""
  return { body: { detail }, headers: { [errorHeader]: errorName(detail) } }
}

/** The status of a connection that is closed without a response. */
export const noResponse = 444

const refusals: Readonly<Record<number, RequestFacts.Refusal>> = {
  408: "timeout",
  413: "too_large",
  431: "too_large",
  503: "load"
}

const headersOf: Readonly<Record<number, string>> = { 405: "allow: GET, HEAD, POST", 503: "retry-after: 1" }

/** Responds to a request that does not reach the routes, as far as it could be read, and closes its connection. */
export const refuse = (
  socket: Socket,
  status: number,
  request: IncomingMessage | undefined,
  organization?: string
): RequestFacts.RequestFacts => {
  if (request instanceof ServedRequest) request.isRefused = true
  const id = requestIdOf(request?.headers["x-request-id"])
  const facts = new RequestFacts.Account({
    id,
    method: request?.method ?? "",
    path: RequestFacts.pathOf(request?.url ?? ""),
    endpoint: "other",
    userAgent: request?.headers["user-agent"],
    address: socket.remoteAddress
  })
  facts.organization = organization
  facts.status = status
  facts.refusal = refusals[status] ?? "protocol"
  if (status === noResponse) {
    socket.destroy()
    return facts
  }
  const error = statusError(status)
  const body = JSON.stringify(error.body)
  const head = [
    `HTTP/1.1 ${status} ${error.body.detail}`,
    `date: ${DateTime.toDateUtc(DateTime.nowUnsafe()).toUTCString()}`,
    "content-type: application/json",
    `content-length: ${body.length}`,
    "connection: close",
    `${errorHeader}: ${error.headers[errorHeader]}`,
    `x-request-id: ${id}`,
    ...[headersOf[status] ?? []].flat()
  ]
  const sent = facts.method === "HEAD" ? "" : body
  facts.bytes = sent.length
  socket.end(`${head.join("\r\n")}\r\n\r\n${sent}`)
  // A client that timed out has no bytes on the way that would reset the connection.
  if (status === 408) socket.destroySoon()
  return facts
}
