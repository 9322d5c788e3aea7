/** A connection of `OrderedServer`. */
import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type * as Shares from "./Shares.ts"

export interface Connection extends Shares.Held {
  readonly socket: Socket
  /** The response in progress. */
  current: ServerResponse | undefined
  /** The requests after it, in order, with the `Authorization` of each, and its size in KiB. */
  readonly queue: Array<{
    readonly begin: () => void
    readonly size: number
    readonly authorization: string | undefined
  }>
  /** The bytes read when the last response was sent. */
  bytesRead: number
  /** When it is closed unless a request begins, which bytes without one do not delay; infinite while it is handled. */
  deadline: number
  /** True if no more requests are accepted. */
  isRefused: boolean
  /** True if a sweep has found that the client ended its side while it waits for a response. */
  isHalfClosed: boolean
}

/** True if a connection waits for its client: to send a request, or to read a response. */
export const isWaiting = ({ current, deadline, queue, socket }: Connection) =>
  !socket.destroyed &&
  queue.length === 0 &&
  (deadline < Infinity || current?.headersSent === true || current?.req.complete === false)
