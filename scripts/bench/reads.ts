/**
 * Reads of consumption logs, by this service and by what people would use instead, on the same Postgres in one run:
 * requests per second and CPU time for each kind of request, with new processes in each round; then the memory and the
 * start of this service. All contenders must return the same records. Linux only, since CPU time is read from /proc.
 *
 * Usage: `npm run bench [-- ROUNDS SECONDS [WORK ...]]`, where WORK is the title of a table, such as "single record"; others are
 * left out then. BENCH_DATA=FOLDER keeps the data for another run, BENCH_BEFORE=COMMIT is the commit to compare with (HEAD~1).
 */
import { caption } from "../machine.ts"
import { allContenders, ask, type Contender, service } from "./reads/contenders.ts"
import { open, records } from "./reads/data.ts"
import { answered, load, type Round } from "./reads/load.ts"
import { memoryOf, type Server } from "./reads/processes.ts"
import * as Work from "./reads/work.ts"
import { figure, type Measured, median, table } from "./support.ts"

const [roundsText = "5", secondsText = "2", ...named] = process.argv.slice(2)
const rounds = Number(roundsText)
const seconds = Number(secondsText)
const works = Work.all.filter(({ name }) => named.length === 0 || named.includes(name))
if (works.length < named.length) throw new Error(`One of ${named.join(", ")} is not known`)

const contenders = allContenders()
const postgres = await open()
const { database } = postgres

type Servers = ReadonlyMap<Contender, Server>

/** Fails unless all answer some work with the same records. */
const check = async (servers: Servers, work: Work.Work) => {
  if (work.hasKey === false) return
  const answers = new Set<string>()
  for (const server of servers.values()) answers.add(await ask(server, work))
  if (answers.size > 1) throw new Error(`${work.name}: the answers differ`)
}

/** The medians of several measures. */
const medianOf = (measures: ReadonlyArray<Round>): Round => {
  const of = (value: (one: Round) => number) => median(measures.map(value))
  return { perSecond: of((one) => one.perSecond), server: of((one) => one.server), database: of((one) => one.database) }
}

/** The parts of a measure that alternate between the contenders: the speed of a machine changes within seconds. */
const slices = 5

/** Measures in slices, from another contender in each one: the first is slower. */
const measure = async (servers: Servers, work: Work.Work, results: Measured<Round>) => {
  const all = [...servers].map(([{ name }, server]) => ({ name, server, measured: new Array<Round>() }))
  for (let slice = 0; slice < slices; slice++) {
    const first = slice % all.length
    for (const { measured, server } of [...all.slice(first), ...all.slice(0, first)]) {
      measured.push(await load(server, postgres.pid, work, seconds / slices))
    }
  }
  for (const { measured, name } of all) results.get(name)?.push(medianOf(measured))
}

const startAll = async (): Promise<Servers> => {
  const servers = new Map<Contender, Server>()
  for (const contender of contenders) servers.set(contender, await contender.start(database))
  return servers
}

/** The costs of the last five seconds differ by less than 5 %. */
const isLevel = (costs: ReadonlyArray<number>) =>
  costs.length >= 5 && Math.max(...costs.slice(-5)) < 1.05 * Math.min(...costs.slice(-5))

/**
 * Loads each server for at most 30 seconds, until it has answered 150,000 requests or its CPU time for one is level: Node
 * compiles what runs often. A single record costs four times as much CPU time in the first seconds, and still a third more
 * after 50,000 requests. Then again for three seconds: the first requests after the others' warm-up cost up to three times
 * as much, once.
 */
const warm = async (servers: Servers, work: Work.Work) => {
  for (const server of servers.values()) {
    const costs: Array<number> = []
    for (let count = 0; count < 150_000 && costs.length < 30 && !isLevel(costs);) {
      const second = await load(server, postgres.pid, work, 1)
      count += second.perSecond
      costs.push(second.server)
    }
  }
  for (const server of servers.values()) await load(server, postgres.pid, work, 3)
}

/** Each round has new processes: one start of Node differs from the next by more than a change does. */
const eachKind = async () => {
  const empty = (): Measured<Round> => new Map(contenders.map(({ name }) => [name, []]))
  const measured = new Map(works.map((work) => [work, { results: empty(), shares: new Array<number>() }]))
  for (let round = 0; round < rounds; round++) {
    const servers = await startAll()
    const ours = servers.get(service)
    for (const [work, { results, shares }] of measured) {
      await check(servers, work)
      await warm(servers, work)
      const before = await answered(ours)
      await measure(servers, work, results)
      const after = await answered(ours)
      shares.push((after.lane - before.lane) / (after.all - before.all))
    }
    for (const server of servers.values()) await server.stop()
  }
  for (const [work, { results, shares }] of measured) {
    table(`${work.name}, 16 connections, ${records} records, ${rounds} starts`, "contender", results, {
      "per second": (its) => its.perSecond,
      "ours / its": (its, ours) => ours.perSecond / its.perSecond,
      "CPU ms, server": (its) => its.server,
      "CPU ms, database": (its) => its.database,
      "CPU, ours / its": (its, ours) => (ours.server + ours.database) / (its.server + its.database)
    })
    console.log(`The lane of this service answered ${figure(100 * median(shares))} % of these requests`)
  }
}

const memory = async () => {
  const server = await service.start(database)
  const resident = [{ pages: 0, "resident MiB": figure(memoryOf(server.pid)) }]
  let pages = 0
  for (const until of [10_000, 50_000, 100_000, 150_000]) {
    while (pages < until) {
      pages += Math.round((await load(server, postgres.pid, Work.pageOf100, 1)).perSecond)
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
    await ask(server, Work.pageOf100)
    took.push(performance.now() - begun)
    await server.stop()
  }
  console.log(`\nFrom start to the first answer, on a migrated Postgres: ${figure(median(took))} ms`)
}

console.log(caption(`medians of ${rounds} rounds of ${seconds} s`))
await eachKind()
if (named.length === 0) {
  await memory()
  await starts()
}
await postgres.stop()
