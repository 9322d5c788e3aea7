/** The check that nobody else listens on a port. */
import { connect, createServer } from "node:net"
import { Effect } from "effect"
import { ServeError } from "effect/http/HttpServerError"

type Address = Readonly<{ host: string; port: number }>

const isRefused = (address: Address) =>
  Effect.callback<boolean>((resume) => {
    const socket = connect(address)
      .once("connect", () => {
        socket.destroy()
        resume(Effect.succeed(false))
      })
      .once("error", (error: NodeJS.ErrnoException) => resume(Effect.succeed(error.code === "ECONNREFUSED")))
    return Effect.sync(() => socket.destroy())
  }).pipe(Effect.timeoutOrElse({ duration: "1 second", orElse: () => Effect.succeed(false) }))

/**
 * Fails if a port is in use, or its host is no address of this machine. It listens only where no client can connect:
 * the end of a listener resets the connections that it has not accepted.
 */
export const assertIsFree = Effect.fnUntraced(function* ({ host, port }: Address) {
  const isFree = port === 0 || (yield* isRefused({ host, port }))
  yield* Effect.callback<void, ServeError>((resume) => {
    const server = createServer()
      .once("error", (cause) => resume(Effect.fail(new ServeError({ cause }))))
      // Any port, to check the host.
      .listen({ host, port: isFree ? 0 : port }, () => server.close(() => resume(Effect.void)))
  })
})
