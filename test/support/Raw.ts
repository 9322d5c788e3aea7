/** A connection to the program, byte for byte: requests that no HTTP client would send. */
import { connect, type Socket } from "node:net"
import { Deferred, Effect } from "effect"
import { keys } from "./Client.ts"
import { patience } from "./eventually.ts"

/** Connects to the program. The connection is closed with the scope. */
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
  return {
    send: (text: string) => Effect.sync(() => void socket.write(text)),
    /** What came so far. */
    received: () => received,
    /** Everything that came, once the program has closed the connection. */
    closed: Effect.timeoutOrElse(Deferred.await(closed), {
      duration: patience,
      orElse: () => Effect.die(new Error(`The connection is still open. It received: ${received}`))
    }),
    socket
  }
})

/** An open connection. */
export type Connection = Effect.Success<ReturnType<typeof open>>

/** Sends a text on a connection of its own. Returns what came until the program closed it. */
export const exchange = (address: string, text: string) =>
  Effect.gen(function* () {
    const { closed, send } = yield* open(address)
    yield* send(text)
    return yield* closed
  }).pipe(Effect.scoped)

/** A GET. `headers` ends with a line break. */
export const get = (path: string, headers = "") => `GET ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`

/** A POST to the data API with the key of a demo organization. */
export const post = (path: string, body: string, headers = `Content-Length: ${body.length}\r\n`) =>
  [
    `POST /api/v3${path} HTTP/1.1`,
    "Host: a",
    `Authorization: Bearer ${keys.oakridge}`,
    "Content-Type: application/json",
    `${headers}\r\n${body}`
  ].join("\r\n")

/** The statuses of responses, one after the other. */
export const statusesOf = (text: string) =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
