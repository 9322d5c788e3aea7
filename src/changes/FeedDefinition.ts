/** The feeds of changes: the resources of each, where its pages end, and their JSON. */
import { Buffer } from "node:buffer"
import { hash } from "node:crypto"
import { organization } from "../api/records/Organizations.ts"
import type { Resource } from "../api/records/Resource.ts"
import { concat, fromText, type Json, toText } from "../database/RecordJson.ts"
import * as Walk from "./Walk.ts"

interface Change {
  readonly position: number
  /** The table, with `-` behind it for a removal. The feed of one resource has none. */
  readonly branch?: string
}

export interface WrittenRecord extends Change {
  /** The record's JSON, which begins with its id: a column for the id would cost a page of a thousand a tenth more. */
  readonly record: Json
}

export interface Removal extends Change {
  readonly record: null
  readonly id: string
  /** True if the snapshot has a record of that id again, which has a change of its own. */
  readonly existsAgain: boolean
}

export type ChangeRow = WrittenRecord | Removal

const leadingId = /^\{"id":("(?:[^"\\]|\\.)*")/

const idOf = (row: ChangeRow): string =>
  row.record === null ? row.id : JSON.parse(leadingId.exec(toText(row.record))?.[1] ?? '""')

const isRemoval = (row: ChangeRow): row is Removal => row.record === null && !row.existsAgain

/** The place of a row. Without a branch, after all changes of the id in its transaction: those are of one record. */
export const placeOf = (row: ChangeRow): Walk.Place => ({
  position: row.position,
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

// Each item begins with the comma that separates it from the one before.
const item = (members: object) => fromText(`,${JSON.stringify(members)}`)

/** The feed of several resources: `{"body":[{"resource":"...","record":{...}},...],"cursor":"...",...}`. */
export const combinedFeed = (resources: ReadonlyArray<Resource>): FeedDefinition => {
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
  const itemOf = (row: ChangeRow): ReadonlyArray<Json> => {
    const branch = openings.get(tableOf(row.branch ?? ""))
    if (branch === undefined) return []
    const { opening, resource } = branch
    if (row.record !== null) return [opening, row.record, closing]
    return isRemoval(row) ? [item({ resource, removed: row.id })] : []
  }
  return {
    name: "*",
    resources,
    orderTable: organization.table,
    pageLength: wholeTransactions,
    render: ({ cursor, hasMore, isConsistent, resets, rows }) => {
      const [first, ...items] = [...resets.map((resource) => item({ resource, reset: true })), ...rows.flatMap(itemOf)]
      const state = { cursor, has_more: hasMore, is_consistent: isConsistent, schema }
      return Buffer.concat([
        fromText('{"body":['),
        ...(first === undefined ? [] : [first.subarray(1)]),
        ...items,
        fromText(`],${JSON.stringify(state).slice(1)}`)
      ])
    }
  }
}
