/** Tables of many rows of an organization, the plans of statements over them as they run, and what their nodes read. */
import { Effect, Number } from "effect"
import type { Resource } from "../../../src/api/records/Resource.ts"
import { inOrder } from "../../../src/database/Database.ts"
import { keepingTimes } from "../../../src/records/Rows.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { filters, meaningOf } from "../records/expected.ts"

/** The organization whose rows `fill` writes. */
export const organization = "org_large"

const clock = "timestamptz '2026-01-01 00:00:00+00' + n * interval '1 second'"

/**
 * Makes a table hold rows numbered by n, one second apart in the order of writing. Ten rows share each text and each
 * number that a filter looks at; of every hundred, one is deleted.
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
  yield* sql.unsafe(`truncate ${resource.table}`)
  yield* keepingTimes(sql, sql.unsafe(insert))
  yield* sql.unsafe(`vacuum analyze ${resource.table}`)
})

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

/** The nodes of a plan, itself first. */
export const nodesOf = (plan: Plan): ReadonlyArray<Plan> => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

/** The nodes that read a table. */
export const scansOf = (plan: Plan) => nodesOf(plan).filter((node) => node["Relation Name"] !== undefined)

const textOf = (value: unknown) => {
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString("hex")}`
  return Array.isArray(value) ? `{${value.join(",")}}` : String(value)
}

const literal = (value: unknown) => `'${textOf(value)}'`

let explained = 0

/** Explains a statement as it runs: with the plan for its values, or with one made for any values. */
export const explain = Effect.fnUntraced(function* (
  text: string,
  values: ReadonlyArray<unknown>,
  isPlannedOnce: boolean
) {
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

/** The rows that nodes read, those that their filters removed among them. */
export const rowsOf = (nodes: ReadonlyArray<Plan>) =>
  Number.sumAll(
    nodes.map((node) => (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"])
  )

/** The blocks that nodes read. */
export const blocksOf = (nodes: ReadonlyArray<Plan>) =>
  Number.sumAll(nodes.map((node) => node["Shared Hit Blocks"] + node["Shared Read Blocks"]))
