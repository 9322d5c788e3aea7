/** Pages, records and openings for tests of targets. */
import { Schema } from "effect"
import { type Table, tables } from "../../../../src/cli/sync/Table.ts"
import type { OpenOptions, Page, State, SyncRecord } from "../../../../src/cli/sync/Target.ts"

export const tableOf = (name: string): Table => {
  const found = tables.find(({ resource }) => resource === name)
  if (found === undefined) throw new Error(`no such resource: ${name}`)
  return found
}

export const charges = tableOf("charges")

export const origin = { organization: "org_a", url: "http://127.0.0.1:3000" }

/** Options to open a target: for charges alone by default. */
export const opening = (over: Partial<OpenOptions> = {}): OpenOptions => ({
  origin,
  allowNewUrl: false,
  tables: [charges],
  ...over
})

/** Records of which there is the JSON. */
export const decodeRecords = Schema.decodeEffect(
  Schema.Array(
    Schema.fromJsonString(
      Schema.StructWithRest(Schema.Struct({ id: Schema.String }), [Schema.Record(Schema.String, Schema.Unknown)])
    )
  )
)

let cursors = 0

/** The last page that there is, unless it is said otherwise. Each has a cursor of its own. */
export const page = (records: ReadonlyArray<SyncRecord>, over: Partial<Page> = {}): Page => ({
  body: [...records],
  removed: [],
  cursor: `cursor ${++cursors}`,
  has_more: false,
  complete: true,
  lag: 0,
  ...over
})

/** A charge of an id, with a status by which its states differ. */
export const charge = (id: string, status: string): SyncRecord => {
  const values = charges.columns.map(({ name, type }) => [name, type === "numeric" ? 1.5 : null] as const)
  const time = "2026-01-31T09:30:00.000Z"
  return { ...Object.fromEntries(values), id, status, created_at: time, updated_at: time }
}

export const beginning: State = { cursor: undefined, load: "first" }
