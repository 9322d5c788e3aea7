/** Tables of many rows of an organization. */
import { Effect } from "effect"
import type { Resource } from "../../../src/api/records/Resource.ts"
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
