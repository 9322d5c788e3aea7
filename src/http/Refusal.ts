/** The documented responses to requests that do not reach the routes. */
import { randomUUID } from "node:crypto"
import { type IncomingMessage, STATUS_CODES } from "node:http"
import type { Socket } from "node:net"
import { DateTime } from "effect"

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

/** Responds to a request that does not reach the routes, as far as it could be read, and closes its connection. */
export const refuse = (socket: Socket, status: number, request: IncomingMessage | undefined): Refused => {
  if (request !== undefined) refusedRequests.add(request)
  const requestId = requestIdOf(request?.headers["x-request-id"])
  const address = socket.remoteAddress
  if (status === noResponse) {
    socket.destroy()
    return { status, requestId, request, address, bytes: 0 }
  }
  const reason = STATUS_CODES[status]
  const body = JSON.stringify({ detail: reason })
  const head = [
    `HTTP/1.1 ${status} ${reason}`,
    `date: ${DateTime.toDateUtc(DateTime.nowUnsafe()).toUTCString()}`,
    "content-type: application/json",
    `content-length: ${body.length}`,
    "connection: close",
    `x-request-id: ${requestId}`
  ]
  const sent = request?.method === "HEAD" ? "" : body
  socket.end(`${head.join("\r\n")}\r\n\r\n${sent}`)
  // A client that timed out has no bytes on the way that would reset the connection.
  if (status === 408) socket.destroySoon()
  return { status, requestId, request, address, bytes: sent.length }
}
