/**
 * What a load costs: COPY of 200,000 consumption logs into their table as it is, beside a bare one, which has the same
 * columns in plain types, the primary key and the index of the order, and neither the rendered record nor the position of
 * a change. In interleaved rounds, on a Postgres of its own. Linux.
 *
 * Usage: `npm run bench:copy [-- ROWS ROUNDS]`
 */
import pg from "pg"
import { prepare } from "./reads/data.ts"
import { cpuOf } from "./reads/processes.ts"
import { machine, median, startPostgres } from "./support.ts"

const [rows = 200_000, rounds = 5] = process.argv.slice(2).map(Number)

const figure = (value: number) => (value >= 100 ? Math.round(value) : Number(value.toPrecision(3)))

console.log(`${new Date().toISOString().slice(0, 10)}, ${machine()}; medians of ${rounds} interleaved rounds`)
const postgres = await startPostgres(undefined, {
  shared_buffers: "1GB",
  max_wal_size: "8GB",
  checkpoint_timeout: "1h",
  autovacuum: "off"
})
const client = new pg.Client(await prepare(postgres.url, rows))
await client.connect()

const [text] = (
  await client.query<{ columns: string; types: string; folder: string }>(
    `select string_agg(quote_ident(attname), ', ' order by attnum) as columns,
       string_agg(format('%I %s', attname, format_type(coalesce(nullif(typbasetype, 0), t.oid), null)), ', ' order by attnum) as types,
       current_setting('data_directory') as folder
     from pg_attribute a join pg_type t on t.oid = a.atttypid
     where attrelid = 'consumption_logs'::regclass and attnum > 0 and not attisdropped and attgenerated = ''
       and attname <> 'change_position'`
  )
).rows
if (text === undefined) throw new Error("There is no table of consumption logs")
const file = `'${text.folder}/copied'`
await client.query(`copy (select ${text.columns} from consumption_logs) to ${file}`)
await client.query(`create table bare (${text.types})`)
await client.query('alter table bare alter organization_id type text collate "C", alter id type text collate "C"')
await client.query("alter table bare add primary key (organization_id, id)")
await client.query("create index on bare (organization_id, updated_at, id)")

const tables = ["bare", "consumption_logs"] as const
const measures = tables.map(() => new Array<Readonly<Record<"seconds" | "cpu" | "megabytes" | "wal", number>>>())
for (let round = 0; round <= rounds; round++) {
  for (const [index, table] of tables.entries()) {
    await client.query(`truncate ${table}`)
    await client.query("checkpoint")
    await client.query("select pg_switch_wal()")
    const { rows: before } = await client.query<{ wal: string }>("select pg_current_wal_insert_lsn() as wal")
    const [cpu, begun] = [cpuOf(postgres.pid), performance.now()]
    await client.query(`copy ${table} (${text.columns}) from ${file}`)
    const took = (performance.now() - begun) / 1000
    const used = (cpuOf(postgres.pid) - cpu) / 1000
    const { rows: sizes } = await client.query<{ bytes: string; wal: string }>(
      "select pg_total_relation_size($1::regclass) as bytes, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), $2) as wal",
      [table, before[0]?.wal]
    )
    const megabytes = Number(sizes[0]?.bytes) / 1e6
    if (round > 0) measures[index]?.push({ seconds: took, cpu: used, megabytes, wal: Number(sizes[0]?.wal) / 1e6 })
  }
}

type Measure = (typeof measures)[number][number]

const of = (index: number, value: (measure: Measure) => number) => median((measures[index] ?? []).map(value))
const compared = (what: string, value: (measure: Measure) => number) => {
  const [bare, whole] = [of(0, value), of(1, value)]
  return { what, bare: figure(bare), "as it is": figure(whole), ratio: Number((whole / bare).toFixed(2)) }
}
console.log(`\nCOPY of ${rows} consumption logs`)
console.table([
  compared("seconds", ({ seconds }) => seconds),
  compared("CPU of the database, s", ({ cpu }) => cpu),
  compared("table and indexes, MB", ({ megabytes }) => megabytes),
  compared("WAL, MB", ({ wal }) => wal)
])
await client.end()
await postgres.stop()
