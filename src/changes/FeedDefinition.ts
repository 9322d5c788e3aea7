/** The feeds of changes: the resources of each, where its pages end, and their JSON. */
import { hash } from "node:crypto"
import { organization } from "../api/records/Organizations.ts"
import type { Resource } from "../api/records/Resource.ts"
import { concat, fromText, type Json, toText } from "../database/RecordJson.ts"
import * as Walk from "./Walk.ts"

/** A row of a feed, in the order of the changes. */
export interface ChangeRow {
  /** The record's JSON, which begins with its id; null for a removal. */
  readonly record: Json | null
  /**
   * The id of a removal, after `-`; after `+` where the snapshot has a record of that id again, which has a change of its
   * own. Null for a record: its id would cost a page of a thousand a tenth more.
   */
  readonly removal: string | null
  readonly position: number | null
  readonly branch?: string | null
}

const leadingId = /^\{"id":("(?:[^"\\]|\\.)*")/

const idOf = ({ removal, record }: ChangeRow): string =>
  removal?.slice(1) ?? JSON.parse(leadingId.exec(record === null ? "" : toText(record))?.[1] ?? '""')

const isRemoval = ({ removal }: ChangeRow) => removal?.startsWith("-") === true

/** The place of a row. Without a branch, after all changes of the id in its transaction: those are of one record. */
export const placeOf = (row: ChangeRow): Walk.Place => ({
  position: row.position ?? 0,
  id: idOf(row),
  branch: row.branch ?? Walk.lastBranch
})

/** Ends the branch of a table's removals. */
export const removalMark = "-"

export const tableOf = (branch: string) => (branch.endsWith(removalMark) ? branch.slice(0, -1) : branch)

export interface ChangesPage {
  readonly rows: ReadonlyArray<ChangeRow>
  /** The resources that restart with this page. */
  readonly resets: ReadonlyArray<string>
  readonly cursor: string
  readonly hasMore: boolean
  /** True if a copy that has applied all pages up to this one is a state that the database had. */
  readonly isConsistent: boolean
}

const isSamePlace = (one: ChangeRow | undefined, another: ChangeRow | undefined) =>
  one !== undefined && one.position === another?.position && idOf(one) === idOf(another)

export interface FeedDefinition {
  /** The resource, or `*` for all. */
  readonly name: string
  readonly resources: ReadonlyArray<Resource>
  /** The table whose feed names the order. If it ends, all positions do. */
  readonly orderTable: string
  /** The number of rows in a page of at most `limit`, of which there are more. */
  readonly pageLength: (rows: ReadonlyArray<ChangeRow>, limit: number) => number
  readonly render: (page: ChangesPage) => Json
}

/** The feed of a resource: `{"body":[...],"removed":[...],"cursor":"...","has_more":...}`. */
export const resourceFeed = (resource: Resource): FeedDefinition => ({
  name: resource.name,
  resources: [resource],
  orderTable: resource.table,
  // A record that one transaction deletes and inserts again has two rows at one place: both belong to one page.
  pageLength: (rows, limit) => (isSamePlace(rows[limit], rows[limit - 1]) ? limit + 1 : limit),
  render: ({ cursor, hasMore, rows }) => {
    const removed = JSON.stringify(rows.filter(isRemoval).map(idOf))
    const body = rows.flatMap(({ record }) => record ?? [])
    return concat('{"body":[', body, `],"removed":${removed},"cursor":"${cursor}","has_more":${hasMore}}`)
  }
})

/** A transaction that fits into a page is not cut apart. */
const wholeTransactions = (rows: ReadonlyArray<ChangeRow>, limit: number) => {
  for (let length = limit; length > 0; length--) {
    if (rows[length]?.position !== rows[length - 1]?.position) return length
  }
  return limit
}

const item = (members: object) => fromText(JSON.stringify(members))

/** The feed of several resources: `{"body":[{"resource":"...","record":{...}},...],"cursor":"...",...}`. */
export const combinedFeed = (resources: ReadonlyArray<Resource>): FeedDefinition => {
  const fields = resources.map(({ name, record }) => [name, Object.keys(record.fields)])
  // A version of the fields of records: it changes when a resource or a field is added.
  const schema = hash("sha256", JSON.stringify(fields)).slice(0, 8)
  const openings = new Map(
    resources.map(({ name, table }) => [
      table,
      { resource: name, opening: fromText(`{"resource":"${name}","record":`) }
    ])
  )
  const closing = fromText("}")
  const itemsOf = (row: ChangeRow): ReadonlyArray<Json | ReadonlyArray<Json>> => {
    const found = openings.get(tableOf(row.branch ?? ""))
    if (found === undefined) return []
    const { opening, resource } = found
    if (row.record !== null) return [[opening, row.record, closing]]
    return isRemoval(row) ? [item({ resource, removed: idOf(row) })] : []
  }
  return {
    name: "*",
    resources,
    orderTable: organization.table,
    pageLength: wholeTransactions,
    render: ({ cursor, hasMore, isConsistent, resets, rows }) => {
      const state = { cursor, has_more: hasMore, is_consistent: isConsistent, schema }
      return concat(
        '{"body":[',
        [...resets.map((resource) => item({ resource, reset: true })), ...rows.flatMap(itemsOf)],
        `],${JSON.stringify(state).slice(1)}`
      )
    }
  }
}
