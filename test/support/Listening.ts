/** Servers of tests on ports of their own. */
import type { Server, Socket } from "node:net"
import { Effect } from "effect"

/** Has a server listen on a free port until the scope closes. Returns the port, and the sockets that are open. */
export const on = Effect.fnUntraced(function* (server: Server) {
  const sockets = new Set<Socket>()
  server.on("connection", (socket) => {
    sockets.add(socket)
    socket.on("error", () => socket.destroy())
    socket.once("close", () => sockets.delete(socket))
  })
  const port = yield* Effect.acquireRelease(
    Effect.callback<number>((resume) => {
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        resume(Effect.succeed(address === null || typeof address === "string" ? 0 : address.port))
      })
    }),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        for (const socket of sockets) socket.destroy()
      })
  )
  return { port, sockets }
})
