/** The Postgres refuses connections, and callers outnumber the pool. */
import { Effect } from "effect"
import * as TcpProxy from "../../../test/blackbox/support/TcpProxy.ts"
import { atLeast, atMost, note, make, verdict } from "../Scenario.ts"
import * as Callers from "../support/Callers.ts"
import type { Power } from "../support/Ground.ts"
import * as Proc from "../support/Proc.ts"
import * as Service from "../support/Service.ts"
import { recovery } from "../support/recovery.ts"

const callers = 50
const few = 1200
const many = 2400

type Requests = Callers.Plan["requests"]

/** How long a round may take, in milliseconds. */
const patience = 20_000

/** What a number of requests cost the process, in milliseconds of processor time. */
const round = Effect.fnUntraced(function* (
  service: { readonly pid: number; readonly port: number },
  requests: Requests,
  total: number
) {
  const before = yield* Proc.cpuMillis(service.pid)
  const report = yield* Callers.run({
    ports: [service.port],
    requests,
    callers,
    total,
    during: patience,
    patience,
    keepAlive: true
  })
  return { report, cpu: (yield* Proc.cpuMillis(service.pid)) - before }
})

const each = (cpu: number, report: Callers.Report) => cpu / Math.max(1, report.length)

const attack = Effect.fnUntraced(function* (
  service: { readonly pid: number; readonly port: number },
  { stopImmediately, start }: Pick<Power, "stopImmediately" | "start">,
  requests: Requests
) {
  yield* round(service, requests, 200)
  yield* stopImmediately
  // Time to find out, and connections that broke are counted with nobody.
  yield* round(service, requests, callers)
  yield* Effect.sleep("500 millis")
  const first = yield* round(service, requests, few)
  const second = yield* round(service, requests, many)
  const recovered = yield* recovery(service.port, requests, start)
  const answered = Callers.having(second.report, (status) => status === 503)
  const cost = each(second.cpu, second.report)
  return verdict(
    atLeast(many, "answered 503:", answered.length),
    note(`median ${Callers.median(answered).toFixed(1)} ms`),
    atMost(250, "slowest", Callers.longest(second.report), " ms"),
    atMost(2, "CPU", cost, " ms a request"),
    // What costs next to nothing may not be divided by.
    atMost(1.6, `${few} to ${many} requests: CPU a request x`, cost / Math.max(0.25, each(first.cpu, first.report))),
    atMost(2000, "well again after", recovered, " ms")
  )
})

const promise = "503 within 50 ms (pass: 250), CPU linear in the requests, well again within 1 s (pass: 2)"

const done = `${callers} callers, ${many} requests`

export const storeDown = make({
  name: "store-down",
  done: `Postgres is stopped; ${done}, searches and deliveries`,
  promise,
  run: Effect.fnUntraced(function* ({ demo, power }) {
    const { url } = yield* demo
    const service = yield* Service.start({ DATABASE_URL: url })
    return yield* attack(service, power, [Service.search("charges", { limit: 2 }), Service.delivery("store-down")])
  })
})

export const keyStoreDown = make({
  name: "key-store-down",
  done: `The Postgres of the API keys alone refuses connections; ${done}`,
  promise,
  run: Effect.fnUntraced(function* ({ demo }) {
    const { url } = yield* demo
    const { hostname, port } = new URL(url)
    const proxy = yield* TcpProxy.make({ host: hostname, port: Number(port) })
    const keys = Object.assign(new URL(url), { hostname: proxy.host, port: String(proxy.port) }).href
    const service = yield* Service.start({ DATABASE_URL: url, CREDENTIALS_DATABASE_URL: keys })
    return yield* attack(service, { stopImmediately: proxy.cut("refuse"), start: proxy.mend }, [
      Service.search("charges", { limit: 2 })
    ])
  })
})
