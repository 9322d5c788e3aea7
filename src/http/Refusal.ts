/** Responses to requests that do not reach the routes, in the documented form. */
import { type ServerResponse, STATUS_CODES } from "node:http"
import type { Socket } from "node:net"
import { requestIdOf } from "./RequestId.ts"

const refusal = (status: number, requestId: string) => {
  const body = JSON.stringify({ detail: STATUS_CODES[status] })
  const headers = {
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    connection: "close",
    "x-request-id": requestId
  }
  return { body, headers }
}

/** Responds to a request, and closes its connection. */
export const refuse = (response: ServerResponse, status: number) => {
  const { body, headers } = refusal(status, requestIdOf(response.req.headers["x-request-id"]))
  response.writeHead(status, headers).end(body)
}

/** Responds where no request could be read, and closes the connection. */
export const refuseConnection = (socket: Socket, status: number) => {
  const { body, headers } = refusal(status, requestIdOf())
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${body}`)
  // A client that timed out has no bytes on their way that would reset the connection before it reads this.
  if (status === 408) socket.destroySoon()
}
