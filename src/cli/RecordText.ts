/** Records of the API, told to a person. */
import type { AnyRecord } from "../client/index.ts"
import { printable } from "../process/Printed.ts"
import { cut, type Column, pairs, second } from "./Table.ts"

const isTime = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/

/** The text of a field. */
export const textOf = (value: unknown): string | null => {
  if (value === null || value === undefined) return null
  if (typeof value === "string") return isTime.test(value) ? second(value) : value
  return JSON.stringify(value)
}

/** The widest that a cell is: the whole text is in JSON. */
const widest = 48

/** A column for each field. */
export const columnsOf = (fields: ReadonlyArray<string>): ReadonlyArray<Column<AnyRecord>> =>
  fields.map((field) => ({
    title: field,
    value: (record) => {
      const text = textOf(record[field])
      return text === null ? null : cut(printable(text), widest)
    }
  }))

/** The lines about one record. */
export const linesOf = (record: AnyRecord) =>
  pairs(Object.entries(record).map(([field, value]) => [field, textOf(value) ?? "-"] as const))
