/** What a search costs: the plan of the service's own query, run over a table that was filled for it. */
import { Effect, Schema } from "effect"
import { searchQuery } from "../../src/Records/Postgres.ts"
import type { Criteria } from "../../src/Records/Repository.ts"
import type { Resource } from "../../src/Records/Resource.ts"
import { filters, meaningOf } from "../Records/expected.ts"
import { TestDatabase } from "../support/TestDatabase.ts"

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

const Plan: Schema.Codec<Plan> = Schema.Struct({
  "Node Type": Schema.String,
  "Relation Name": Schema.optionalKey(Schema.String),
  "Actual Rows": Schema.Finite,
  "Actual Loops": Schema.Finite,
  "Rows Removed by Filter": Schema.optionalKey(Schema.Finite),
  "Shared Hit Blocks": Schema.Finite,
  "Shared Read Blocks": Schema.Finite,
  Plans: Schema.optionalKey(Schema.Array(Schema.suspend(() => Plan)))
})

const readPlans = Schema.decodeUnknownEffect(
  Schema.NonEmptyArray(Schema.Struct({ "QUERY PLAN": Schema.NonEmptyArray(Schema.Struct({ Plan })) }))
)

const nodesOf = (plan: Plan): ReadonlyArray<Plan> => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

/** What the first page of a search reads: rows of the table, blocks of it and its indexes, and in which ways. */
export const costOf = Effect.fnUntraced(function* (resource: Resource, criteria: Criteria, owner = organization) {
  const { sql } = yield* TestDatabase
  const { text, values } = searchQuery(resource, owner, criteria, { limit: 100, offset: 0 })
  const [explained] = yield* readPlans(yield* sql.unsafe(`explain (analyze, buffers, format json) ${text}`, values))
  const top = explained["QUERY PLAN"][0].Plan
  const scans = nodesOf(top).filter((node) => node["Relation Name"] !== undefined)
  return {
    rows: scans.reduce(
      (sum, node) => sum + (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"],
      0
    ),
    blocks: top["Shared Hit Blocks"] + top["Shared Read Blocks"],
    ways: scans.map((node) => node["Node Type"])
  }
})

const clock = "timestamptz '2026-01-01 00:00:00+00' + n * interval '1 second'"

/**
 * Fills a table with rows numbered by n, one second apart in the order of writing. Ten rows share each text and each
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
  yield* sql.unsafe(
    `insert into ${resource.table} (${Object.keys(values).join(", ")})
     select ${Object.values(values).join(", ")} from generate_series(1, ${rows}) n`
  )
  yield* sql.unsafe(`vacuum analyze ${resource.table}`)
})
