/** Senders who take their time, and callers who never read. */
import { Effect } from "effect"
import { atLeast, atMost, note, make, verdict } from "../Scenario.ts"
import * as Callers from "../support/Callers.ts"
import * as Http1 from "../support/Http1.ts"
import * as Proc from "../support/Proc.ts"
import * as Service from "../support/Service.ts"
import * as Sockets from "../support/Sockets.ts"

/** When the service ends a connection, in seconds. */
interface Limits {
  readonly headers: number
  readonly body: number
  readonly idle: number
}

const defaults: Limits = { headers: 10, body: 15, idle: 75 }
const short: Limits = { headers: 2, body: 3, idle: 4 }

/** How much later it may look, in seconds. */
const allowance = 4

const each = 150

const body = Buffer.alloc(5000, " ")
const slowBody = Http1.bytesOf({ ...Service.delivery("slow"), body })
const slowBodyHead = slowBody.length - body.length

const slowSendersWithin = (limits: Limits, environment: Readonly<Record<string, string>>) =>
  make({
    name: "slow-senders",
    done: `${each} connections each whose headers trickle, whose bodies trickle, that send nothing, and that have been answered once`,
    promise: `ended after ${limits.headers} s of headers, ${limits.body} s of a body, ${limits.idle} s idle`,
    run: Effect.fnUntraced(function* ({ demo }) {
      const { url } = yield* demo
      const { port } = yield* Service.start({ DATABASE_URL: url, ...environment })
      const neighbour = yield* Callers.startNeighbour(port, Service.neighbourly)
      const open = Sockets.openMany(port, each)
      const [headers, bodies, silent, answered] = yield* Effect.all([open, open, open, open])
      yield* Effect.forkScoped(
        Effect.forEach(headers, (socket) => Sockets.trickle(socket, slowBody, 200), { concurrency: "unbounded" })
      )
      yield* Effect.forkScoped(
        Effect.forEach(
          bodies,
          (socket) => {
            socket.write(slowBody.subarray(0, slowBodyHead))
            return Sockets.trickle(socket, slowBody.subarray(slowBodyHead), 200)
          },
          { concurrency: "unbounded" }
        )
      )
      // An answer that is not taken keeps its connection.
      for (const socket of [...headers, ...bodies, ...silent, ...answered]) socket.resume()
      const request = Http1.bytesOf(Service.search("charges", { limit: 2 }))
      for (const socket of answered) socket.write(request)

      const order = [
        { what: "headers", sockets: headers, limit: limits.headers },
        { what: "bodies", sockets: bodies, limit: limits.body },
        { what: "answered once", sockets: answered, limit: limits.idle },
        { what: "silent", sockets: silent, limit: Math.max(limits.headers, limits.idle) }
      ] as const
      const counts = yield* Effect.forEach(
        order,
        ({ what, sockets, limit }) =>
          Effect.sync(() => atMost(0, `still open, ${what}:`, Sockets.countOpen(sockets))).pipe(
            Effect.delay((limit + allowance) * 1000)
          ),
        { concurrency: "unbounded" }
      )
      const report = yield* neighbour.stop
      return verdict(
        ...counts,
        atMost(0, "failed requests of a neighbour", Callers.unlike(report, Callers.isGood).length),
        note(`longest wait ${Math.round(Callers.longest(report))} ms`)
      )
    })
  })

/** With the limits that it has by default, or, in a hurry, with short ones. */
export const slowSenders = (isQuick: boolean) =>
  isQuick
    ? slowSendersWithin(short, {
        HEADERS_TIMEOUT: `${short.headers} seconds`,
        BODY_TIMEOUT: `${short.body} seconds`,
        IDLE_TIMEOUT: `${short.idle} seconds`
      })
    : slowSendersWithin(defaults, {})

const allowed = 100

export const connectionLimit = make({
  name: "connection-limit",
  done: `MAX_CONNECTIONS=${allowed}; ${3 * allowed} callers connect, ask and stay, then go`,
  promise: `at most ${allowed} are served, the others get 503 or the connection is closed, and new callers are served when they are gone`,
  run: Effect.fnUntraced(function* ({ demo }) {
    const { url } = yield* demo
    const { port } = yield* Service.start({ DATABASE_URL: url, MAX_CONNECTIONS: String(allowed) })
    const plan = { ports: [port], requests: [Service.health], patience: 5000, keepAlive: true } as const
    const crowd = yield* Callers.start({ ...plan, callers: 3 * allowed, pause: 60_000 })
    yield* Effect.sleep("3 seconds")
    const report = yield* crowd.stop
    yield* Effect.sleep("1 second")
    const after = yield* Callers.run({ ...plan, callers: 10, total: 50 })
    return verdict(
      atMost(allowed, "served", Callers.having(report, Callers.isGood).length),
      atLeast(1, "of", report.length),
      note(`(${Callers.tally(report)})`),
      atMost(0, "hung", Callers.having(report, (status) => status === Callers.noAnswer.hung).length),
      atMost(0, "not served afterwards", Callers.unlike(after, Callers.isGood).length)
    )
  })
})

const readers = 20
const pipelined = 400

/** The peak of the memory, once it has not risen for a while. */
const peakOf = Effect.fnUntraced(function* (pid: number) {
  let peak = 0
  for (let calm = 0, polls = 0; calm < 4 && polls < 30; polls++) {
    yield* Effect.sleep("1 second")
    const now = yield* Proc.peakMemory(pid)
    calm = now > peak + 1 ? 0 : calm + 1
    peak = now
  }
  return peak
})

export const unread = make({
  name: "unread-answers",
  done: `${readers} callers pipeline ${pipelined} pages of 1,000 each and never read`,
  promise: "the process takes less than 200 MiB more, and a neighbour is served",
  run: Effect.fnUntraced(function* ({ large }) {
    const { url } = yield* large
    const { pid, port } = yield* Service.start({ DATABASE_URL: url })
    const page = Service.search("consumption-logs", { limit: 1000 })
    // As much memory as pages of this size take in any case.
    yield* Callers.run({
      ports: [port],
      requests: [page],
      callers: readers,
      total: 400,
      patience: 30_000,
      keepAlive: true
    })
    const before = yield* Proc.memory(pid)
    yield* Proc.forgetPeak(pid)
    const sockets = yield* Sockets.openMany(port, readers)
    const requests = Buffer.concat(Array.from({ length: pipelined }, () => Http1.bytesOf(page)))
    for (const socket of sockets) {
      socket.pause()
      socket.write(requests)
    }
    yield* Effect.sleep("1 second")
    const neighbour = yield* Callers.startNeighbour(port, Service.neighbourly)
    const peak = yield* peakOf(pid)
    const report = yield* neighbour.stop
    return verdict(
      atMost(200, "memory grew by", peak - before, " MiB"),
      note(`from ${Math.round(before)}`),
      atMost(0, "a neighbour's failed requests", Callers.unlike(report, Callers.isGood).length),
      atLeast(10, "of", report.length),
      note(`longest wait ${Math.round(Callers.longest(report))} ms`)
    )
  })
})
