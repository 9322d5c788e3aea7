/**
 * The data of the benches of reads: a database that is migrated as the product migrates it, with consumption logs of 10
 * organizations, of which one has 40 in 100.
 */
import { hash } from "node:crypto"
import { execFileSync } from "node:child_process"
import pg from "pg"
import { root } from "../../../test/support/Process.ts"
import { startPostgres } from "../support.ts"

/** The organization with 40 in 100 of the records. */
const largest = "org_0"

/** The API key of the largest organization. */
export const key = "pda_bench_key_of_the_largest_organization"

const isoTime = (seconds: string) => `timestamptz '2024-01-01T00:00:00Z' + ${seconds} * interval '1 second'`

/** How many consumption logs there are for each value of a column that names another record, and how its ids begin. */
const references: Readonly<Record<string, readonly [prefix: string, logs: number]>> = {
  home_clinic: ["clinic", 500],
  servicing_clinic: ["clinic", 500],
  pet: ["pet", 50],
  subscription: ["subscription", 50],
  pet_benefit: ["pet_benefit", 10],
  invoice_line: ["invoice_line", 10 / 3]
}

// The most of its time a record is younger than its last change by a while, and changes come in no order.
const second = "(g * 13 % 61000019)"

const columns: Readonly<Record<string, string>> = {
  // Four of ten rows are the largest organization's; the nine others share the rest.
  organization_id: "case when g % 10 < 4 then 'org_0' else 'org_' || 1 + g / 10 % 9 end",
  id: "'consumption_log_' || g",
  updated_at: isoTime(`(${second} + g % 1000 * 60)`),
  product_code: "'CODE-' || g % 500",
  product_name: "'Product of a wellness plan, number ' || g % 500",
  is_deleted: "g % 50 = 0"
}

const types: Readonly<Record<string, string>> = {
  numeric: "(g % 40000) / 100.0",
  boolean: "g % 4 = 0",
  "timestamp with time zone": isoTime(second)
}

const expressionOf = (column: string, type: string, logs: number): string => {
  const reference = references[column]
  return reference === undefined
    ? (columns[column] ?? types[type] ?? `'${column}_' || g`)
    : `'${reference[0]}_' || g * 7919 % ${Math.max(10, Math.round(logs / reference[1]))}`
}

/** Makes and fills a database of so many consumption logs, unless it is there. Returns its URL. */
export const prepare = async (server: string, logs: number): Promise<string> => {
  const at = (database: string) => Object.assign(new URL(server), { pathname: `/${database}` }).href
  const name = `reads_${logs}`
  const admin = new pg.Client(server)
  await admin.connect()
  const { rowCount } = await admin.query("select 1 from pg_database where datname = $1", [name])
  if (rowCount === 0) {
    const unfinished = `${name}_unfinished`
    await admin.query(`drop database if exists ${unfinished}`)
    await admin.query(`create database ${unfinished}`)
    execFileSync(process.execPath, ["src/cli.ts", "migrate"], {
      cwd: root,
      env: { ...process.env, DATABASE_URL: at(unfinished) },
      stdio: "ignore"
    })
    await fill(at(unfinished), logs)
    await admin.query(`alter database ${unfinished} rename to ${name}`)
  }
  await admin.end()
  return at(name)
}

const fill = async (url: string, logs: number) => {
  const client = new pg.Client(url)
  await client.connect()
  await client.query("set synchronous_commit = off")
  await client.query("set practice_data.keep_times = on")
  const { rows } = await client.query<{ name: string; type: string }>(
    `select attname as name, atttypid::regtype::text as type from pg_attribute
     where attrelid = 'consumption_logs'::regclass and attnum > 0 and not attisdropped
     and attname not in ('record', 'change_position')`
  )
  await client.query(
    `insert into consumption_logs (${rows.map(({ name }) => name).join(", ")})
     select ${rows.map(({ name, type }) => expressionOf(name, type, logs)).join(", ")}
     from generate_series(1::bigint, ${logs}) g`
  )
  await client.query("insert into organizations (organization_id, id) values ($1, $1)", [largest])
  await client.query(
    `insert into api_keys (organization_id, id, name, prefix, key_hash, last_used_on)
     values ($1, 'key_bench', 'Bench', 'pda_bench', $2, (now() at time zone 'UTC')::date)`,
    [largest, hash("sha256", key, "buffer")]
  )
  await client.query("vacuum analyze")
  await client.query("checkpoint")
  await client.end()
}

/** How many consumption logs the benches of reads have. */
export const records = 1_000_000

/** A Postgres with the data. BENCH_DATA is a folder that keeps it for another run. */
export const open = async () => {
  const settings = { shared_buffers: "4GB", max_wal_size: "8GB", checkpoint_timeout: "1h" }
  const postgres = await startPostgres(process.env["BENCH_DATA"], settings)
  return { ...postgres, database: await prepare(postgres.url, records) }
}
