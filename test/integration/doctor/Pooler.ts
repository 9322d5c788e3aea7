/** A stand-in for a connection pooler: it passes on what it likes of what a session asks for, as pgbouncer does. */
import { connect, createServer } from "node:net"
import { setTimeout as after } from "node:timers/promises"
import { Effect } from "effect"

/** What it does. */
export interface Manner {
  /** What happens to the startup parameters, all but the user and the database. */
  readonly parameters: "swallowed" | "refused"
  /** How long each message of the client takes, in milliseconds. */
  readonly delay?: number
}

const kept = ["user", "database"]
const known = [...kept, "application_name", "client_encoding", "timezone"]

const sslRequest = 80_877_103

const parametersOf = (message: Buffer) => {
  const words = message.subarray(8).toString("utf8").split("\0")
  return words.flatMap((name, index) =>
    index % 2 === 0 && name !== "" ? [[name, words[index + 1] ?? ""] as const] : []
  )
}

const asksForMore = (message: Buffer) => parametersOf(message).some(([name]) => !known.includes(name.toLowerCase()))

const startupOf = (message: Buffer) => {
  const pairs = parametersOf(message).flatMap(([name, value]) => (kept.includes(name) ? [name, value] : []))
  const body = Buffer.from(`${pairs.join("\0")}\0\0`)
  const head = Buffer.alloc(8)
  head.writeInt32BE(body.length + 8, 0)
  message.copy(head, 4, 4, 8)
  return Buffer.concat([head, body])
}

const refusal = () => {
  const body = Buffer.from("SFATAL\0C08P01\0Munsupported startup parameter: statement_timeout\0\0")
  const head = Buffer.alloc(5)
  head.write("E")
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

/** The URL of a database through a pooler, which is gone when the scope closes. */
export const before = (url: string, { delay = 0, parameters }: Manner) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ readonly port: number; readonly close: () => void }>((resume) => {
        const { hostname, port } = new URL(url)
        const server = createServer((near) => {
          const far = connect(Number(port), hostname)
          near.on("error", () => far.destroy()).on("close", () => far.destroy())
          far.on("error", () => near.destroy()).on("close", () => near.destroy())
          const begin = (startup: Buffer) => {
            if (startup.readInt32BE(4) === sslRequest) return near.once("data", begin).write("N")
            if (parameters === "refused" && asksForMore(startup)) return near.end(refusal())
            far.write(startupOf(startup))
            near.on("data", (data) => void after(delay).then(() => far.write(data)))
            return far.pipe(near)
          }
          near.once("data", begin)
        })
        server.listen(0, "127.0.0.1", () => {
          const address = server.address()
          const bound = address === null || typeof address === "string" ? 0 : address.port
          resume(Effect.succeed({ port: bound, close: () => server.close() }))
        })
      }),
      ({ close }) => Effect.sync(close)
    ),
    ({ port }) => Object.assign(new URL(url), { hostname: "127.0.0.1", port: String(port) }).href
  )
