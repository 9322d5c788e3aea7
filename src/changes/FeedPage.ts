/** A page of the change feed: its rows, where it ends, and its JSON. */
import { Buffer } from "node:buffer"
import { hash } from "node:crypto"
import { organization } from "../api/records/Organizations.ts"
import type { Resource } from "../api/records/Resource.ts"
import { fromText, type Json, toText } from "../database/Columns.ts"
import type * as Walk from "./Walk.ts"

/** A change, as the statement of a feed reads it. */
export interface ChangeRow {
  readonly position: number
  /** The table, with `-` behind it for a removal. */
  readonly branch: string
  /** The record's JSON, which begins with its id: a column for the id would cost a page of a thousand a tenth more. */
  readonly record: Json | null
  /**
   * The id of a removal after `-`, or after `+` if the snapshot has a record with this id again, which is a change of its
   * own.
   */
  readonly detail: string | null
}

const leadingId = /^\{"id":("(?:[^"\\]|\\.)*")/

const rowId = ({ detail, record }: ChangeRow): string =>
  record === null ? (detail ?? "").slice(1) : JSON.parse(leadingId.exec(toText(record))?.[1] ?? '""')

/** The place of a row in the order of changes. */
export const rowPlace = (row: ChangeRow): Walk.Place => ({
  position: row.position,
  id: rowId(row),
  branch: row.branch
})

/** Ends the branch of a table's removals. */
export const removalMark = "-"

/** The table of a branch. */
export const branchTable = (branch: string) => (branch.endsWith(removalMark) ? branch.slice(0, -1) : branch)

/** The table whose feed names the order. If its order ends, all positions do. */
export const orderTable = organization.table

/** The number of rows in a page of at most `limit`, of which there are more: a transaction that fits is never split. */
export const pageLength = (rows: ReadonlyArray<ChangeRow>, limit: number) => {
  for (let length = limit; length > 0; length--) {
    if (rows[length]?.position !== rows[length - 1]?.position) return length
  }
  return limit
}

export interface ChangesPage {
  readonly rows: ReadonlyArray<ChangeRow>
  /** The resources that restart with this page. */
  readonly resets: ReadonlyArray<string>
  readonly cursor: string
  /** If false, a copy that has applied all pages up to this one equals a state of the database. */
  readonly hasMore: boolean
}

// Each item begins with the comma that separates it from the one before.
const item = (members: object) => fromText(`,${JSON.stringify(members)}`)

/** Makes the renderer of pages of some resources: `{"body":[{"resource":"...","record":{...}},...],"cursor":"...",...}`. */
export const makeRender = (resources: ReadonlyArray<Resource>) => {
  const fields = resources.map(({ name, record }) => [name, Object.keys(record.fields)])
  // A version of the fields of records: it changes when a resource or a field is added.
  const schema = hash("sha256", JSON.stringify(fields)).slice(0, 8)
  const openings = new Map(
    resources.map(({ name, table }) => [
      table,
      { resource: name, opening: fromText(`,{"resource":"${name}","record":`) }
    ])
  )
  const closing = fromText("}")
  const renderRow = (row: ChangeRow): ReadonlyArray<Json> => {
    const known = openings.get(branchTable(row.branch))
    if (known === undefined) return []
    const { opening, resource } = known
    if (row.record !== null) return [opening, row.record, closing]
    return row.detail?.startsWith("+") === true ? [] : [item({ resource, removed: rowId(row) })]
  }
  return ({ cursor, hasMore, resets, rows }: ChangesPage): Json => {
    const [first, ...items] = [...resets.map((resource) => item({ resource, reset: true })), ...rows.flatMap(renderRow)]
    const state = { cursor, has_more: hasMore, is_consistent: !hasMore, schema }
    return Buffer.concat([
      fromText('{"body":['),
      ...(first === undefined ? [] : [first.subarray(1)]),
      ...items,
      fromText(`],${JSON.stringify(state).slice(1)}`)
    ])
  }
}
