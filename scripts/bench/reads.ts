/**
 * Reads of consumption logs, by this service and by what people would use instead, on the same Postgres in one run:
 * requests per second and CPU time for each kind of request, and how they change with the connections, the number of
 * records and the depth of the page, after a warm-up; then the memory, the walk and the start of this service. All contenders are checked
 * to return the same records before they are measured. Linux only, since CPU time is read from /proc.
 *
 * Usage: `npm run bench [-- ROUNDS SECONDS]`. BENCH_DATA=FOLDER keeps the data for another run.
 */
import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import * as Statement from "effect/sql/Statement"
import pg from "pg"
import { consumptionLogs } from "../../src/api/records/ConsumptionLogs.ts"
import { askedOf, searchQuery } from "../../src/records/SearchQuery.ts"
import { type Bars, chart } from "./reads/chart.ts"
import {
  ask,
  askRaw,
  type Contender,
  contenders,
  recordsOf,
  type Request,
  service,
  startFloor,
  withProcesses
} from "./reads/contenders.ts"
import { largest, prepare } from "./reads/data.ts"
import { load, type Round } from "./reads/load.ts"
import { loadQuery, pgbench } from "./reads/pgbench.ts"
import { memoryOf, type Server } from "./reads/processes.ts"
import * as Work from "./reads/work.ts"
import { machine, median, startPostgres } from "./support.ts"

const [rounds = 5, seconds = 2] = process.argv.slice(2).map(Number)
const sizes = [10_000, 100_000, 1_000_000] as const
const [, , largestSize] = sizes

const caption = `${new Date().toISOString().slice(0, 10)}, ${machine()}; medians of ${rounds} interleaved rounds of ${seconds} s`
const figure = (value: number) => (value >= 100 ? Math.round(value) : Number(value.toPrecision(3)))

const postgres = await startPostgres(process.env["BENCH_DATA"], {
  shared_buffers: "4GB",
  max_wal_size: "8GB",
  checkpoint_timeout: "1h"
})
const databases = new Map<number, string>()
for (const size of sizes) databases.set(size, await prepare(postgres.url, size))
const database = databases.get(largestSize) ?? ""

const required = ({ name, request }: Contender, work: Work.Work): Request => {
  const found = request(work)
  if (found === undefined) throw new Error(`${name} has no ${work.name}`)
  return found
}

/** Fails unless all that can do some work answer it with the same records. */
const check = async (servers: ReadonlyMap<Contender, Server>, work: Work.Work) => {
  const answers = new Map<string, string>()
  for (const [contender, server] of servers) {
    const request = contender.request(work)
    if (request === undefined) continue
    const { status, text } = await ask(server, request)
    if (status !== (work.hasKey === false ? 401 : 200)) throw new Error(`${contender.name}: ${status} ${text}`)
    if (work.hasKey !== false) answers.set(contender.name, recordsOf(text))
  }
  const [[first, expected] = ["", ""], ...others] = answers
  for (const [name, records] of others) {
    if (records !== expected) throw new Error(`${work.name}: ${name} and ${first} return different records`)
  }
}

interface Runner {
  readonly name: string
  readonly run: () => Promise<Round>
}

/** Measures in turn, round by round, after a round to warm up. */
const interleave = async (runners: ReadonlyArray<Runner>): Promise<ReadonlyArray<Round & { name: string }>> => {
  const measured = runners.map(() => new Array<Round>())
  for (let round = 0; round <= rounds; round++) {
    for (const [index, { run }] of runners.entries()) {
      const result = await run()
      if (round > 0) measured[index]?.push(result)
    }
  }
  return runners.map(({ name }, index) => {
    const medianOf = (value: (round: Round) => number) => median((measured[index] ?? []).map(value))
    return {
      name,
      perSecond: medianOf((round) => round.perSecond),
      server: medianOf((round) => round.server),
      database: medianOf((round) => round.database)
    }
  })
}

const table = (title: string, results: ReadonlyArray<Round & { readonly name: string }>) => {
  const [base] = results
  console.log(`\n${title}`)
  console.table(
    results.map(({ name, perSecond, server, database: inDatabase }) => ({
      contender: name,
      "per second": Math.round(perSecond),
      "ours / its": figure((base?.perSecond ?? 0) / perSecond),
      "CPU ms, server": figure(server),
      "CPU ms, database": figure(inDatabase),
      "CPU, ours / its": figure(((base?.server ?? 0) + (base?.database ?? 0)) / (server + inDatabase))
    }))
  )
}

const runnersOf = (
  servers: ReadonlyMap<Contender, Server>,
  work: Work.Work,
  connections: number,
  duration = seconds
): ReadonlyArray<Runner> =>
  [...servers].flatMap(([contender, server]) => {
    const request = contender.request(work)
    const status = work.hasKey === false ? 401 : 200
    if (request === undefined) return []
    return [
      {
        name: contender.name,
        run: () => load(server, postgres.pid, request, { connections, seconds: duration, status })
      }
    ]
  })

/** The least that a page costs: sending bytes from memory, and the query alone. */
const floor = async (server: Server, connections: number): Promise<ReadonlyArray<Runner>> => {
  const request = required(service, Work.pageOf100)
  const sql = Statement.make(Effect.never, PgClient.makeCompiler(), [], undefined)
  const owner = sql.literal(`'${largest}'`)
  const first = { limit: 100, offset: 0 }
  const { statement } = searchQuery(sql, owner, consumptionLogs, askedOf(consumptionLogs, {}, first), first)
  const [query] = statement.compile()
  const bytes = { connections, seconds, status: 200 }
  return [
    { name: "floor: node:http", run: () => load(server, postgres.pid, request, bytes) },
    ...(pgbench === undefined
      ? []
      : [
          {
            name: "floor: pgbench",
            run: () => loadQuery(pgbench ?? "", database, postgres.pid, query, { connections, seconds })
          }
        ])
  ]
}

console.log(caption)
const servers = new Map<Contender, Server>()
for (const contender of contenders) servers.set(contender, await contender.start(database))
const ours = servers.get(service)
if (ours === undefined) throw new Error("this service was not started")
const page = await ask(ours, required(service, Work.pageOf100))
const bytes = await startFloor(Buffer.from(page.text))
if (pgbench === undefined) console.log("pgbench is not installed: its floor is left out")

const charts: Array<Bars> = []
const both = await withProcesses.start(database)

/** How long each contender is asked each kind of work before any is measured, in seconds: Node compiles what runs often. */
const warmUp = 3

const cold: Array<Round & { name: string }> = []
for (const { name, run } of runnersOf(servers, Work.pageOf100, 16)) cold.push({ name, ...(await run()) })
table(`page of 100, 16 connections, ${largestSize} records, the first ${seconds} s after the start`, cold)
for (const work of Work.all) {
  for (const { run } of runnersOf(new Map([...servers, [withProcesses, both] as const]), work, 16, warmUp)) await run()
}

for (const work of Work.all) {
  await check(servers, work)
  const least = work === Work.pageOf100 ? await floor(bytes, 16) : []
  const results = await interleave([...runnersOf(servers, work, 16), ...least])
  table(`${work.name}, 16 connections, ${largestSize} records`, results)
  const bars = results.slice(0, results.length - least.length)
  charts.push({ title: work.name, bars: bars.map(({ name, perSecond }) => ({ label: name, value: perSecond })) })
}
for (const connections of [1, 16, 64]) {
  const all = new Map([...servers, [withProcesses, both] as const])
  const results = await interleave(runnersOf(all, Work.pageOf100, connections))
  table(`page of 100, ${connections} connections, ${largestSize} records`, results)
}
writeFileSync(
  fileURLToPath(new URL("reads.svg", import.meta.url)),
  chart(caption, "Requests per second, 16 connections, 1,000,000 consumption logs", charts)
)

const timed = async (server: Server, request: Request) => {
  const begun = performance.now()
  const { status, text } = await ask(server, request)
  if (status !== 200) throw new Error(`${status} ${text}`)
  return { milliseconds: performance.now() - begun, text }
}

const depths: Array<Record<string, string | number>> = []
for (const offset of [0, 1000, 10_000, 100_000, 390_000]) {
  const work = Work.at(offset)
  await check(servers, work)
  const took = new Map([...servers.keys()].map((contender) => [contender, new Array<number>()]))
  for (let round = 0; round < Math.max(rounds, 5); round++) {
    for (const [contender, server] of servers) {
      took.get(contender)?.push((await timed(server, required(contender, work))).milliseconds)
    }
  }
  depths.push({ offset, ...Object.fromEntries([...took].map(([{ name }, all]) => [name, figure(median(all))])) })
}
console.log("\nMilliseconds for a page of 100 at an offset, one caller")
console.table(depths)

/** Walks through every record of the organization. Returns how long the pages of each tenth of the way took. */
const walk = async (next: (seen: number, last: string) => Work.Work) => {
  const ids = new Set<string>()
  const took: Array<number> = []
  let last = ""
  const begun = performance.now()
  for (;;) {
    const { milliseconds, text } = await timed(ours, required(service, next(ids.size, last)))
    const { body }: { body: ReadonlyArray<{ id: string; updated_at: string }> } = JSON.parse(text)
    const before = ids.size
    for (const { id } of body) ids.add(id)
    if (ids.size === before) break
    took.push(milliseconds)
    last = body.at(-1)?.updated_at ?? last
  }
  const tenth = Math.ceil(took.length / 10)
  return {
    records: ids.size,
    pages: took.length,
    seconds: figure((performance.now() - begun) / 1000),
    "ms a page, first tenth": figure(median(took.slice(0, tenth))),
    "ms a page, last tenth": figure(median(took.slice(-tenth)))
  }
}
console.log("\nA walk through all records of the largest organization, 1,000 a page, one caller")
console.table({
  "by offset": await walk((seen) => Work.at(seen, 1000)),
  "by updated_at_since": await walk((_, last) => Work.since(last || "2020-01-01T00:00:00Z", 1000))
})

console.log("\nA page of 100 for clients that ask for an encoding, 16 connections")
const identity = required(service, Work.pageOf100)
const sizesOf = new Map<string, number>()
const encoded = ["identity", "zstd", "br", "gzip"].map((name) => {
  const request = { ...identity, headers: { ...identity.headers, "accept-encoding": name } }
  return { name, request }
})
for (const { name, request } of encoded) {
  const { bytes: size } = await askRaw(ours, request)
  sizesOf.set(name, size)
}
const compressed = await interleave(
  encoded.map(({ name, request }) => ({
    name,
    run: () => load(ours, postgres.pid, request, { connections: 16, seconds, status: 200 })
  }))
)
console.table(
  compressed.map(({ name, perSecond, server }) => {
    const [plain] = compressed
    const saved = (sizesOf.get("identity") ?? 0) - (sizesOf.get(name) ?? 0)
    const cost = server - (plain?.server ?? 0)
    return {
      encoding: name,
      bytes: sizesOf.get(name),
      "per second": Math.round(perSecond),
      "CPU ms, server": figure(server),
      "pays below, Mbit/s": saved > 0 ? Math.round((saved * 8) / 1000 / Math.max(cost, 0.01)) : ""
    }
  })
)

for (const server of [...servers.values(), both, bytes]) await server.stop()

const bySize = new Map<number, Server>()
for (const size of sizes) bySize.set(size, await service.start(databases.get(size) ?? ""))
table(
  "page of 100, 16 connections, by the number of records",
  await interleave(
    [...bySize].map(([size, server]) => ({
      name: `${size} records`,
      run: () =>
        load(server, postgres.pid, required(service, Work.pageOf100), { connections: 16, seconds, status: 200 })
    }))
  )
)
for (const server of bySize.values()) await server.stop()

const fresh = await service.start(database)
const memory: Array<Record<string, number>> = [{ pages: 0, "resident MiB": figure(memoryOf(fresh.pid)) }]
let pages = 0
for (const until of [10_000, 50_000, 100_000, 150_000]) {
  while (pages < until) {
    const limit = { connections: 16, seconds: 1, status: 200 }
    pages += Math.round((await load(fresh, postgres.pid, required(service, Work.pageOf100), limit)).perSecond)
  }
  memory.push({ pages, "resident MiB": figure(memoryOf(fresh.pid)) })
}
await fresh.stop()
console.log("\nMemory of this service")
console.table(memory)

const starts: Array<number> = []
for (let round = 0; round < Math.max(rounds, 5); round++) {
  const begun = performance.now()
  const server = await service.start(database)
  await timed(server, required(service, Work.pageOf100))
  starts.push(performance.now() - begun)
  await server.stop()
}
console.log(`\nFrom start to the first answer, on a migrated Postgres: ${figure(median(starts))} ms`)

const client = new pg.Client(database)
await client.connect()
const { rows } = await client.query<{ size: string }>(
  "select pg_size_pretty(pg_table_size('consumption_logs')) as size"
)
await client.end()
console.log(`Size of the table of 1,000,000 consumption logs: ${rows[0]?.size}`)
await postgres.stop()
