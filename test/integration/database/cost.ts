/** What a search costs: the plan of the service's own query, run over a table that was filled for it. */
import { Effect, Number } from "effect"
import { inOrder } from "../../../src/database/Database.ts"
import type { Kind } from "../../../src/records/Pages.ts"
import { changesQuery, rangesText } from "../../../src/records/FeedQuery.ts"
import type { Walk } from "../../../src/records/Walk.ts"
import { ownerOfKey, withKey } from "../../../src/keys/OrganizationReads.ts"
import { askedOf, searchQuery } from "../../../src/records/SearchQuery.ts"
import type { Criteria, Page } from "../../../src/records/Repository.ts"
import type { Resource } from "../../../src/api/records/Resource.ts"
import { filters, meaningOf } from "../records/expected.ts"
import { insertKey, keyHashOf } from "../../support/keys.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** The organization whose rows `fill` writes. */
export const organization = "org_large"

interface Plan {
  readonly "Node Type": string
  readonly "Relation Name"?: string
  readonly "Actual Rows": number
  readonly "Actual Loops": number
  readonly "Rows Removed by Filter"?: number
  readonly "Shared Hit Blocks": number
  readonly "Shared Read Blocks": number
  readonly Plans?: ReadonlyArray<Plan>
}

const nodesOf = (plan: Plan): ReadonlyArray<Plan> => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

const literal = (value: unknown) =>
  `'${value instanceof Uint8Array ? `\\x${Buffer.from(value).toString("hex")}` : String(value)}'`

let explained = 0

/** Explains a statement as it runs: with the plan for its values, or with one made for any values. */
const explain = Effect.fnUntraced(function* (text: string, values: ReadonlyArray<unknown>, isPlannedOnce: boolean) {
  const { sql } = yield* TestDatabase
  const settings = { ...inOrder, plan_cache_mode: isPlannedOnce ? "force_generic_plan" : "force_custom_plan" }
  const set = Object.entries(settings).map(([name, value]) => `set_config('${name}', '${value}', true)`)
  const name = `explained_${++explained}`
  const rows = yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql.unsafe(`select ${set.join(", ")}`)
      yield* sql.unsafe(`prepare ${name} as ${text}`)
      return yield* sql.unsafe<{ "QUERY PLAN": readonly [{ readonly Plan: Plan }] }>(
        `explain (analyze, buffers, format json) execute ${name} (${values.map(literal).join(", ")})`
      ).unprepared
    })
  )
  const [row] = rows
  return row === undefined ? yield* Effect.die("no plan") : row["QUERY PLAN"][0].Plan
})

const rowsOf = (nodes: ReadonlyArray<Plan>) =>
  Number.sumAll(
    nodes.map((node) => (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"])
  )

const blocksOf = (nodes: ReadonlyArray<Plan>) =>
  Number.sumAll(nodes.map((node) => node["Shared Hit Blocks"] + node["Shared Read Blocks"]))

/** The hash of an organization's key. */
const keyOf = (owner: string) => Effect.as(insertKey(owner, owner), keyHashOf(owner))

/**
 * What a page of a search reads: rows of the table, blocks of it and its indexes, and by which kinds of scan. It is the same
 * whether the organization is known or looked up by its key.
 */
export const costOf = Effect.fnUntraced(function* (
  resource: Resource,
  criteria: Criteria,
  owner = organization,
  page: Page = { limit: 100, offset: 0 }
) {
  const { sql } = yield* TestDatabase
  const keyHash = yield* keyOf(owner)
  const asked = askedOf(resource, criteria, page)
  const known = searchQuery(sql, sql`${owner}`, resource, asked, page)
  const keyed = withKey(sql, keyHash, searchQuery(sql, sql.literal(ownerOfKey), resource, asked, page))
  const plans = yield* Effect.all([
    explain(...known.statement.compile(), known.isPlannedOnce),
    explain(...keyed.compile(), known.isPlannedOnce)
  ])
  const scans = plans.map((plan) => nodesOf(plan).filter((node) => node["Relation Name"] === resource.table))
  return {
    rows: Math.max(...scans.map(rowsOf)),
    blocks: Math.max(...scans.map(blocksOf)),
    scans: scans.flat().map((node) => node["Node Type"])
  }
})

/**
 * What a page of changes reads: rows of all tables, and by which kinds of scan, for any walk and for this one, where
 * the organization is known and where it is looked up by its key.
 */
export const changesCostOf = Effect.fnUntraced(function* (kind: Kind, walk: Walk, limit: number, owner = organization) {
  const { sql } = yield* TestDatabase
  const keyHash = yield* keyOf(owner)
  const ranges = rangesText(kind, [walk])
  const known = changesQuery(sql, sql`${owner}`, kind, limit, ranges)
  const keyed = withKey(sql, keyHash, changesQuery(sql, sql.literal(ownerOfKey), kind, limit, ranges))
  const plans = yield* Effect.forEach([known.statement.compile(), keyed.compile()], ([text, values]) =>
    Effect.all([explain(text, values, true), explain(text, values, false)])
  )
  return plans.flat().map((plan) => {
    const scans = nodesOf(plan).filter((node) => node["Relation Name"] !== undefined)
    return {
      rows: rowsOf(scans),
      told: rowsOf(nodesOf(plan).slice(0, 1)),
      scans: scans.map((node) => `${node["Node Type"]} ${node["Relation Name"]}`)
    }
  })
})

const clock = "timestamptz '2026-01-01 00:00:00+00' + n * interval '1 second'"

/** What the tables of a database were filled with, by the table's name. */
const filled = new WeakMap<object, Map<string, string>>()

/**
 * Makes a table hold rows numbered by n, one second apart in the order of writing. Ten rows share each text and each
 * number that a filter looks at; of every hundred, one is deleted. A table that holds them already is left as it is.
 *
 * @param given the SQL of some columns, by name
 */
export const fill = Effect.fnUntraced(function* (
  resource: Resource,
  rows: number,
  given: Readonly<Record<string, string>> = {}
) {
  const { sql } = yield* TestDatabase
  const filtered = Object.fromEntries(
    Object.keys(filters[resource.name] ?? {}).flatMap((filter) => {
      const { sign, columns } = meaningOf(resource.name, filter)
      const group = `n % ${rows / 10}`
      const value = sign === "-" ? "n % 100 = 0" : sign === "#" ? group : `'${filter}_' || ${group}`
      return columns.map((column) => [column, value] as const)
    })
  )
  const values = {
    ...filtered,
    organization_id: `'${organization}'`,
    created_at: clock,
    [resource.orderedBy]: clock,
    id: "'id_' || n",
    ...given
  }
  const insert = `insert into ${resource.table} (${Object.keys(values).join(", ")})
    select ${Object.values(values).join(", ")} from generate_series(1, ${rows}) n`
  const tables = filled.get(sql) ?? new Map<string, string>()
  filled.set(sql, tables)
  if (tables.get(resource.table) === insert) return
  tables.delete(resource.table)
  yield* sql.unsafe(`truncate ${resource.table}`)
  yield* sql.unsafe(insert)
  yield* sql.unsafe(`vacuum analyze ${resource.table}`)
  tables.set(resource.table, insert)
})
