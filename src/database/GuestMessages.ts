/** The messages of a client of Postgres, read from its socket one by one. */
import type { Socket } from "node:net"
import { Effect } from "effect"

/** A message, and whether the server is ready for another statement after it. */
export interface Message {
  readonly bytes: Uint8Array
  readonly isLast: boolean
}

/** The longest message, in bytes. A client that sends a longer one is cut off. */
const longest = 64 * 1024 * 1024

const protocolVersion3 = 196_608
const sslRequest = 80_877_103

const headLength = 5

/** After these the server says that it is ready: Query, Sync and the call of a function. */
const lastTypes = ["Q", "S", "F"].map((letter) => letter.charCodeAt(0))

const terminate = "X".charCodeAt(0)

/** Reads so many bytes; nothing while fewer are there. */
const take = (socket: Socket, length: number): Buffer | undefined => {
  if (length === 0) return Buffer.alloc(0)
  const chunk: unknown = socket.read(length)
  return Buffer.isBuffer(chunk) && chunk.length === length ? chunk : undefined
}

/** How to read the messages of a client, in their order. Nothing when it has left. */
export const reader = (socket: Socket): Effect.Effect<Message | undefined> => {
  let head: Buffer | undefined
  let hasStarted = false

  /** The length of all that follows the head: the first message has no letter for its type. */
  const rest = (of: Buffer) => (hasStarted ? of.readInt32BE(1) - 4 : of.readInt32BE(0) - headLength)

  const read = (): Message | undefined => {
    head ??= take(socket, headLength)
    if (head === undefined) return undefined
    const length = rest(head)
    if (length < 0 || length > longest) {
      socket.destroy()
      return undefined
    }
    const body = take(socket, length)
    if (body === undefined) return undefined
    const bytes = Buffer.concat([head, body])
    head = undefined
    if (!hasStarted) {
      const version = bytes.length < 8 ? 0 : bytes.readInt32BE(4)
      if (version === sslRequest) {
        socket.write("N")
        return read()
      }
      hasStarted = version === protocolVersion3
      if (!hasStarted) socket.destroy()
      return hasStarted ? { bytes, isLast: true } : undefined
    }
    if (bytes[0] === terminate) {
      socket.end()
      return undefined
    }
    return { bytes, isLast: lastTypes.some((type) => type === bytes[0]) }
  }

  return Effect.callback((resume) => {
    const listen = () => {
      const message = read()
      if (message === undefined && !socket.destroyed && !socket.readableEnded && !socket.writableEnded) return
      stop()
      resume(Effect.succeed(message))
    }
    const stop = () => {
      for (const event of ["readable", "end", "close"]) socket.off(event, listen)
    }
    for (const event of ["readable", "end", "close"]) socket.on(event, listen)
    listen()
    return Effect.sync(stop)
  })
}
