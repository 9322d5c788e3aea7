/** Records as a store holds them: by column, and as JSON. For the fake, the demo data and tests. */
import { Array, Effect, Predicate, Schema } from "effect"
import { columnOf } from "../api/records/Field.ts"
import type { Resource, Stored } from "../api/records/Resource.ts"

/** A stored record in the JSON forms of its values. */
export interface Row {
  readonly organization: string
  readonly id: string
  /** Every value, hidden ones included, by its column. What a record leaves out is not there. */
  readonly columns: Readonly<Record<string, unknown>>
  /** The record as clients see it. */
  readonly json: string
}

/** An object in a record has a column for each of its values: `payment_split.to_Clinic` is `payment_split_to_clinic`. */
const columnsOf = (values: object, prefix = ""): Row["columns"] =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => {
      const column = prefix + columnOf(name)
      return Predicate.isObject(value) && !Array.isArray(value)
        ? Object.entries(columnsOf(value, `${column}_`))
        : [[column, value] as const]
    })
  )

/** The rows of stored records. A record that its schema does not describe is a defect. */
export const rowsOf = Effect.fnUntraced(function* <R extends Resource>(resource: R, records: ReadonlyArray<Stored<R>>) {
  const encodeRecord = Schema.encodeUnknownEffect(resource.record)
  const encodeHidden = Schema.encodeUnknownEffect(Schema.Struct(resource.hidden))
  const encodeJson = Schema.encodeEffect(Schema.fromJsonString(Schema.Unknown))
  return yield* Effect.forEach(records, (stored) =>
    Effect.gen(function* () {
      const record = yield* encodeRecord(stored)
      const columns = columnsOf({ ...(yield* encodeHidden(stored)), ...record })
      const row: Row = {
        organization: stored.organization_id,
        id: String(columns["id"]),
        columns,
        json: yield* encodeJson(record)
      }
      return row
    })
  )
}, Effect.orDie)
