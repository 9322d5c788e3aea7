/** Senders who do not sign, clients beyond their limit, and a collector of telemetry that fails. */
import { createServer, type Server } from "node:http"
import { Effect, Redacted } from "effect"
import * as IntakeSecrets from "../../../../src/deletions/IntakeSecrets.ts"
import * as Service from "../../support/Service.ts"
import { callersOf, everyday, type Fault, make, start, traffic } from "../Fault.ts"

/** Takes whatever it is sent, unless it is down. */
const collector = Effect.gen(function* () {
  let isDown = false
  const server = yield* Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const made = createServer((request, response) => {
        if (isDown) response.destroy()
        else
          request.resume().once("end", () => response.writeHead(200, { "content-type": "application/json" }).end("{}"))
      })
      made.listen(0, "127.0.0.1", () => resume(Effect.succeed(made)))
    }),
    (made) =>
      Effect.sync(() => {
        made.closeAllConnections()
        made.close()
      })
  )
  const address = server.address()
  return {
    url: `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`,
    setDown: (down: boolean) =>
      Effect.sync(() => {
        isDown = down
      })
  }
})

export const senders: ReadonlyArray<Fault> = [
  make({
    name: "unsigned",
    done: "A sender does not sign, though its organization has a secret",
    seen: {
      alert: "PracticeDataUnsignedDeliveries",
      says: "for their signature",
      log: /"refusal":"signature"/
    },
    stand: Effect.fnUntraced(function* (ground) {
      const { sql, url } = yield* ground.demo
      const secret = Redacted.value(yield* IntakeSecrets.generate)
      yield* sql`insert into intake_secrets ${sql.insert({ organization_id: "org_oakridge", id: "secret_1", secret })}`
      const service = yield* start({ DATABASE_URL: url })
      yield* traffic(service.port, everyday)
      return {
        services: [service] as const,
        ...callersOf(service.port, [Service.delivery("unsigned")], { callers: 1, pause: 500 })
      }
    })
  }),
  make({
    name: "rate-limit",
    done: "RATE_LIMIT=20; an organization asks 80 times a second",
    seen: { alert: "PracticeDataRateLimited", says: "with 429", log: /"status":429/ },
    stand: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.demo
      const service = yield* start({ DATABASE_URL: url, RATE_LIMIT: "20" })
      return {
        services: [service] as const,
        ...callersOf(service.port, [everyday[0]], { callers: 8, pause: 100 })
      }
    })
  }),
  make({
    name: "collector-down",
    done: "The OpenTelemetry collector closes every connection; spans go out each second",
    seen: {
      alert: "PracticeDataTelemetryFails",
      says: "cannot export its",
      log: /The OpenTelemetry collector fails/
    },
    stand: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.demo
      const { setDown, url: endpoint } = yield* collector
      const service = yield* start({
        DATABASE_URL: url,
        OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_BSP_SCHEDULE_DELAY: "1000"
      })
      yield* traffic(service.port, everyday)
      return { services: [service] as const, begin: setDown(true), heal: setDown(false) }
    })
  })
]
