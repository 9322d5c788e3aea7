/**
 * What a load costs: COPY of 200,000 consumption logs into their table as it is, beside a bare one, which has the same
 * columns without checks, the primary key and the index of the order, and neither the rendered record nor the position of
 * a change. Once more as a first load, which makes the indexes afterwards. In interleaved rounds, on a Postgres of its own.
 * Linux.
 *
 * Usage: `npm run bench:copy [-- ROWS ROUNDS]`
 */
import pg from "pg"
import { caption } from "../machine.ts"
import { prepare } from "./reads/data.ts"
import { cpuOf } from "./reads/processes.ts"
import { interleaved, startPostgres, table } from "./support.ts"

const [rows = 200_000, rounds = 5] = process.argv.slice(2).map(Number)

console.log(caption(`medians of ${rounds} interleaved rounds`))
const postgres = await startPostgres(undefined, {
  shared_buffers: "1GB",
  max_wal_size: "8GB",
  checkpoint_timeout: "1h",
  autovacuum: "off"
})
const database = await prepare(postgres.url, rows)
const client = new pg.Client(database)
await client.connect()

const rowOf = async <Row extends object>(text: string): Promise<Row> => {
  const [row] = (await client.query<Row>(text)).rows
  if (row === undefined) throw new Error(`No row: ${text}`)
  return row
}

const logs = "consumption_logs"
type Index = Record<"name" | "definition", string>
type Table = Record<"columns" | "types" | "folder", string> & { readonly indexes: ReadonlyArray<Index> }
const { columns, folder, indexes, types } = await rowOf<Table>(
  `select string_agg(quote_ident(attname), ', ' order by attnum) as columns,
     string_agg(format('%I %s', attname, format_type(atttypid, null)), ', ' order by attnum) as types,
     current_setting('data_directory') as folder,
     (select json_agg(json_build_object('name', indexrelid::regclass, 'definition', pg_get_indexdef(indexrelid)))
      from pg_index where indrelid = '${logs}'::regclass and not indisprimary) as indexes
   from pg_attribute
   where attrelid = '${logs}'::regclass and attnum > 0 and not attisdropped
     and attname not in ('record', 'change_position')`
)
const file = `'${folder}/copied'`
await client.query("set practice_data.keep_times = on")
await client.query(`copy (select ${columns} from ${logs}) to ${file}`)
await client.query(`create table bare (${types})`)
await client.query('alter table bare alter organization_id type text collate "C", alter id type text collate "C"')
await client.query("alter table bare add primary key (organization_id, id)")
await client.query("create index on bare (organization_id, updated_at, id)")

const copyInto = (name: string) => client.query(`copy ${name} (${columns}) from ${file}`)

const loadFirst = async () => {
  await client.query("begin")
  await client.query(`drop index ${indexes.map(({ name }) => name).join(", ")}`)
  await copyInto(logs)
  for (const { definition } of indexes) await client.query(definition)
  await client.query("commit")
}

/** The time, the CPU time and the WAL so far, and the size of a table with its indexes. */
const stateOf = async (name: string) => ({
  ...(await rowOf<{ megabytes: number; wal: number }>(
    `select pg_total_relation_size('${name}')::float8 / 1e6 as megabytes,
       (pg_current_wal_insert_lsn() - '0/0')::float8 / 1e6 as wal`
  )),
  cpu: cpuOf(postgres.pid) / 1000,
  seconds: performance.now() / 1000
})

const measure = async (name: string, load: (name: string) => Promise<unknown>) => {
  for (const statement of [`truncate ${name}`, "checkpoint", "select pg_switch_wal()"]) await client.query(statement)
  const before = await stateOf(name)
  await load(name)
  const { cpu, megabytes, seconds, wal } = await stateOf(name)
  return { seconds: seconds - before.seconds, cpu: cpu - before.cpu, megabytes, wal: wal - before.wal }
}

const loads = await interleaved(rounds, {
  bare: () => measure("bare", copyInto),
  "as it is": () => measure(logs, copyInto),
  "indexes afterwards": () => measure(logs, loadFirst)
})
table(`COPY of ${rows} consumption logs`, "load", loads, {
  seconds: (its) => its.seconds,
  "its / bare": (its, bare) => its.seconds / bare.seconds,
  "CPU of the database, s": (its) => its.cpu,
  "CPU / bare": (its, bare) => its.cpu / bare.cpu,
  "table and indexes, MB": (its) => its.megabytes,
  "MB / bare": (its, bare) => its.megabytes / bare.megabytes,
  "WAL, MB": (its) => its.wal,
  "WAL / bare": (its, bare) => its.wal / bare.wal
})

await client.end()
await postgres.stop()
