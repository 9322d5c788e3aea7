/**
 * What it costs to be watched: CPU time for a page of 100 consumption logs, of the server and of the database, with the
 * access log, metrics and traces on and off. Every variant is a process of its own on the same Postgres. They are asked
 * in turn, each for a few hundred pages, in an order that changes from round to round, so that what else the machine does
 * happens to all of them; the ratios are of the same round. Linux only, since CPU time is read from /proc.
 *
 * Usage: `npm run bench:observability [-- ROUNDS REQUESTS VARIANTS]`, with a regular expression of the variants' names, of
 * which the first is always measured. BENCH_DATA=FOLDER keeps the data for another run.
 * BENCH_BASELINE=FOLDER measures another version of this package too, installed in that folder.
 */
import { createServer } from "node:http"
import { type Contender, ourselves, service } from "./reads/contenders.ts"
import { prepare } from "./reads/data.ts"
import { load, type Round } from "./reads/load.ts"
import type { Server } from "./reads/processes.ts"
import * as Work from "./reads/work.ts"
import { machine, median, startPostgres } from "./support.ts"

const [rounds = 60, requests = 320] = process.argv.slice(2, 4).map(Number)
const wanted = new RegExp(process.argv[4] ?? "")
const records = 100_000
const warmUp = { connections: 16, seconds: 3, status: 200 }
const limit = { connections: 16, requests, status: 200 }

/** A collector that takes everything and keeps nothing. */
const collector = createServer((request, response) => {
  request.resume().once("end", () => response.end())
})
await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))
const address = collector.address()
const endpoint = `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`

const off = { LOG_FORMAT: "json", ACCESS_LOG: "false" }
const traced = {
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
  OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
  OTEL_TRACES_SAMPLER_ARG: "0.01"
}
const metered = { OPERATIONS_PORT: "0", METRICS_BY_ORGANIZATION: "true" }

const baseline = process.env["BENCH_BASELINE"]
const all: ReadonlyArray<Contender> = [
  ...(baseline === undefined ? [] : [ourselves("the version of BENCH_BASELINE", { LOG_FORMAT: "json" }, baseline)]),
  ourselves("no access log", off),
  ourselves("the same once more", off),
  ourselves("access log, json", { LOG_FORMAT: "json" }),
  ourselves("access log, logfmt", { LOG_FORMAT: "logfmt" }),
  ourselves("listener and metrics by organization", { ...off, ...metered }),
  ourselves("traces at 1 %", { ...off, ...traced }),
  ourselves("all of it", { LOG_FORMAT: "json", ...metered, ...traced })
]

const variants = all.filter(({ name }, index) => index === 0 || wanted.test(name))

const postgres = await startPostgres(process.env["BENCH_DATA"], { shared_buffers: "1GB", checkpoint_timeout: "1h" })
const database = await prepare(postgres.url, records)
const request = service.request(Work.pageOf100)
if (request === undefined) throw new Error("this service has no pages")

const servers: Array<readonly [Contender, Server]> = []
for (const variant of variants) servers.push([variant, await variant.start(database)])

const measured = new Map<Contender, Array<Round>>(variants.map((variant) => [variant, []]))
for (const [, server] of servers) await load(server, postgres.pid, request, warmUp)
for (let round = 0; round < rounds; round++) {
  const ordered = round % 2 === 0 ? servers : servers.toReversed()
  for (const [variant, server] of ordered) {
    measured.get(variant)?.push(await load(server, postgres.pid, request, limit))
  }
}

const cpuOf = ({ server, database: inDatabase }: Round) => server + inDatabase
const [base] = variants
const basis = measured.get(base ?? service) ?? []
const figure = (value: number) => Number(value.toPrecision(4))

console.log(
  `\nCPU time of a page of 100, 16 connections; ${new Date().toISOString().slice(0, 10)}, ${machine()}; ` +
    `medians of ${rounds} rounds of ${requests} pages, ratios of each round to the first variant's`
)
console.table(
  variants.map((variant) => {
    const taken = measured.get(variant) ?? []
    const ratios = taken.map((round, index) => cpuOf(round) / cpuOf(basis[index] ?? round)).toSorted((a, b) => a - b)
    return {
      variant: variant.name,
      "per second": Math.round(median(taken.map(({ perSecond }) => perSecond))),
      "ms, server": figure(median(taken.map(({ server }) => server))),
      "ms, database": figure(median(taken.map(({ database: inDatabase }) => inDatabase))),
      ratio: figure(median(ratios)),
      "half of them": `${figure(ratios[Math.floor(ratios.length / 4)] ?? 1)} to ${figure(ratios[Math.floor((ratios.length * 3) / 4)] ?? 1)}`
    }
  })
)

for (const [, server] of servers) await server.stop()
await postgres.stop()
collector.close()
