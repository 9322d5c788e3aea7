/**
 * Reads of consumption logs, by this service and by what people would use instead, on the same Postgres in one run:
 * requests per second and CPU time for each kind of request, with new processes in each round; how they change with the
 * connections, the number of records and the depth of the page; then the memory and the start of this service. All
 * contenders must return the same records. Linux only, since CPU time is read from /proc.
 *
 * Usage: `npm run bench [-- ROUNDS SECONDS [WORK ...]]`, where WORK is the title of a table, such as "single record"; others are
 * left out then. BENCH_DATA=FOLDER keeps the data for another run, BENCH_BEFORE=COMMIT is the commit to compare with (HEAD~1),
 * BENCH_BESIDE=FOLDER[:FOLDER] adds the services of other checkouts.
 */
import { allContenders, ask, type Contender, service, withProcesses } from "./reads/contenders.ts"
import { prepare } from "./reads/data.ts"
import { answered, load, type Round } from "./reads/load.ts"
import { memoryOf, type Server } from "./reads/processes.ts"
import * as Work from "./reads/work.ts"
import { figure, machine, median, startPostgres } from "./support.ts"

const [roundsText = "5", secondsText = "2", ...named] = process.argv.slice(2)
const rounds = Number(roundsText)
const seconds = Number(secondsText)
const works = Work.all.filter(({ name }) => named.length === 0 || named.includes(name))
if (works.length < named.length) throw new Error(`One of ${named.join(", ")} is not known`)
const sizes = [10_000, 100_000, 1_000_000] as const
const [, , largestSize] = sizes

const contenders = allContenders()
const caption = `${new Date().toISOString().slice(0, 10)}, ${machine()}; medians of ${rounds} rounds of ${seconds} s`

const postgres = await startPostgres(process.env["BENCH_DATA"], {
  shared_buffers: "4GB",
  max_wal_size: "8GB",
  checkpoint_timeout: "1h"
})
const databases = new Map<number, string>()
for (const size of sizes) databases.set(size, await prepare(postgres.url, size))
const database = databases.get(largestSize) ?? ""

type Servers = ReadonlyMap<Contender, Server>

/** Fails unless all answer some work with the same records. */
const check = async (servers: Servers, work: Work.Work) => {
  if (work.hasKey === false) return
  const answers = new Set<string>()
  for (const server of servers.values()) answers.add(await ask(server, work))
  if (answers.size > 1) throw new Error(`${work.name}: the answers differ`)
}

interface Runner {
  readonly name: string
  readonly run: () => Promise<Round>
}

/** What each contender came to, by its name. */
type Results = ReadonlyMap<string, Round>

const roundOf = (results: Results, name: string): Round =>
  results.get(name) ?? { perSecond: NaN, server: NaN, database: NaN }

/** The medians of several measures of each contender. */
const medians = (names: ReadonlyArray<string>, all: ReadonlyArray<Results>): Results =>
  new Map(
    names.map((name) => {
      const of = (value: (round: Round) => number) => median(all.map((results) => value(roundOf(results, name))))
      return [
        name,
        { perSecond: of((one) => one.perSecond), server: of((one) => one.server), database: of((one) => one.database) }
      ]
    })
  )

/** Measures in turn, round by round, from another one each round: the first is slower. */
const interleave = async (runners: ReadonlyArray<Runner>, times = rounds): Promise<ReadonlyArray<Results>> => {
  const measured: Array<Results> = []
  for (let round = 0; round < times; round++) {
    const results = new Map<string, Round>()
    const first = round % runners.length
    for (const { name, run } of [...runners.slice(first), ...runners.slice(0, first)]) results.set(name, await run())
    measured.push(results)
  }
  return measured
}

/** Prints the medians of rounds. Ratios are medians of those of each round: all contenders had the same machine in it. */
const table = (title: string, names: ReadonlyArray<string>, all: ReadonlyArray<Results>) => {
  const [base = ""] = names
  console.log(`\n${title}`)
  console.table(
    names.map((name) => {
      const of = (value: (its: Round, ours: Round) => number) =>
        figure(median(all.map((results) => value(roundOf(results, name), roundOf(results, base)))))
      return {
        contender: name,
        "per second": of((its) => its.perSecond),
        "ours / its": of((its, ours) => ours.perSecond / its.perSecond),
        "CPU ms, server": of((its) => its.server),
        "CPU ms, database": of((its) => its.database),
        "CPU, ours / its": of((its, ours) => (ours.server + ours.database) / (its.server + its.database))
      }
    })
  )
}

const namesOf = (all: ReadonlyArray<{ readonly name: string }>) => all.map(({ name }) => name)

const runnersOf = (servers: Servers, work: Work.Work, connections: number, duration = seconds): ReadonlyArray<Runner> =>
  [...servers].map(([{ name }, server]) => ({
    name,
    run: () => load(server, postgres.pid, work, { connections, seconds: duration })
  }))

const startAll = async (wanted: ReadonlyArray<Contender>): Promise<Servers> => {
  const servers = new Map<Contender, Server>()
  for (const contender of wanted) servers.set(contender, await contender.start(database))
  return servers
}

const stopAll = async (servers: ReadonlyMap<unknown, Server>) => {
  for (const server of servers.values()) await server.stop()
}

/** The costs of the last five seconds differ by less than 5 %. */
const isLevel = (costs: ReadonlyArray<number>) =>
  costs.length >= 5 && Math.max(...costs.slice(-5)) < 1.05 * Math.min(...costs.slice(-5))

/**
 * Loads each server for at most 20 seconds, until it has answered 50,000 requests or its CPU time for one is level: Node
 * compiles what runs often, and a page of 100 costs twice as much CPU time in the first ten seconds as later. Then again for
 * three seconds: the first requests after the others' warm-up cost up to three times as much, once.
 */
const warm = async (servers: ReadonlyMap<unknown, Server>, work: Work.Work) => {
  for (const server of servers.values()) {
    const costs: Array<number> = []
    for (let count = 0; count < 50_000 && costs.length < 20 && !isLevel(costs);) {
      const second = await load(server, postgres.pid, work, { connections: 16, seconds: 1 })
      count += second.perSecond
      costs.push(second.server)
    }
  }
  for (const server of servers.values()) await load(server, postgres.pid, work, { connections: 16, seconds: 3 })
}

const firstSecond = async () => {
  const first = async ({ start }: Contender) => {
    const server = await start(database)
    const round = await load(server, postgres.pid, Work.pageOf100, { connections: 16, seconds: 1 })
    await server.stop()
    return round
  }
  const cold = contenders.map((contender) => ({ name: contender.name, run: () => first(contender) }))
  const title = `page of 100, 16 connections, ${largestSize} records, the first second after a start`
  // The first start of a checkout compiles what the others find.
  await interleave(cold, 1)
  table(title, namesOf(cold), await interleave(cold))
}

/** The parts of a measure that alternate between the contenders: the speed of a machine changes within seconds. */
const slices = 5

/** Each round has new processes: one start of Node differs from the next by more than a change does. */
const eachKind = async () => {
  const names = namesOf(contenders)
  const measured = new Map(works.map((work) => [work, { results: new Array<Results>(), shares: new Array<number>() }]))
  for (let round = 0; round < rounds; round++) {
    const servers = await startAll(contenders)
    const ours = servers.get(service)
    for (const [work, { results, shares }] of measured) {
      await check(servers, work)
      await warm(servers, work)
      const before = await answered(ours)
      results.push(medians(names, await interleave(runnersOf(servers, work, 16, seconds / slices), slices)))
      const after = await answered(ours)
      shares.push((after.lane - before.lane) / (after.all - before.all))
    }
    await stopAll(servers)
  }
  for (const [work, { results, shares }] of measured) {
    table(`${work.name}, 16 connections, ${largestSize} records, ${rounds} starts`, names, results)
    console.log(`The lane of this service answered ${figure(100 * median(shares))} % of these requests`)
  }
}

const byConnections = async (servers: Servers) => {
  const more = await startAll([withProcesses])
  await warm(more, Work.pageOf100)
  for (const connections of [1, 16, 64]) {
    const runners = runnersOf(new Map([...servers, ...more]), Work.pageOf100, connections)
    table(
      `page of 100, ${connections} connections, ${largestSize} records`,
      namesOf(runners),
      await interleave(runners)
    )
  }
  await stopAll(more)
}

const timed = async (server: Server, work: Work.Work) => {
  const begun = performance.now()
  await ask(server, work)
  return performance.now() - begun
}

const byDepth = async (servers: Servers) => {
  const depths: Array<Record<string, string | number>> = []
  for (const offset of [0, 1000, 10_000, 100_000, 390_000]) {
    const work = Work.at(offset)
    await check(servers, work)
    const took = new Map([...servers.keys()].map((contender) => [contender, new Array<number>()]))
    for (let round = 0; round < Math.max(rounds, 5); round++) {
      for (const [contender, server] of servers) took.get(contender)?.push(await timed(server, work))
    }
    depths.push({ offset, ...Object.fromEntries([...took].map(([{ name }, all]) => [name, figure(median(all))])) })
  }
  console.log("\nMilliseconds for a page of 100 at an offset, one caller")
  console.table(depths)
}

const bySize = async () => {
  const servers = new Map<number, Server>()
  for (const size of sizes) servers.set(size, await service.start(databases.get(size) ?? ""))
  const runners = [...servers].map(([size, server]) => ({
    name: `${size} records`,
    run: () => load(server, postgres.pid, Work.pageOf100, { connections: 16, seconds })
  }))
  await warm(servers, Work.pageOf100)
  table("page of 100, 16 connections, by the number of records", namesOf(runners), await interleave(runners))
  await stopAll(servers)
}

const memory = async () => {
  const server = await service.start(database)
  const resident = [{ pages: 0, "resident MiB": figure(memoryOf(server.pid)) }]
  let pages = 0
  for (const until of [10_000, 50_000, 100_000, 150_000]) {
    while (pages < until) {
      pages += Math.round((await load(server, postgres.pid, Work.pageOf100, { connections: 16, seconds: 1 })).perSecond)
    }
    resident.push({ pages, "resident MiB": figure(memoryOf(server.pid)) })
  }
  await server.stop()
  console.log("\nMemory of this service")
  console.table(resident)
}

const starts = async () => {
  const took: Array<number> = []
  for (let round = 0; round < Math.max(rounds, 5); round++) {
    const begun = performance.now()
    const server = await service.start(database)
    await timed(server, Work.pageOf100)
    took.push(performance.now() - begun)
    await server.stop()
  }
  console.log(`\nFrom start to the first answer, on a migrated Postgres: ${figure(median(took))} ms`)
}

console.log(caption)
const isWhole = named.length === 0
if (isWhole) await firstSecond()
await eachKind()
if (isWhole) {
  const servers = await startAll(contenders)
  await warm(servers, Work.pageOf100)
  await byConnections(servers)
  await byDepth(servers)
  await stopAll(servers)
  await bySize()
  await memory()
  await starts()
}
await postgres.stop()
