/** A connection to the program, byte for byte: what no HTTP client would send, or would not read. */
import { connect, type Socket } from "node:net"
import { Deferred, Effect } from "effect"
import * as Process from "./Process.ts"

/** An open connection. */
export interface Connection {
  readonly send: (text: string) => Effect.Effect<void>
  /** What came so far. */
  readonly received: () => string
  /** Everything that came, once the program has closed the connection. */
  readonly closed: Effect.Effect<string>
  readonly socket: Socket
}

/** Connects to the program. The connection goes away with the scope. */
export const open = Effect.fnUntraced(function* (address: string) {
  const closed = yield* Deferred.make<string>()
  let received = ""
  const socket = yield* Effect.acquireRelease(
    Effect.callback<Socket>((resume) => {
      const { hostname, port } = new URL(address)
      const connecting = connect(Number(port), hostname, () => resume(Effect.succeed(connecting)))
      connecting.on("error", () => undefined)
      connecting.setEncoding("latin1").on("data", (text: string) => (received += text))
      connecting.once("close", () => {
        Deferred.doneUnsafe(closed, Effect.succeed(received))
        resume(Effect.succeed(connecting))
      })
    }),
    (connected) => Effect.sync(() => connected.destroy())
  )
  const connection: Connection = {
    send: (text) => Effect.sync(() => void socket.write(text)),
    received: () => received,
    closed: Effect.timeoutOrElse(Deferred.await(closed), {
      duration: Process.timeout,
      orElse: () => Effect.die(new Error(`The connection is still open. It received: ${received}`))
    }),
    socket
  }
  return connection
})

/** Sends a text on a connection of its own, and says what came until the program closed it. */
export const exchange = (address: string, text: string) =>
  Effect.gen(function* () {
    const { closed, send } = yield* open(address)
    yield* send(text)
    return yield* closed
  }).pipe(Effect.scoped)
