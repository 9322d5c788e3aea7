/** Servers of tests on ports of their own. */
import type { Server, Socket } from "node:net"
import { Duration, Effect } from "effect"

/** Has a server listen on a port of this machine, or on a free one. Returns the port. */
export const listen = (server: Server, port = 0) =>
  Effect.callback<number>((resume) => {
    server.listen(port, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed(address === null || typeof address === "string" ? 0 : address.port))
    })
  })

/** Has a server listen on a free port until the scope closes. Returns the port, and the sockets that are open. */
export const on = Effect.fnUntraced(function* (server: Server) {
  const sockets = new Set<Socket>()
  server.on("connection", (socket) => {
    sockets.add(socket)
    socket.on("error", () => socket.destroy())
    socket.once("close", () => sockets.delete(socket))
  })
  const port = yield* Effect.acquireRelease(listen(server), () =>
    Effect.callback<void>((resume) => {
      server.close(() => resume(Effect.void))
      for (const socket of sockets) socket.destroy()
    })
  )
  return { port, sockets }
})

const minute = Duration.minutes(1)

/** The options of a `Listener` on a free port: 10 connections, each of them with a minute for all. */
export const options = {
  host: "127.0.0.1",
  port: 0,
  maxConnections: 10,
  headersTimeout: minute,
  bodyTimeout: minute,
  idleTimeout: minute
}
