/** The service twice over one database, once without the lane: both must answer the same, and tell observers the same. */
import { randomUUID } from "node:crypto"
import { gunzipSync, zstdDecompressSync } from "node:zlib"
import { assert } from "@effect/vitest"
import { Array, Context, Effect, Layer } from "effect"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import { samplesOf } from "../../support/metrics.ts"
import type * as Process from "../../support/Process.ts"
import * as Program from "../../support/Program.ts"
import * as Raw from "../../support/Raw.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const operatorsPage = /Operators' page:? (http:\/\/[^/\s"\\]+)\/ops/

const started = Effect.fnUntraced(function* (environment: Process.Environment) {
  const common = { OPERATIONS_PORT: "0", LOG_FORMAT: "json", BODY_TIMEOUT: "3s" }
  const program = yield* Program.start({ ...common, ...environment })
  yield* eventually("the operators' listener", () => operatorsPage.test(program.output()))
  const operators = yield* Client.make(operatorsPage.exec(program.output())?.[1] ?? "", 1)
  const ready = program.client.call({ path: "/api/v1/health/ready", method: "GET", headers: {} })
  yield* eventually("a service that is ready", ready, ({ status }) => status === 200)
  const scrape = operators.call({ path: "/metrics", method: "GET", headers: {} })
  const samples = Effect.map(scrape, ({ text }) => samplesOf(text))
  return { ...program, samples, first: yield* samples }
})

type Way = Effect.Success<ReturnType<typeof started>>

/** Both over the demo data, with and without the lane, for the tests of a file. */
export class TwoWays extends Context.Service<TwoWays, Readonly<Record<"lane" | "router", Way>>>()(
  "practice-data/test/system/lane/TwoWays"
) {
  static readonly layer = Layer.effect(
    TwoWays,
    Effect.flatMap(TestDatabase, ({ url: DATABASE_URL }) => {
      const way = (LANE: string) => started({ DATABASE_URL, LANE })
      return Effect.all({ lane: way("true"), router: way("false") }, { concurrency: 2 })
    })
  ).pipe(Layer.provideMerge(TestDatabase.layerDemo))
}

/** Does the same in both ways at the same time. */
export const each = <A, E, R>(does: (way: Way) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(TwoWays, ({ lane, router }) =>
    Effect.all({ lane: does(lane), router: does(router) }, { concurrency: 2 })
  )

/** Does the same in both ways, and asserts that it comes to the same. Each item that does not is in the error. */
export const agree = Effect.fnUntraced(function* <A, E, R>(
  does: (way: Way) => Effect.Effect<ReadonlyArray<A>, E, R>,
  what = ""
) {
  const { lane, router } = yield* each(does)
  const [one, other] = [lane.map(Client.json), router.map(Client.json)]
  const differ = [Array.difference(one, other), Array.difference(other, one)].map((all) => all.join("\n"))
  assert.deepStrictEqual(lane, router, `${what}\nThe lane alone: ${differ[0]}\nThe router alone: ${differ[1]}\n`)
  return router
})

/** What a client sends on one connection, a character for each byte. */
export interface Sent {
  /** Each goes in a packet of its own. */
  readonly pieces: ReadonlyArray<string>
  /** True if the last request waits for a response before it. */
  readonly waits?: boolean
  /** True if the server closes the connection after it, so that no request follows. */
  readonly closes?: boolean
}

/** The last request of a connection, which the server closes after it. */
const last = "GET /api/v3/end HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

const inTurn = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))

const decoders: Readonly<Record<string, (bytes: Buffer) => Buffer>> = { gzip: gunzipSync, zstd: zstdDecompressSync }

const valueOf = (head: string, name: string) => new RegExp(`\r\n${name}: (.*)`, "i").exec(head)?.[1]

const cursor = /"cursor":"([\w-]+)"/

/**
 * A response without what differs from one to the next: the date, ids that the server made, and cursors; and where it says
 * that the connection closes, which depends on how much of a body has arrived whose client waits for no 100.
 */
const normal = (head: string, body: string) => {
  const decode = decoders[valueOf(head, "content-encoding") ?? ""]
  const bytes = Buffer.from(body, "latin1")
  const text = (decode === undefined ? bytes : decode(bytes)).toString("latin1")
  const end = head.includes("\r\nconnection: close") ? "\r\nConnection: close" : ""
  const common = `${head.replace("\r\nconnection: close", "")}${end}`
    .replace(/\r\ndate: .*/i, "\r\ndate: now")
    .replace(/\r\nx-request-id: [\da-f]{8}-[\da-f-]{27}(?=\r|$)/, "\r\nx-request-id: made")
  if (!cursor.test(text)) return { head: common, body }
  return { head: common.replace(/(\r\ncontent-length): \d+/, "$1: some"), body: text.replace(cursor, '"cursor":""') }
}

/** The responses of a connection in their order. */
const responsesOf = (received: string): ReadonlyArray<ReturnType<typeof normal>> => {
  const end = received.indexOf("\r\n\r\n")
  if (end === -1) return received === "" ? [] : [{ head: received, body: "" }]
  const head = received.slice(0, end)
  const next = end + 4 + Number(valueOf(head, "content-length") ?? 0)
  return [normal(head, received.slice(end + 4, next)), ...responsesOf(received.slice(next))]
}

/** Sends pieces on a connection of their own, and another request behind them. Returns all that comes back. */
const send = Effect.fnUntraced(function* ({ url }: Way, { closes = false, pieces, waits = false }: Sent) {
  const { closed, received, socket } = yield* Raw.open(url)
  socket.setNoDelay()
  for (const piece of waits || closes ? pieces : [...pieces.slice(0, -1), `${pieces.at(-1) ?? ""}${last}`]) {
    socket.write(piece, "latin1")
    yield* inTurn
  }
  if (waits && !closes) {
    yield* eventually("a response", () => received() !== "" || socket.closed)
    socket.write(last, "latin1")
  }
  return yield* closed
}, Effect.scoped)

/** The responses to what a client sends. */
export const exchange = (sent: Sent) => (way: Way) => Effect.map(send(way, sent), responsesOf)

/** An id that the server made. */
const made = /^[\da-f]{8}-[\da-f-]{27}$/

const times = ["time", "ms", "database_ms", "wait_ms", "poll_ms"]

const factsOf = (line: Readonly<Record<string, unknown>>) => {
  const { bytes, organization, path, request_id, status } = line
  return {
    ...Object.fromEntries(Object.entries(line).filter(([name]) => !times.includes(name))),
    path,
    status,
    // A client may leave before its key is looked up.
    organization: status === 499 ? undefined : organization,
    request_id: typeof request_id === "string" && made.test(request_id) ? "made" : request_id,
    bytes: typeof path === "string" && path.endsWith("changes") ? undefined : bytes,
    hasStatements: status !== 499 && line["database_ms"] !== undefined
  }
}

/** The facts of the requests that a way has logged, without times, ids that it made, and the lengths of cursors. */
export const logged = Effect.fnUntraced(function* ({ client, stdout }: Way) {
  const marker = randomUUID()
  yield* client.call({ path: `/marker/${marker}`, method: "GET", headers: {} })
  yield* eventually("the line of a request", () => stdout().includes(marker))
  const lines = stdout()
    .split("\n")
    .filter((line) => line.includes('"message":"Request"') && !line.includes('"/marker/'))
  // Requests that were sent together end in any order.
  return lines
    .map((line) => factsOf(JSON.parse(line)))
    .toSorted((one, other) => Client.json(one).localeCompare(Client.json(other)))
})

const counted = /^practice_data_http_(requests(_refused)?_total|request_duration_seconds_count)/

/** The counts of requests that a way has had since its start. */
export const counts = ({ first, samples }: Way) =>
  Effect.map(samples, (all) =>
    Object.entries(all)
      .map(([name, count]) => [name, count - (first[name] ?? 0)] as const)
      .filter(([name, count]) => count > 0 && counted.test(name) && !/\/health/.test(name))
      .map((sample) => sample.join(" "))
      .toSorted()
  )
