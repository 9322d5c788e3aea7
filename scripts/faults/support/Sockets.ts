/** Many raw connections of callers who misbehave. */
import { connect, type Socket } from "node:net"
import { Effect } from "effect"

/** A raw connection whose errors are its own business. */
const openSocket = (port: number) =>
  Effect.callback<Socket>((resume) => {
    const socket = connect(port, "127.0.0.1")
    socket.on("error", () => socket.destroy())
    socket.once("connect", () => resume(Effect.succeed(socket)))
    socket.once("close", () => resume(Effect.succeed(socket)))
  })

/** A connection that is gone when the scope closes. */
export const open = (port: number) =>
  Effect.acquireRelease(openSocket(port), (socket) => Effect.sync(() => socket.destroy()))

/** So many connections. */
export const openMany = (port: number, count: number) =>
  Effect.forEach(
    Array.from({ length: count }, () => port),
    open,
    { concurrency: 50 }
  )

/** How many the other side has not closed. */
export const countOpen = (sockets: ReadonlyArray<Socket>) =>
  sockets.filter((socket) => !socket.destroyed && !socket.readableEnded).length

/** Writes the bytes one by one, that many milliseconds apart, for as long as the connection is open. */
export const trickle = (socket: Socket, bytes: Uint8Array, millis: number) =>
  Effect.gen(function* () {
    for (let at = 0; at < bytes.length && !socket.destroyed; at++) {
      socket.write(bytes.subarray(at, at + 1))
      yield* Effect.sleep(millis)
    }
  })
