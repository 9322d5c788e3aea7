/**
 * What grows with organizations, records and keys. Writes the figures to scripts/scale/measured.json, and the tables of
 * scripts/scale/README.md. It fills a Postgres of its own with 100,000 consumption logs and what belongs to them, and with
 * 1,000,000 API keys of 100,000 organizations. Linux; without haproxy, nothing is written.
 *
 * Usage: `npm run bench:scale`
 */
import { execFileSync, spawn } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import pg from "pg"
import { prepare } from "./reads/data.ts"
import { cpuOf } from "./reads/processes.ts"
import { machine, startPostgres } from "./support.ts"

const logs = 100_000
const keys = 1_000_000
const owners = 100_000
const root = join(import.meta.dirname, "../..")

const figure = (value: number) => Number(value.toPrecision(3))

const postgres = await startPostgres(undefined, { max_wal_size: "8GB", checkpoint_timeout: "1h", autovacuum: "off" })
const url = await prepare(postgres.url, logs)
const client = new pg.Client(url)
await client.connect()

const scalar = async (text: string, values: ReadonlyArray<unknown> = []): Promise<number> => {
  const { rows } = await client.query<{ value: string | number }>(text, [...values])
  return Number(rows[0]?.value)
}

/** CPU time of the database, which other work on the machine changes less than the time that passes. */
const databaseSeconds = async (work: () => Promise<unknown>): Promise<number> => {
  const before = cpuOf(postgres.pid)
  await work()
  return (cpuOf(postgres.pid) - before) / 1000
}

const measured: Record<string, number> = {}
const keep = (name: string, value: number) => {
  measured[name] = figure(value)
  console.log(`${name}: ${measured[name]}`)
}

// Records: all tables together, in the proportions of the bench.
const { rows: tables } = await client.query<{ name: string }>(
  "select table_name as name from information_schema.columns where column_name = 'record' and table_schema = 'public'"
)
let records = 0
let tableBytes = 0
let indexBytes = 0
let indexes = 0
for (const { name } of tables) {
  records += await scalar(`select count(*) as value from ${name}`)
  tableBytes += await scalar("select pg_table_size($1::regclass) as value", [name])
  indexBytes += await scalar("select pg_indexes_size($1::regclass) as value", [name])
  indexes += await scalar("select count(*) as value from pg_index where indrelid = $1::regclass", [name])
}
keep("recordTableBytes", tableBytes / records)
keep("recordIndexBytes", indexBytes / records)
keep("indexes", indexes)
keep("logTableBytes", (await scalar("select pg_table_size('consumption_logs') as value")) / logs)
keep("logIndexBytes", (await scalar("select pg_indexes_size('consumption_logs') as value")) / logs)
keep("logIndexes", await scalar("select count(*) as value from pg_index where indrelid = 'consumption_logs'::regclass"))

// Out of the database and into another one, as pg_dump and pg_restore do it: COPY, of what is not generated. The copies
// go into the table itself, as those of other organizations.
const columns = await client
  .query<{ name: string }>(
    `select quote_ident(attname) as name from pg_attribute
     where attrelid = 'consumption_logs'::regclass and attnum > 0 and not attisdropped and attgenerated = ''
     and attname <> 'change_position' order by attnum`
  )
  .then(({ rows }) => rows.map(({ name }) => name))
const copied = columns.map((name) => (name === "organization_id" ? "'copy_' || organization_id" : name)).join(", ")
const file = `/tmp/practice-data-scale-${process.pid}.copy`
const out = await databaseSeconds(() => client.query(`copy (select ${copied} from consumption_logs) to '${file}'`))
keep("copyOutPerCpuSecond", logs / out)
const into = await databaseSeconds(() => client.query(`copy consumption_logs (${columns.join(", ")}) from '${file}'`))
keep("copyInPerCpuSecond", logs / into)
rmSync(file, { force: true })
const all = 2 * logs

// An index that is built while the table is in use, and a vacuum after a tenth has changed.
const build = await databaseSeconds(() =>
  client.query(
    "create index concurrently scale_index on consumption_logs (organization_id, product_name, updated_at, id)"
  )
)
keep("indexBuildPerCpuSecond", all / build)
await client.query("drop index scale_index")
await client.query("update consumption_logs set product_name = product_name || '.' where right(id, 1) = '7'")
keep("vacuumPerCpuSecond", all / (await databaseSeconds(() => client.query("vacuum consumption_logs"))))

// What a hard delete leaves for readers of changes, and a deletion task.
const removed = 20_000
await client.query("delete from pet_benefits where ctid in (select ctid from pet_benefits limit $1)", [removed])
const gone = await scalar("select count(*) as value from removals")
if (gone > 0) keep("removalBytes", (await scalar("select pg_total_relation_size('removals') as value")) / gone)
await client.query(
  `insert into deletion_tasks (organization_id, id, idempotency_key, fingerprint, payload, invoices_count,
     invoice_lines_count, received_at, scheduled_for, state, attempts, started_at, finished_at, outcome)
   select 'org_' || g % 1000, gen_random_uuid(), gen_random_uuid()::text, decode(repeat('ab', 32), 'hex'),
     jsonb_build_object('invoices', jsonb_build_array(jsonb_build_object('invoice_id', 'invoice_' || g, 'clinic_id', 'clinic_' || g, 'client_id', 'client_' || g)), 'invoice_lines', '[]'::jsonb),
     1, 0, now(), now(), 'completed', 1, now(), now(),
     '{"invoices_deleted":1,"invoice_lines_deleted":3,"not_found":0,"not_matching":0,"already_deleted":0}'::jsonb
   from generate_series(1, 20000) g`
)
keep("taskBytes", (await scalar("select pg_total_relation_size('deletion_tasks') as value")) / 20_000)

// API keys: their size, and the time of a look-up, which is made in the server to leave out the way there.
const lookUp = async (count: number) => {
  await client.query("analyze api_keys")
  const rounds = 20_000
  const took = await databaseSeconds(() =>
    client.query(`do $$ declare n int; found text; begin
      for n in 1..${rounds} loop
        select organization_id into found from api_keys
        where key_hash = sha256(('key_' || (n * 7919) % ${count})::bytea) and revoked_at is null;
      end loop;
    end $$`)
  )
  return (took / rounds) * 1e6
}
const addKeys = (from: number, to: number) =>
  client.query(
    `insert into api_keys (organization_id, id, name, prefix, key_hash)
     select 'organization_' || g % $3, 'key_' || md5(g::text), 'Warehouse sync', 'pda_live_AbCd', sha256(('key_' || g)::bytea)
     from generate_series($1::int, $2::int - 1) g`,
    [from, to, owners]
  )
await client.query("truncate api_keys")
await addKeys(0, 1000)
keep("lookUpMicros1000", await lookUp(1000))
await addKeys(1000, keys)
keep("lookUpMicros1000000", await lookUp(keys))
keep("keyBytes", (await scalar("select pg_total_relation_size('api_keys') as value")) / keys)
await client.query("truncate organizations")
await client.query(
  "insert into organizations (organization_id, id, name) select 'organization_' || g, 'organization_' || g, 'Name' from generate_series(0, $1::int - 1) g",
  [owners]
)

// A session that has read pages of a few tables.
const children = () =>
  readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false
    try {
      return readFileSync(`/proc/${name}/stat`, "utf8").split(") ")[1]?.split(" ")[1] === String(postgres.pid)
    } catch {
      return false
    }
  })
const sizeOf = (pid: string | number, field: string) =>
  Number(new RegExp(`^${field}: *(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1])
const before = new Set(children())
const sessions = await Promise.all(
  Array.from({ length: 20 }, async () => {
    const session = new pg.Client(url)
    await session.connect()
    for (const table of ["consumption_logs", "charges", "invoices", "invoice_lines", "pets"])
      await session.query(
        `select record from ${table} where organization_id = $1 order by organization_id, id limit 100`,
        ["org_0"]
      )
    return session
  })
)
const opened = children().filter((pid) => !before.has(pid))
keep(
  "sessionKilobytes",
  opened.reduce((sum, pid) => sum + sizeOf(pid, "Private_Dirty") + sizeOf(pid, "Private_Clean"), 0) / opened.length
)
await Promise.all(sessions.map((session) => session.end()))
await client.end()

// The maps, and haproxy with them.
const folder = mkdtempSync(join(tmpdir(), "practice-data-scale-"))
const socket = join(folder, "admin.sock")
const groups = join(folder, "groups.json")
writeFileSync(groups, JSON.stringify({ groups: { group_a: { database: url } } }))
const maps = ["keys", "organizations"].map((name) => join(folder, `${name}.map`))
for (const map of maps) writeFileSync(map, "")

const updateMaps = async (sockets: ReadonlyArray<string>) => {
  const child = spawn(
    process.execPath,
    ["scripts/scale/maps.ts", groups, "--folder", folder, ...sockets.flatMap((each) => ["--socket", each])],
    { cwd: root, stdio: ["ignore", "inherit", "inherit"] }
  )
  let peak = 0
  let cpu = 0
  const watch = setInterval(() => {
    try {
      cpu = cpuOf(child.pid ?? 0) / 1000
      peak = Math.max(peak, sizeOf(child.pid ?? 0, "Rss"))
    } catch {
      // It has ended.
    }
  }, 20)
  await new Promise((resolve) => child.once("exit", resolve))
  clearInterval(watch)
  if (child.exitCode !== 0) throw new Error("maps.ts failed")
  return { cpu, peak }
}

const written = await updateMaps([])
keep("mapsCpuSeconds", written.cpu)
keep("mapsMegabytes", written.peak / 1024)
keep("keyMapBytes", statSync(maps[0] ?? "").size / keys)
keep("organizationMapBytes", statSync(maps[1] ?? "").size / owners)

const haproxyProgram = ["haproxy", "/usr/sbin/haproxy"].find((path) => {
  try {
    execFileSync(path, ["-v"], { stdio: "ignore" })
    return true
  } catch {
    return false
  }
})

const startHaproxy = async (program: string) => {
  const port = 20_000 + (process.pid % 10_000)
  const config = join(folder, "haproxy.cfg")
  const text = readFileSync(join(root, "scripts/scale/haproxy.cfg"), "utf8")
    .replaceAll(/^ +(user|group) haproxy\n/gm, "")
    .replaceAll("/etc/haproxy/maps", folder)
    .replaceAll("/run/haproxy", folder)
    .replace("maxconn 20000", "maxconn 400")
    .replace("log stdout", "log stderr")
    .replace("bind :80", `bind 127.0.0.1:${port}`)
    .replaceAll(/10\.0\.\d\.\d+:3000/g, "127.0.0.1:1")
  writeFileSync(config, text)
  const child = spawn(program, ["-f", config, "-db", "-q"], { stdio: "ignore" })
  const answers = () =>
    new Promise<boolean>((resolve) => {
      const asked = request({ port, host: "127.0.0.1", agent: false }, (response) => {
        response.resume()
        resolve(true)
      })
      asked.once("error", () => resolve(false))
      asked.end()
    })
  while (!(await answers())) {
    if (child.exitCode !== null) throw new Error("haproxy ended")
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const stop = () =>
    new Promise((resolve) => {
      child.once("exit", resolve)
      child.kill("SIGKILL")
    })
  return { cpu: () => cpuOf(child.pid ?? 0) / 1000, megabytes: () => sizeOf(child.pid ?? 0, "Rss") / 1024, stop }
}

if (haproxyProgram !== undefined) {
  const full = await startHaproxy(haproxyProgram)
  keep("haproxyStartCpuSeconds", full.cpu())
  keep("haproxyMegabytes", full.megabytes())
  const before = full.cpu()
  await updateMaps([socket])
  keep("haproxyUpdateCpuSeconds", full.cpu() - before)
  keep("haproxyMegabytesAfterUpdate", full.megabytes())
  await full.stop()
  for (const map of maps) writeFileSync(map, "")
  const empty = await startHaproxy(haproxyProgram)
  keep("haproxyMegabytesEmpty", empty.megabytes())
  await empty.stop()
}
rmSync(folder, { recursive: true, force: true })
await postgres.stop()

if (haproxyProgram === undefined) {
  console.log("haproxy is not installed: what it needs was not measured, and nothing is written")
  process.exit(1)
}
const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).trim()
writeFileSync(
  join(root, "scripts/scale/measured.json"),
  `${JSON.stringify({ date: new Date().toISOString().slice(0, 10), machine: machine(), commit, figures: measured }, null, 2)}\n`
)
execFileSync(process.execPath, ["scripts/scale/simulate.ts", "--write"], {
  cwd: root,
  stdio: ["ignore", "ignore", "inherit"]
})
