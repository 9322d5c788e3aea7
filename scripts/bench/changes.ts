/**
 * What the feed of changes costs: a walk through all records of an organization by changes, beside the same by
 * `updated_at_since` and by `offset`; and a poll without news beside a search's.
 *
 * Usage: `npm run bench:changes [-- ROUNDS SECONDS]`. BENCH_DATA=FOLDER keeps the data for another run.
 */
import { ask, service } from "./reads/contenders.ts"
import { open, records } from "./reads/data.ts"
import { load } from "./reads/load.ts"
import { cpuOf, type Server } from "./reads/processes.ts"
import type { Work } from "./reads/work.ts"
import { caption, figure, median } from "./support.ts"

const [rounds = 5, seconds = 2] = process.argv.slice(2).map(Number)

console.log(caption(`${rounds} interleaved rounds`))
const postgres = await open()
const ours = await service.start(postgres.database)

interface Page {
  readonly body: ReadonlyArray<{ readonly id: string; readonly updated_at: string }>
  readonly cursor?: string
  readonly has_more?: boolean
}

const read = async (server: Server, work: Work): Promise<Page> => JSON.parse(await ask(server, work))

/** How to read the next page, if there is one. */
type Next = (seen: number, page: Page) => Work | undefined

const limit = 1000
const changes = (body: Work["body"]): Work => ({ name: "changes", endpoint: "changes", body })
const search = (body: Work["body"]): Work => ({ name: "search", endpoint: "search", body })
const all = { limit, include_deleted: true }

const ways: Readonly<Record<string, { readonly first: Work; readonly next: Next }>> = {
  "by changes": {
    first: changes({ limit }),
    next: (_, { cursor = "", has_more }) => (has_more === true ? changes({ limit, cursor }) : undefined)
  },
  "by updated_at_since": {
    first: search(all),
    next: (_, { body }) =>
      body.length < limit ? undefined : search({ ...all, updated_at_since: body.at(-1)?.updated_at ?? "" })
  },
  "by offset": {
    first: search(all),
    next: (seen, { body }) => (body.length < limit ? undefined : search({ ...all, offset: seen }))
  }
}

/** The pages of a walk: how long each took, and its CPU time in the server and the database, in milliseconds. */
const walk = async ({ first, next }: (typeof ways)[string]) => {
  const ids = new Set<string>()
  const took: Array<number> = []
  const before = cpuOf(ours.pid) + cpuOf(postgres.pid)
  let seen = 0
  for (let work: Work | undefined = first; work !== undefined;) {
    const begun = performance.now()
    const page = await read(ours, work)
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

const walks = new Map(Object.keys(ways).map((name) => [name, new Array<Awaited<ReturnType<typeof walk>>>()]))
for (let round = 0; round <= rounds; round++) {
  for (const [name, way] of Object.entries(ways)) {
    const walked = await walk(way)
    if (round > 0) walks.get(name)?.push(walked)
  }
}
const counts = [...walks.values()].map(([one]) => one?.records)
if (new Set(counts).size > 1) throw new Error(`The walks found ${counts.join(", ")} records`)

console.log(`\nA walk through all records of the largest organization of ${records}, ${limit} a page, one caller`)
console.table(
  [...walks].map(([name, all]) => {
    const of = (value: (one: (typeof all)[number]) => number) => figure(median(all.map(value)))
    return {
      walk: name,
      records: of((one) => one.records),
      pages: of((one) => one.pages),
      "CPU ms a page": of((one) => one.cpu),
      "ms a page": of((one) => one.took),
      "first tenth": of((one) => one.first),
      "last tenth": of((one) => one.last),
      "last / first": of((one) => one.last / one.first)
    }
  })
)

const end = await (async () => {
  let page = await read(ours, changes({}))
  while (page.has_more === true) page = await read(ours, changes({ cursor: page.cursor ?? "" }))
  return page.cursor ?? ""
})()
const polls: ReadonlyArray<Work> = [
  { ...changes({ cursor: end }), name: "poll of changes" },
  { ...search({ updated_at_since: "2030-01-01T00:00:00Z" }), name: "poll of a search" }
]
const polled = polls.map(() => new Array<Awaited<ReturnType<typeof load>>>())
for (let round = 0; round <= rounds; round++) {
  for (const [index, poll] of polls.entries()) {
    const result = await load(ours, postgres.pid, poll, seconds)
    if (round > 0) polled[index]?.push(result)
  }
}
console.log(`\nA poll without news, 16 connections, rounds of ${seconds} s`)
console.table(
  polls.map(({ name }, index) => {
    const of = (value: (one: Awaited<ReturnType<typeof load>>) => number) =>
      figure(median((polled[index] ?? []).map(value)))
    return {
      poll: name,
      "per second": of((one) => one.perSecond),
      "CPU ms, server": of((one) => one.server),
      "CPU ms, database": of((one) => one.database)
    }
  })
)
await ours.stop()

await postgres.stop()
