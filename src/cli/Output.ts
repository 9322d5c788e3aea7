/** The flags and the output of commands: standard output has the result, standard error the words beside it. */
import { Effect, Option, Predicate, Schema } from "effect"
import { CliOutput, Flag } from "effect/cli"
import * as Printed from "../process/Printed.ts"

const { print, printable } = Printed

export { print }

/** Prints to standard error, below the output so far where both go to one place. */
export const note = (text: string | ReadonlyArray<string>) => Effect.andThen(Printed.written, Printed.note(text))

export const flag = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withoutNegation, Flag.withDescription(description), Flag.withDefault(false))

export const optional = <A>(given: Flag.Flag<A>) => Flag.map(Flag.optional(given), Option.getOrUndefined)

export const text = (name: string, description: string) =>
  optional(Flag.withDescription(Flag.String(name), description))

/** A flag with an integer of a range, both ends included. */
export const integer = (name: string, minimum: number, maximum: number, description: string) =>
  Flag.Int(name).pipe(
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum, maximum }))),
    Flag.withDescription(description)
  )

export const json = flag("json", "Print each record as one line of JSON")

export const limit = (what: string) =>
  Flag.withDefault(integer("limit", 1, 10_000, `Maximum number of ${what}, default 50`), 50)

export const record = (value: unknown) => print(JSON.stringify(value))

type Row = Readonly<Record<string, unknown>>

/** The most characters of a cell. JSON has the whole text. */
const widest = 200

const isTime = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/

/** The text of a value, and a time to the second. */
const valueText = (value: unknown): string => {
  if (Predicate.isNullish(value)) return "-"
  if (!Predicate.isString(value)) return JSON.stringify(value)
  return isTime.test(value) ? value.replace("T", " ").replace(/(\.\d+)?Z$/, "") : value
}

const cellText = (value: unknown) => {
  const whole = valueText(value)
  return printable(whole.length > widest ? `${whole.slice(0, widest - 1)}…` : whole)
}

const aligned = (rows: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const widths = (rows[0] ?? []).map((_, index) =>
    Math.max(...rows.map((row) => CliOutput.displayWidth(row[index] ?? "")))
  )
  const pad = (cell: string, index: number) => cell + " ".repeat((widths[index] ?? 0) - CliOutput.displayWidth(cell))
  return rows.map((row) => row.map(pad).join("  ").trimEnd())
}

/** The lines of a table, the names of its fields first. */
export const lines = (fields: ReadonlyArray<string>, rows: ReadonlyArray<Row>) =>
  aligned([fields.map(printable), ...rows.map((row) => fields.map((field) => cellText(row[field])))])

/** Prints records: as lines of JSON, or as a table of some fields. */
export const rows = (isJson: boolean, records: ReadonlyArray<Row>, fields: ReadonlyArray<string>) => {
  if (records.length === 0) return note("Nothing found.")
  return isJson ? Effect.forEach(records, record, { discard: true }) : print(lines(fields, records))
}

/** The fields of a record with the text of their values, those of an object each by itself. */
const fieldTexts = (value: object, prefix = ""): ReadonlyArray<readonly [string, string]> =>
  Object.entries<unknown>({ ...value }).flatMap(([field, member]) => {
    const name = `${prefix}${field}`
    return Predicate.isReadonlyObject(member)
      ? fieldTexts(member, `${name}.`)
      : [[printable(name), valueText(member)] as const]
  })

/** Prints a record: as JSON, or as a line for each field, of the whole record or a part of it. */
export const shown = (isJson: boolean, value: object, part = value) =>
  isJson ? record(value) : print(aligned(fieldTexts(part)))
