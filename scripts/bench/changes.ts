/**
 * What the feed of changes costs: a walk through all records of an organization by changes, beside the same by
 * `updated_at_since` and by `offset`; and a poll without news beside a search's.
 *
 * Usage: `npm run bench:changes [-- ROUNDS SECONDS]`. BENCH_DATA=FOLDER keeps the data for another run.
 */
import { caption } from "../machine.ts"
import { ask, service } from "./reads/contenders.ts"
import { open, records } from "./reads/data.ts"
import { load } from "./reads/load.ts"
import { cpuOf } from "./reads/processes.ts"
import type { Work } from "./reads/work.ts"
import { interleaved, median, table } from "./support.ts"

const [rounds = 5, seconds = 2] = process.argv.slice(2).map(Number)

console.log(caption(`medians of ${rounds} interleaved rounds`))
const postgres = await open()
const ours = await service.start(postgres.database)

interface Found {
  readonly id: string
  readonly updated_at: string
}

interface Page {
  readonly body: ReadonlyArray<Found>
  readonly cursor?: string
  readonly has_more?: boolean
}

const read = async (work: Work): Promise<Page> => {
  const page = JSON.parse(await ask(ours, work))
  return {
    ...page,
    body: page.body.map((item: Found | { readonly record: Found }) => ("record" in item ? item.record : item))
  }
}

const limit = 1000
const changes = (body: Work["body"]): Work => ({
  name: "changes",
  endpoint: "changes",
  body: { ...body, resources: ["consumption-logs"] }
})
const search = (body: Work["body"]): Work => ({ name: "search", endpoint: "search", body })
const all = { limit, include_deleted: true }

/** How to read the next page, if there is one. */
type Next = (seen: number, page: Page) => Work | undefined

const byChanges: Next = (_, { cursor = "", has_more }) => (has_more === true ? changes({ limit, cursor }) : undefined)
const byTime: Next = (_, { body }) =>
  body.length < limit ? undefined : search({ ...all, updated_at_since: body.at(-1)?.updated_at ?? "" })
const byOffset: Next = (seen, { body }) => (body.length < limit ? undefined : search({ ...all, offset: seen }))

/** The pages of a walk: how long each took, and its CPU time in the server and the database, in milliseconds. */
const walk = async (first: Work, next: Next) => {
  const ids = new Set<string>()
  const took: Array<number> = []
  const before = cpuOf(ours.pid) + cpuOf(postgres.pid)
  let seen = 0
  for (let work: Work | undefined = first; work !== undefined;) {
    const begun = performance.now()
    const page = await read(work)
    took.push(performance.now() - begun)
    seen += page.body.length
    for (const { id } of page.body) ids.add(id)
    work = next(seen, page)
  }
  const tenth = Math.ceil(took.length / 10)
  return {
    records: ids.size,
    pages: took.length,
    cpu: (cpuOf(ours.pid) + cpuOf(postgres.pid) - before) / took.length,
    took: took.reduce((sum, each) => sum + each, 0) / took.length,
    first: median(took.slice(0, tenth)),
    last: median(took.slice(-tenth))
  }
}

const walks = await interleaved(rounds, {
  "by changes": () => walk(changes({ limit }), byChanges),
  "by updated_at_since": () => walk(search(all), byTime),
  "by offset": () => walk(search(all), byOffset)
})
const counts = [...walks.values()].map(([one]) => one?.records)
if (new Set(counts).size > 1) throw new Error(`The walks found ${counts.join(", ")} records`)
table(
  `A walk through the records of the largest organization of ${records}, ${limit} a page, one caller`,
  "walk",
  walks,
  {
    records: (its) => its.records,
    pages: (its) => its.pages,
    "CPU ms a page": (its) => its.cpu,
    "ms a page": (its) => its.took,
    "first tenth": (its) => its.first,
    "last tenth": (its) => its.last,
    "last / first": (its) => its.last / its.first
  }
)

let end = await read(changes({}))
while (end.has_more === true) end = await read(changes({ cursor: end.cursor ?? "" }))
const poll = (work: Work) => () => load(ours, postgres.pid, work, seconds)
const polls = await interleaved(rounds, {
  "poll of changes": poll(changes({ cursor: end.cursor ?? "" })),
  "poll of a search": poll(search({ updated_at_since: "2030-01-01T00:00:00Z" }))
})
table(`A poll without news, 16 connections, rounds of ${seconds} s`, "poll", polls, {
  "per second": (its) => its.perSecond,
  "CPU ms, server": (its) => its.server,
  "CPU ms, database": (its) => its.database
})
await ours.stop()
await postgres.stop()
