/** What a search returns by the contract, worked out from the rows: nothing of how the stores read. */
import { resourceOf, resources } from "../../contract/Contract.ts"
import type { Filter } from "../../contract/Resource.ts"
import type { FilterValues } from "../../../src/records/Repository.ts"
import { toText } from "../../../src/database/Columns.ts"
import type { Row } from "../../../src/records/Rows.ts"

/** The filters of each resource, in the contract's order. */
export const filters: Readonly<Record<string, Readonly<Record<string, Filter>>>> = Object.fromEntries(
  resources.map((resource) => [resource.name, resource.filters])
)

const signs = { equals: "=", numberEquals: "#", since: ">=", before: "<", includes: "-" } as const

/** The fields that filters look at and nobody is shown. */
const hidden: Readonly<Record<string, ReadonlyArray<string>>> = {
  "charges pet": ["pet"],
  "pet-benefits include_deleted": ["removed"]
}

/**
 * The sign of a filter, and the columns that it looks at. `=`: one of them equals; `#`: it is the number of this text;
 * `>=` and `<`: bounds of a time; `-`: records that it marks are left out unless wanted.
 */
export const meaningOf = (resource: string, filter: string) => {
  const meant = filters[resource]?.[filter]
  return {
    sign: meant === undefined ? "" : signs[meant.compares],
    columns: hidden[`${resource} ${filter}`] ?? meant?.fields ?? []
  }
}

const holds = (sign: string, stored: unknown, wanted: FilterValues[string]) => {
  switch (sign) {
    case "=":
      return stored === wanted
    case "#":
      return stored === Number(wanted)
    case ">=":
      return String(stored) >= String(wanted)
    case "<":
      return String(stored) < String(wanted)
    default:
      return wanted === true || stored !== true
  }
}

const satisfies = (resource: string, row: Row, criteria: FilterValues) =>
  Object.keys(filters[resource] ?? {}).every((filter) => {
    const { sign, columns } = meaningOf(resource, filter)
    const wanted = criteria[filter]
    return (
      ((wanted === undefined || wanted === null) && sign !== "-") ||
      columns.some((column) => holds(sign, row.columns[column], wanted))
    )
  })

/** The rows of an organization that satisfy every filter, by timestamp, then by the bytes of the id. */
export const found = (
  resource: string,
  rows: ReadonlyArray<Row>,
  organization: string,
  criteria: FilterValues = {}
): ReadonlyArray<Row> => {
  const time = ({ columns }: Row) => String(columns[resourceOf(resource).orderedBy])
  return rows
    .filter((row) => row.organization === organization && satisfies(resource, row, criteria))
    .toSorted((a, b) =>
      time(a) === time(b) ? Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)) : time(a) < time(b) ? -1 : 1
    )
}

/** The text of a page of these rows. */
export const pageOf = (rows: ReadonlyArray<Row>) => `{"body":[${rows.map(({ record }) => toText(record)).join(",")}]}`

/** Other texts of the same number: with zeros around it, and moved by a power of ten. */
const rewritten = (text: string) => [
  text.replace(/^-?/, "$&00").replace(/\.\d+|(?=e|$)/, (fraction) => `${fraction === "" ? ".0" : fraction}00`),
  text.includes("e") ? text.replace("e", "E") : `${text.replace(".", "")}e-${text.split(".")[1]?.length ?? 0}`
]

/** Values to ask a filter for: the first few that the rows have, near misses of them, and some that no row has. */
export const candidates = (
  resource: string,
  filter: string,
  rows: ReadonlyArray<Row>
): ReadonlyArray<FilterValues[string]> => {
  const { sign, columns } = meaningOf(resource, filter)
  if (sign === "-") return [true, false, null]
  const stored = [...new Set(rows.flatMap((row) => columns.map((column) => row.columns[column])))]
    .filter((value) => value !== null)
    .map(String)
  switch (sign) {
    case "=":
      return [...stored.slice(0, 5), ...stored.slice(-1).map((value) => `${value} `), "nowhere", "", null]
    case "#":
      return [...stored.slice(0, 4), ...stored.slice(-2).flatMap(rewritten), "987654321", "abc", null]
    default:
      return [...stored.slice(0, 5), "0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z", null]
  }
}
