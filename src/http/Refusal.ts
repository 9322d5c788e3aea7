/** The documented responses to requests that do not reach the routes. */
import { randomUUID } from "node:crypto"
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http"
import type { Socket } from "node:net"

const visibleAscii = /^[\x21-\x7e]{1,128}$/

/** The id that the client sent if it is 1 to 128 visible ASCII characters, otherwise a new one. */
export const requestIdOf = (sent?: string | ReadonlyArray<string>): string =>
  typeof sent === "string" && visibleAscii.test(sent) ? sent : randomUUID()

/** A request that does not reach the routes. */
export interface Refused {
  readonly status: number
  readonly requestId: string
  /** Present if the headers could be read. */
  readonly request: IncomingMessage | undefined
  readonly address: string | undefined
  /** The length of the response's body. */
  readonly bytes: number
}

// Their handlers end as if the client had left.
const refusedRequests = new WeakSet<object>()

/** True if a request was refused while it was handled: observers have seen it. */
export const wasRefused = (request: object): boolean => refusedRequests.has(request)

/** The status of a connection that is closed without a response. */
export const noResponse = 444

const refusal = (status: number, socket: Socket, request: IncomingMessage | undefined) => {
  const requestId = requestIdOf(request?.headers["x-request-id"])
  const body = JSON.stringify({ detail: STATUS_CODES[status] })
  const headers = {
    "content-type": "application/json",
    "content-length": String(body.length),
    connection: "close",
    "x-request-id": requestId
  }
  const refused: Refused = { status, requestId, request, address: socket.remoteAddress, bytes: body.length }
  return { body, headers, refused }
}

/** Responds to a request, and closes its connection. */
export const refuse = (response: ServerResponse, status: number): Refused => {
  const { body, headers, refused } = refusal(status, response.req.socket, response.req)
  response.writeHead(status, headers).end(body)
  return refused
}

/** Responds to an incomplete request, and closes the connection. */
export const refuseConnection = (socket: Socket, status: number, request: IncomingMessage | undefined): Refused => {
  if (request !== undefined) refusedRequests.add(request)
  const { body, headers, refused } = refusal(status, socket, request)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${body}`)
  // A client that timed out has no bytes on the way that would reset the connection.
  if (status === 408) socket.destroySoon()
  return refused
}
