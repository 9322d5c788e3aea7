/** Callers who misbehave, and some who do not. */
import { Array, Effect, Random } from "effect"
import { headersOf, json } from "../../../../test/blackbox/support/Client.ts"
import * as Http1 from "../../support/Http1.ts"
import * as Service from "../../support/Service.ts"
import * as Sockets from "../../support/Sockets.ts"
import { callersOf, everyday, type Fault, healed, make, meanwhile, start, traffic } from "../Fault.ts"

const demo = Effect.fnUntraced(function* (url: string, environment: Readonly<Record<string, string>> = {}) {
  const service = yield* start({ DATABASE_URL: url, ...environment })
  yield* traffic(service.port, everyday)
  return service
})

const withKey = (key: string) => ({
  ...Service.search("charges", { limit: 1 }),
  headers: { ...headersOf("oakridge"), authorization: `Bearer ${key}` }
})

const slowHeaders = Http1.bytesOf({ ...Service.search("charges") })

const hangUp = (port: number, request: Uint8Array) =>
  Effect.gen(function* () {
    const socket = yield* Sockets.open(port)
    socket.write(request)
    yield* Effect.sleep(yield* Random.nextBetween(1, 30))
    socket.resetAndDestroy()
  }).pipe(Effect.scoped)

export const requests: ReadonlyArray<Fault> = [
  make({
    name: "slow-senders",
    done: "150 connections whose headers trickle",
    seen: { alert: "PracticeDataBrokenRequests", says: "too slow", log: /"status":408/ },
    stand: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.demo
      const service = yield* demo(url, { HEADERS_TIMEOUT: "2 seconds" })
      const trickling = Effect.flatMap(Sockets.openMany(service.port, 150), (sockets) =>
        Effect.forEach(
          sockets,
          (socket) => {
            socket.resume()
            return Sockets.trickle(socket, slowHeaders, 200)
          },
          { concurrency: "unbounded" }
        )
      ).pipe(Effect.scoped)
      return { services: [service] as const, ...meanwhile(trickling) }
    })
  }),
  make({
    name: "hostile-bodies",
    done: "10 senders of bodies that are no JSON",
    seen: { alert: "PracticeDataInvalidRequests", says: "for what they say", log: /"status":422/ },
    stand: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.demo
      const service = yield* demo(url)
      const hostile = { ...Service.search("charges"), body: `{${",".repeat(1000)}` }
      return { services: [service] as const, ...callersOf(service.port, [hostile], { callers: 10, pause: 20 }) }
    })
  }),
  make({
    name: "hang-ups",
    done: "Embedded database: callers hang up while they wait",
    seen: {
      alert: "PracticeDataClientsLeave",
      says: "hung up",
      log: /"status":499/,
      also: ["PracticeDataPoolWaits", "PracticeDataOverloaded", "PracticeDataErrors"]
    },
    stand: Effect.fnUntraced(function* () {
      const service = yield* start({ DATA_DIR: "memory" })
      const request = Http1.bytesOf(Service.search("consumption-logs", { limit: 150 }))
      const round = Effect.forEach(
        Array.makeBy(40, () => service.port),
        (port) => hangUp(port, request),
        { concurrency: "unbounded", discard: true }
      )
      return {
        services: [service] as const,
        ...meanwhile(Effect.forever(Effect.andThen(round, Effect.sleep("200 millis"))))
      }
    })
  }),
  make({
    name: "connection-limit",
    done: "MAX_CONNECTIONS=100; 300 callers connect and stay",
    seen: {
      alert: "PracticeDataConnectionsRefused",
      says: "MAX_CONNECTIONS",
      also: ["PracticeDataConnectionsNearLimit"],
      log: /Connections are refused: MAX_CONNECTIONS=100/
    },
    stand: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.demo
      const service = yield* start({ DATABASE_URL: url, MAX_CONNECTIONS: "100" })
      const staying = Effect.scoped(Effect.andThen(Sockets.openMany(service.port, 300), Effect.never))
      return { services: [service] as const, ...meanwhile(staying) }
    })
  }),
  make({
    name: "keys-tried",
    done: "Somebody tries API keys, up to 100 a second",
    seen: { alert: "PracticeDataUnauthorized", says: "for their API key", log: /"status":401/ },
    stand: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.demo
      const service = yield* demo(url)
      return {
        services: [service] as const,
        ...callersOf(service.port, [withKey("pda_live_guessed")], { callers: 20, pause: 200 })
      }
    })
  }),
  make({
    name: "key-rotated",
    done: "A client goes on with a revoked key, once a second",
    seen: undefined,
    stand: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.demo
      const service = yield* demo(url)
      return {
        services: [service] as const,
        ...callersOf(service.port, [withKey("pda_live_revoked")], { callers: 1, pause: 1000 })
      }
    })
  }),
  make({
    name: "greedy-key",
    done: "64 requests of one key in flight all the time, pages of 1,000",
    seen: {
      alert: "PracticeDataPoolWaits",
      says: "records",
      also: [
        "PracticeDataOverloaded",
        "PracticeDataErrors",
        "PracticeDataSlow",
        "PracticeDataEventLoopBlocked",
        "PracticeDataCpuSaturated"
      ]
    },
    stand: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.large
      const service = yield* demo(url)
      const greedy = Service.search("consumption-logs", { limit: 1000 })
      return { services: [service] as const, ...callersOf(service.port, [greedy], { callers: 64, pause: 0 }) }
    })
  }),
  make({
    name: "keys-reused",
    done: "A sender uses one Idempotency-Key for two payloads",
    seen: { alert: "PracticeDataKeysReused", says: "another payload", log: /key_reused/ },
    stand: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.demo
      const service = yield* demo(url)
      const first = Service.delivery("used-twice")
      yield* traffic(service.port, [first], { callers: 1, pause: 1000 })
      const second = { ...first, body: json({ invoices: [{ invoice_id: "another" }] }) }
      return { services: [service] as const, ...callersOf(service.port, [second], { callers: 1, pause: 1000 }) }
    })
  }),
  make({
    name: "nothing",
    done: "A service under a little load for half a minute",
    seen: undefined,
    stand: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.demo
      const service = yield* demo(url)
      return { services: [service] as const, begin: Effect.sleep("10 seconds"), heal: healed }
    })
  })
]
