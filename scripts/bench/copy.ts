/**
 * What a load costs: COPY of 200,000 consumption logs into their table as it is, beside a bare one, which has the same
 * columns without checks, the primary key and the index of the order, and neither the rendered record nor the position of
 * a change. Once more as a first load, which makes the indexes afterwards. In interleaved rounds, on a Postgres of its own.
 * Then the first load of `practice-data sync` of the largest organization's logs, beside `\copy` of the same rows by psql.
 * Linux.
 *
 * Usage: `npm run bench:copy [-- ROWS ROUNDS]`
 */
import { execFileSync, spawnSync } from "node:child_process"
import { join } from "node:path"
import pg from "pg"
import { service } from "./reads/contenders.ts"
import { key, prepare } from "./reads/data.ts"
import { cpuOf } from "./reads/processes.ts"
import { caption, figure, median, startPostgres } from "./support.ts"

const [rows = 200_000, rounds = 5] = process.argv.slice(2).map(Number)

console.log(caption(`${rounds} interleaved rounds`))
const postgres = await startPostgres(undefined, {
  shared_buffers: "1GB",
  max_wal_size: "8GB",
  checkpoint_timeout: "1h",
  autovacuum: "off"
})
const database = await prepare(postgres.url, rows)
const client = new pg.Client(database)
await client.connect()

const [text] = (
  await client.query<{ columns: string; types: string; folder: string }>(
    `select string_agg(quote_ident(attname), ', ' order by attnum) as columns,
       string_agg(format('%I %s', attname, format_type(atttypid, null)), ', ' order by attnum) as types,
       current_setting('data_directory') as folder
     from pg_attribute
     where attrelid = 'consumption_logs'::regclass and attnum > 0 and not attisdropped
       and attname not in ('record', 'change_position')`
  )
).rows
if (text === undefined) throw new Error("There is no table of consumption logs")
const file = `'${text.folder}/copied'`
await client.query("set practice_data.keep_times = on")
await client.query(`copy (select ${text.columns} from consumption_logs) to ${file}`)
await client.query(`create table bare (${text.types})`)
await client.query('alter table bare alter organization_id type text collate "C", alter id type text collate "C"')
await client.query("alter table bare add primary key (organization_id, id)")
await client.query("create index on bare (organization_id, updated_at, id)")

const indexes = (
  await client.query<{ name: string; definition: string }>(
    `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition
     from pg_index where indrelid = 'consumption_logs'::regclass and not indisprimary`
  )
).rows

const copyInto = (table: string) => client.query(`copy ${table} (${text.columns}) from ${file}`)

const loads = [
  { table: "bare", load: () => copyInto("bare") },
  { table: "consumption_logs", load: () => copyInto("consumption_logs") },
  {
    table: "consumption_logs",
    load: async () => {
      await client.query("begin")
      await client.query(`drop index ${indexes.map(({ name }) => name).join(", ")}`)
      await copyInto("consumption_logs")
      for (const { definition } of indexes) await client.query(definition)
      await client.query("commit")
    }
  }
]
const measures = loads.map(() => new Array<Readonly<Record<"seconds" | "cpu" | "megabytes" | "wal", number>>>())
for (let round = 0; round <= rounds; round++) {
  for (const [index, { load, table }] of loads.entries()) {
    await client.query(`truncate ${table}`)
    await client.query("checkpoint")
    await client.query("select pg_switch_wal()")
    const { rows: before } = await client.query<{ wal: string }>("select pg_current_wal_insert_lsn() as wal")
    const [cpu, begun] = [cpuOf(postgres.pid), performance.now()]
    await load()
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
  const [bare, whole, first] = [of(0, value), of(1, value), of(2, value)]
  return {
    what,
    bare: figure(bare),
    "as it is": figure(whole),
    ratio: Number((whole / bare).toFixed(2)),
    "indexes afterwards": figure(first),
    "its ratio": Number((first / bare).toFixed(2))
  }
}
console.log(`\nCOPY of ${rows} consumption logs`)
console.table([
  compared("seconds", ({ seconds }) => seconds),
  compared("CPU of the database, s", ({ cpu }) => cpu),
  compared("table and indexes, MB", ({ megabytes }) => megabytes),
  compared("WAL, MB", ({ wal }) => wal)
])

const hasPsql = spawnSync("psql", ["--version"]).status === 0
if (!hasPsql) console.log("\nThere is no psql: a first load of sync is not compared with it.")
else {
  await client.query("create database copy")
  const copy = Object.assign(new URL(postgres.url), { pathname: "/copy" }).href
  const dumped = join(text.folder, "dumped")
  const psql = (command: string) => execFileSync("psql", [copy, "--quiet", "--command", command])
  const server = await service.start(database)
  const sync = () =>
    execFileSync(process.execPath, ["src/cli.ts", "sync", copy, "--resource", "consumption-logs"], {
      cwd: join(import.meta.dirname, "../.."),
      env: { ...process.env, PRACTICE_DATA_URL: server.url, PRACTICE_DATA_API_KEY: key }
    })
  const timed = (work: () => unknown) => {
    const begun = performance.now()
    work()
    return (performance.now() - begun) / 1000
  }
  const seconds = { sync: new Array<number>(), copy: new Array<number>() }
  for (let round = 0; round < rounds; round++) {
    psql("drop schema public cascade; create schema public")
    seconds.sync.push(timed(sync))
    psql(`\\copy consumption_logs to '${dumped}'`)
    psql("create table bare (like consumption_logs including all)")
    seconds.copy.push(timed(() => psql(`\\copy bare from '${dumped}'`)))
  }
  await server.stop()
  const { rows: counts } = await client.query<{ count: string }>(
    "select count(*) from consumption_logs where organization_id = 'org_0'"
  )
  const count = Number(counts[0]?.count)
  const [load, bare] = [median(seconds.sync), median(seconds.copy)]
  console.log(`\nFirst load of ${count} consumption logs into Postgres, rows/s`)
  console.table([{ sync: figure(count / load), "\\copy": figure(count / bare), "time / \\copy": figure(load / bare) }])
}
await client.end()
await postgres.stop()
