/**
 * What the feed of changes costs: a walk through all records of an organization by changes, beside the same by
 * `updated_at_since` and by `offset`; a poll without news beside a search's; and COPY into a table that tells its changes,
 * beside one that does not.
 *
 * Usage: `npm run bench:changes [-- ROUNDS SECONDS]`. BENCH_DATA=FOLDER keeps the data for another run.
 */
import pg from "pg"
import { ask, service } from "./reads/contenders.ts"
import { prepare } from "./reads/data.ts"
import { load } from "./reads/load.ts"
import { cpuOf, type Server } from "./reads/processes.ts"
import type { Work } from "./reads/work.ts"
import { machine, median, startPostgres } from "./support.ts"

const [rounds = 5, seconds = 2] = process.argv.slice(2).map(Number)
const records = 1_000_000
const copied = 200_000

const figure = (value: number) => (value >= 100 ? Math.round(value) : Number(value.toPrecision(3)))

console.log(`${new Date().toISOString().slice(0, 10)}, ${machine()}; medians of ${rounds} interleaved rounds`)
const postgres = await startPostgres(process.env["BENCH_DATA"], {
  shared_buffers: "4GB",
  max_wal_size: "8GB",
  checkpoint_timeout: "1h"
})
const database = await prepare(postgres.url, records)
const ours = await service.start(database)

interface Page {
  readonly body: ReadonlyArray<{ readonly id: string; readonly updated_at: string }>
  readonly cursor?: string
  readonly has_more?: boolean
}

const read = async (server: Server, { body, endpoint, name }: Work): Promise<Page> => {
  const request = service.request({ name, endpoint, body })
  if (request === undefined) throw new Error(`no ${name}`)
  const { status, text } = await ask(server, request)
  if (status !== 200) throw new Error(`${status} ${text}`)
  return JSON.parse(text)
}

/** How to read the next page, if there is one. */
type Next = (seen: number, page: Page) => Work | undefined

const limit = 1000
const ways: Readonly<Record<string, { readonly first: Work; readonly next: Next }>> = {
  "by changes": {
    first: { name: "changes", endpoint: "changes", body: { limit } },
    next: (_, { cursor = "", has_more }) =>
      has_more === true ? { name: "changes", endpoint: "changes", body: { limit, cursor } } : undefined
  },
  "by updated_at_since": {
    first: { name: "since", endpoint: "search", body: { limit, include_deleted: true } },
    next: (_, { body }) =>
      body.length < limit
        ? undefined
        : {
            name: "since",
            endpoint: "search",
            body: { limit, include_deleted: true, updated_at_since: body.at(-1)?.updated_at ?? "" }
          }
  },
  "by offset": {
    first: { name: "offset", endpoint: "search", body: { limit, include_deleted: true } },
    next: (seen, { body }) =>
      body.length < limit
        ? undefined
        : { name: "offset", endpoint: "search", body: { limit, include_deleted: true, offset: seen } }
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
  let page = await read(ours, { name: "changes", endpoint: "changes", body: {} })
  while (page.has_more === true) {
    page = await read(ours, { name: "changes", endpoint: "changes", body: { cursor: page.cursor ?? "" } })
  }
  return page.cursor ?? ""
})()
const polls: ReadonlyArray<Work> = [
  { name: "poll of changes", endpoint: "changes", body: { cursor: end } },
  { name: "poll of a search", endpoint: "search", body: { updated_at_since: "2030-01-01T00:00:00Z" } }
]
const polled = polls.map(() => new Array<Awaited<ReturnType<typeof load>>>())
for (let round = 0; round <= rounds; round++) {
  for (const [index, poll] of polls.entries()) {
    const request = service.request(poll)
    if (request === undefined) throw new Error(`no ${poll.name}`)
    const result = await load(ours, postgres.pid, request, { connections: 16, seconds, status: 200 })
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

const client = new pg.Client(database)
await client.connect()
const { rows } = await client.query<{ columns: string }>(
  `select string_agg(attname, ', ' order by attnum) as columns from pg_attribute
   where attrelid = 'consumption_logs'::regclass and attnum > 0 and not attisdropped and attgenerated = ''
     and attname <> 'change_position'`
)
const columns = rows[0]?.columns ?? ""
const { rows: settings } = await client.query<{ folder: string }>("select current_setting('data_directory') as folder")
const file = `'${settings[0]?.folder}/copied'`
await client.query(`copy (select ${columns} from consumption_logs limit ${copied}) to ${file}`)

const [told, untold] = ["copied_told", "copied_untold"] as const
await client.query(`drop table if exists ${told}, ${untold}`)
for (const table of [told, untold]) await client.query(`create table ${table} (like consumption_logs including all)`)
await client.query(`alter table ${untold} drop column change_position`)
await client.query(
  `create trigger zz_inserted before insert on ${told} for each row
   when (new.change_position is distinct from change_position() or current_setting('synchronous_commit') = 'off')
   execute function record_changed()`
)
await client.query(`create trigger removed after delete on ${told} for each row execute function record_removed()`)

const copies = new Map([told, untold].map((table) => [table, new Array<{ seconds: number; cpu: number }>()]))
for (let round = 0; round <= rounds; round++) {
  for (const [table, all] of copies) {
    await client.query(`truncate ${table}`)
    await client.query("checkpoint")
    const [cpu, begun] = [cpuOf(postgres.pid), performance.now()]
    await client.query(`copy ${table} (${columns}) from ${file}`)
    if (round > 0) all.push({ seconds: (performance.now() - begun) / 1000, cpu: (cpuOf(postgres.pid) - cpu) / 1000 })
  }
}
console.log(`\nCOPY of ${copied} consumption logs`)
console.table(
  [...copies].map(([table, all]) => ({
    table: table === told ? "tells its changes" : "does not",
    seconds: figure(median(all.map((one) => one.seconds))),
    "CPU s, database": figure(median(all.map(({ cpu }) => cpu)))
  }))
)
await client.query(`drop table ${told}, ${untold}`)
await client.end()
await postgres.stop()
