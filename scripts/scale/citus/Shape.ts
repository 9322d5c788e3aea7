/**
 * The shape of a statement: whether each table that is distributed has the organization as a parameter in a condition of
 * its own, so that Citus knows the one server that the statement goes to.
 */
import { resources } from "../../../src/api/records/index.ts"
import { byOrganization } from "../../../src/database/Distribution.ts"

const distributed = new Set(byOrganization(resources.map(({ table }) => table)))

/** A name of a table in a statement. */
interface Named {
  readonly table: string
  readonly alias: string
  /** The statement or subquery that it is in, without deeper ones. */
  readonly text: string
}

const withoutTexts = (sql: string) => sql.replace(/--[^\n]*/g, "").replace(/'(?:[^']|'')*'/g, "''")

const keyword = /^(?:where|set|cross|join|left|on|order|limit|for|from|union|values)$/i

/** Stands for a place in a text. */
const here = "\u00a7"

/**
 * The text at one level of parentheses around a place: what is in deeper ones, and outside, is left out. Of statements
 * that are merged at that level, it is the one of the place.
 */
const around = (sql: string, place: number) => {
  let text = sql.slice(0, place) + here + sql.slice(place)
  const deeper = new RegExp(`\\([^()${here}]*\\)`)
  while (deeper.test(text)) text = text.replace(deeper, "")
  const [level = ""] = new RegExp(`[^()]*${here}[^()]*`).exec(text) ?? []
  return level.split(/\bunion(?: all)?\b/i).find((part) => part.includes(here)) ?? ""
}

// Names are looked for at each place, since a list of columns may end before a `from`.
const namesIn = (sql: string): ReadonlyArray<Named> =>
  [...sql.matchAll(/(?=(?:\b(?:from|join|update)|,)\s+([a-z_]+)(?:\s+(?:as\s+)?([a-z_]+))?)/gi)].flatMap((match) => {
    const [, table = "", alias = table] = match
    return distributed.has(table)
      ? [{ table, alias: keyword.test(alias) ? table : alias, text: around(sql, match.index) }]
      : []
  })

const isOwned = ({ alias, table, text }: Named) =>
  new RegExp(`(?<![\\w.])(?:(?:${alias}|${table})\\.)?organization_id = \\$\\d+`).test(text)

/** An insert whose first column is the organization's, and its value a parameter, or of rows that a query reads. */
const isOwnedInsert = (sql: string, table: string) =>
  new RegExp(
    `insert into "?${table}"? \\(\\s*"?organization_id"?\\b[^)]*\\)\\s*(?:values\\s*\\(\\s*\\$1\\b|with\\b)`,
    "i"
  ).test(sql)

/** The distributed tables that a statement reads or writes without saying of which organization. None: all is well. */
export const unowned = (statement: string): ReadonlyArray<string> => {
  const sql = withoutTexts(statement)
  const inserted = /insert into "?([a-z_]+)/i.exec(sql)?.[1]
  return [
    ...(inserted !== undefined && distributed.has(inserted) && !isOwnedInsert(sql, inserted) ? [inserted] : []),
    ...namesIn(sql).flatMap((named) => (isOwned(named) ? [] : [named.table]))
  ]
}

/** The distributed tables of a statement. */
export const tablesOf = (statement: string): ReadonlyArray<string> => {
  const sql = withoutTexts(statement)
  return [...distributed].filter((table) => new RegExp(`\\b${table}\\b`).test(sql))
}
