/** Processes are stopped in good order, one after another, and others take their place: nobody notices. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { spawn, spawnSync } from "node:child_process"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Array, Effect, Scope } from "effect"
import * as OwnPostgres from "../../../test/faults/support/OwnPostgres.ts"
import * as Haproxy from "../../../test/scale/haproxy.ts"
import { eventually } from "../../../test/blackbox/support/eventually.ts"
import { atLeast, atMost, note, make, skip, verdict } from "../Scenario.ts"
import * as Callers from "../support/Callers.ts"
import * as Service from "../support/Service.ts"

const times = 10

/** The end of a process and the start of another one on its port, as whatever keeps a service running does it. */
const standing = Effect.fnUntraced(function* (environment: Readonly<Record<string, string>>) {
  const scope = yield* Effect.scope
  const port = yield* OwnPostgres.freePort
  const start = Service.start({ ...environment, PORT: String(port) }).pipe(Effect.provideService(Scope.Scope, scope))
  let current = yield* start
  return {
    port,
    restart: Effect.gen(function* () {
      yield* current.kill("SIGTERM")
      yield* current.ended
      current = yield* start
    })
  }
})

const judge = (report: Callers.Report) => {
  const failed = Callers.unlike(report, Callers.isGood)
  return verdict(
    atMost(0, "failed requests", failed.length),
    failed.length > 0 ? note(Callers.tally(failed)) : note(""),
    atLeast(1000, "of", report.length),
    note(`slowest ${Math.round(Callers.longest(report))} ms`)
  )
}

const configuration = (port: number, servers: ReadonlyArray<number>) => `
defaults
  mode http
  timeout connect 5000
  timeout client 50000
  timeout server 50000
frontend all
  bind 127.0.0.1:${port}
  default_backend service
backend service
  option httpchk GET ${Service.ready.path}
${servers.map((server) => `  server s${server} 127.0.0.1:${server} check`).join("\n")}
`

const isInstalled = Effect.sync(() => spawnSync("haproxy", ["-v"], { stdio: "ignore" }).status === 0)

const balancer = Effect.fnUntraced(function* (servers: ReadonlyArray<number>) {
  const port = yield* OwnPostgres.freePort
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "practice-data-haproxy-"))),
    (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
  )
  const file = join(folder, "haproxy.cfg")
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      writeFileSync(file, configuration(port, servers))
      return spawn("haproxy", ["-f", file, "-db", "-q"], { stdio: "ignore" })
    }),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  const plan = {
    ports: [port],
    requests: [Service.ready],
    callers: 1,
    total: 1,
    patience: 1000,
    keepAlive: false
  } as const
  yield* eventually(
    "haproxy answers",
    Effect.map(Callers.run(plan), (report) => report.every(({ status }) => status === 200))
  )
  return port
})

const requests: Callers.Plan["requests"] = [Service.search("charges", { limit: 10 })]

export const behindBalancer = make({
  name: "rolling-restarts",
  done: `${times} restarts by SIGTERM, in turn, of three processes behind haproxy with its default settings, under 16 callers`,
  promise: "no request fails",
  run: Effect.fnUntraced(function* ({ demo }) {
    if (!(yield* isInstalled)) return skip("haproxy is not installed")
    const { url } = yield* demo
    const environment = { DATABASE_URL: url, DATABASE_POOL_SIZE: "5", DRAIN: "2 seconds" }
    const processes = yield* Effect.forEach([1, 2, 3], () => standing(environment))
    const port = yield* balancer(processes.map((process) => process.port))
    const plan = { ports: [port], requests, pause: 5, patience: 15_000 } as const
    const kept = yield* Callers.start({ ...plan, callers: 12, keepAlive: true })
    const fresh = yield* Callers.start({ ...plan, callers: 4, keepAlive: false })
    for (let time = 0; time < times; time++) {
      yield* Effect.sleep("200 millis")
      yield* processes[time % processes.length]?.restart ?? Effect.void
    }
    return judge([...(yield* kept.stop), ...(yield* fresh.stop)])
  })
})

export const behindShippedBalancer = make({
  name: "rolling-restarts-shipped",
  done: `${times} restarts by SIGTERM, in turn, of two processes with DRAIN=3s behind haproxy with scripts/scale/haproxy.cfg, under 16 callers`,
  promise: "no request fails",
  run: Effect.fnUntraced(function* ({ demo }) {
    if (!Haproxy.isInstalled) return skip("haproxy is not installed")
    const { url } = yield* demo
    const environment = { DATABASE_URL: url, DATABASE_POOL_SIZE: "5", DRAIN: "3 seconds" }
    const [one, other] = yield* Effect.all([standing(environment), standing(environment)])
    const [a1, a2, b1, b2] = Haproxy.servers
    const { port } = yield* Haproxy.start({ [a1]: one.port, [a2]: other.port, [b1]: one.port, [b2]: other.port })
    const plan = { ports: [port], requests, pause: 20, patience: 15_000 } as const
    const kept = yield* Callers.start({ ...plan, callers: 12, keepAlive: true })
    const fresh = yield* Callers.start({ ...plan, callers: 4, keepAlive: false })
    for (let time = 0; time < times; time++) {
      // Until haproxy has seen that the last one is back.
      yield* Effect.sleep("2 seconds")
      yield* [one, other][time % 2]?.restart ?? Effect.void
    }
    return judge([...(yield* kept.stop), ...(yield* fresh.stop)])
  })
})

export const keepAlive = (restarts: number) =>
  make({
    name: "restarts-keep-alive",
    done: `${restarts} restarts by SIGTERM, in turn, of two processes; 64 callers with keep-alive go to the other where one refuses connections`,
    promise: "no request that was sent fails",
    run: Effect.fnUntraced(function* ({ demo }) {
      const { url } = yield* demo
      const environment = { DATABASE_URL: url, DATABASE_POOL_SIZE: "5", DRAIN: "2 seconds" }
      const processes = yield* Effect.forEach([1, 2] as const, () => standing(environment))
      const ports = Array.map(processes, ({ port }) => port)
      if (!Array.isArrayNonEmpty(ports)) return skip("no process")
      const callers = yield* Callers.start({
        ports,
        requests,
        callers: 64,
        pause: 5,
        patience: 15_000,
        keepAlive: true
      })
      for (let time = 0; time < restarts; time++) {
        yield* Effect.sleep("200 millis")
        yield* processes[time % processes.length]?.restart ?? Effect.void
      }
      return judge(yield* callers.stop)
    })
  })
