/**
 * The data of the bench of reads: a database for each size, migrated as the product migrates it, with that many
 * consumption logs over 10 organizations, of which one has 40 in 100, and fitting numbers of every other record.
 */
import { hash } from "node:crypto"
import { fileURLToPath } from "node:url"
import { execFileSync } from "node:child_process"
import pg from "pg"

/** The organization with 40 in 100 of the records. */
export const largest = "org_0"

/** The API key of the largest organization. */
export const key = "pda_bench_key_of_the_largest_organization"

const root = fileURLToPath(new URL("../../..", import.meta.url))

const isoTime = (seconds: string) => `timestamptz '2024-01-01T00:00:00Z' + ${seconds} * interval '1 second'`

/** How many rows of each table there are for each hundred consumption logs. */
const tables: Readonly<Record<string, number>> = {
  organizations: 0,
  clinics: 0.2,
  pets: 2,
  subscriptions: 2,
  payment_plans: 2,
  products: 0.5,
  pet_benefits: 10,
  payment_intents: 10,
  cancellation_payment_intents: 1,
  charges: 10,
  charge_payments: 10,
  charge_adjustments: 1,
  charge_refunds: 1,
  invoices: 10,
  invoice_lines: 30,
  consumption_logs: 100
}

// Numbers of the row spread over as many values as a reference has targets.
const references: Readonly<Record<string, readonly [prefix: string, table: string]>> = {
  clinic: ["clinic", "clinics"],
  clinic_id: ["clinic", "clinics"],
  home_clinic: ["clinic", "clinics"],
  servicing_clinic: ["clinic", "clinics"],
  pet: ["pet", "pets"],
  subscription: ["subscription", "subscriptions"],
  pet_benefit: ["pet_benefit", "pet_benefits"],
  invoice: ["invoice", "invoices"],
  invoice_line: ["invoice_line", "invoice_lines"],
  charge: ["charge", "charges"]
}

const countOf = (table: string, logs: number) => Math.max(10, Math.round(((tables[table] ?? 0) * logs) / 100))

const expressionOf = (table: string, column: string, type: string, logs: number): string => {
  // The most of its time a record is younger than its last change by a while, and changes come in no order.
  const second = `(g * 13 % 61000019)`
  if (column === "organization_id") return "organization"
  if (column === "id") return table === "organizations" ? "organization" : `'${table.replace(/s$/, "")}_' || g`
  if (column === "organization") return "organization"
  if (column === "created_at") return isoTime(second)
  if (column === "updated_at" || column === "modified_at") return isoTime(`(${second} + g % 1000 * 60)`)
  if (column === "time_zone") return "'America/New_York'"
  if (column === "product_code") return `'CODE-' || g % 500`
  if (column === "product_name") return `'Product of a wellness plan, number ' || g % 500`
  if (column === "status") return `(array['open', 'paid', 'failed'])[1 + g % 3]`
  if (column === "is_deleted" || column === "removed") return "g % 50 = 0"
  const reference = references[column]
  if (reference !== undefined) return `'${reference[0]}_' || g * 7919 % ${countOf(reference[1], logs)}`
  switch (type) {
    case "text":
      return column === "processor_account" ? "null" : `'${column}_' || g`
    case "numeric":
      return "(g % 40000) / 100.0"
    case "integer":
      return "g % 12"
    case "boolean":
      return "g % 4 = 0"
    case "date":
      return "date '2015-01-01' + (g % 3000)::int"
    case "timestamp with time zone":
      return isoTime(second)
    default:
      return "null"
  }
}

// Four of ten rows are the largest organization's; the nine others share the rest.
const organizationOf = `case when g % 10 < 4 then 'org_0' else 'org_' || 1 + g / 10 % 9 end`

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
  for (const table of Object.keys(tables)) {
    const { rows } = await client.query<{ name: string; type: string }>(
      `select attname as name, atttypid::regtype::text as type from pg_attribute
       where attrelid = $1::regclass and attnum > 0 and not attisdropped
       and attname not in ('record', 'change_position') and atttypid <> 'text[]'::regtype`,
      [table]
    )
    const columns = rows.map(({ name }) => name).join(", ")
    const values = rows.map(({ name, type }) => expressionOf(table, name, type, logs)).join(", ")
    const organization = table === "organizations" ? `'org_' || g - 1` : organizationOf
    await client.query(
      `insert into ${table} (${columns}) select ${values}
       from (select g, ${organization} as organization from generate_series(1::bigint, ${countOf(table, logs)}) g) g`
    )
  }
  await client.query(
    `insert into api_keys (organization_id, id, name, prefix, key_hash, last_used_on)
     values ($1, 'key_bench', 'Bench', 'pda_bench', $2, (now() at time zone 'UTC')::date)`,
    [largest, hash("sha256", key, "buffer")]
  )
  await client.query("vacuum analyze")
  await client.query("checkpoint")
  await client.end()
}
