/**
 * The output of commands. Standard output has the data and the result; standard error has the words beside them. With
 * `--json`, each record is a line of JSON. A table has aligned columns under titles.
 */
import { Effect, Schema, Stdio, Terminal } from "effect"
import { CliOutput, Flag } from "effect/cli"
import type { AnyRecord } from "../client/index.ts"
import { note, print, printable } from "../process/Printed.ts"

export { note, print } from "../process/Printed.ts"

export const flag = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withoutNegation, Flag.withDescription(description), Flag.withDefault(false))

/** A flag with an integer of a range, both ends included. */
export const integer = (name: string, minimum: number, maximum: number, description: string) =>
  Flag.Int(name).pipe(
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum, maximum }))),
    Flag.withDescription(description)
  )

export const json = flag("json", "Print each record as one line of JSON, for a program")

/** The flag `--limit` of a list for operators. */
export const limit = (what: string) =>
  Flag.withDefault(integer("limit", 1, 10_000, `How many ${what} at most, 50 by default`), 50)

export const record = (value: unknown) => print(JSON.stringify(value))

/** Prints a record: as JSON, or as lines for a person. */
export const shown = (isJson: boolean, value: unknown, text: string | ReadonlyArray<string>) =>
  isJson ? record(value) : print(text)

/** `1 table`, `2 tables`. */
export const counted = (count: number, one: string) => `${count} ${count === 1 ? one : `${one}s`}`

type Value = string | number | boolean | null

/** The columns of a table: their titles, with a field or a function of a row. A time is shown to the second. */
export type Columns<Row> = Readonly<Record<string, (keyof Row & string) | ((row: Row) => Value)>>

const isTime = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/

/** An ISO 8601 time in UTC, to the second, where the title says that it is UTC. */
export const second = (time: string) => time.replace("T", " ").replace(/(\.\d+)?Z$/, "")

const textOf = (value: unknown): string => {
  if (value === null || value === undefined) return "-"
  if (typeof value === "string") return isTime.test(value) ? second(value) : value
  return JSON.stringify(value)
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" })

/** As much of a line as fits. */
const cut = (line: string, width: number) => {
  if (CliOutput.displayWidth(line) <= width) return line
  let kept = ""
  let used = 0
  for (const { segment } of graphemes.segment(line)) {
    used += CliOutput.displayWidth(segment)
    if (used > width - 1) break
    kept += segment
  }
  return `${kept}…`
}

/** Lines of cells that are aligned below each other. */
const aligned = (rows: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const widths: Array<number> = []
  for (const row of rows) {
    for (const [index, cell] of row.entries()) {
      widths[index] = Math.max(widths[index] ?? 0, CliOutput.displayWidth(cell))
    }
  }
  const pad = (cell: string, index: number) => cell + " ".repeat((widths[index] ?? 0) - CliOutput.displayWidth(cell))
  return rows.map((row) => row.map(pad).join("  ").trimEnd())
}

/** The lines of a table, the titles first, each of at most so many cells. */
export const lines = <Row>(columns: Columns<Row>, rows: ReadonlyArray<Row>, width = Number.POSITIVE_INFINITY) => {
  const cellsOf = (row: Row) =>
    Object.values(columns).map((of) => printable(textOf(typeof of === "function" ? of(row) : row[of])))
  return aligned([Object.keys(columns).map(printable), ...rows.map(cellsOf)]).map((line) => cut(line, width))
}

/** The cells of a line of the terminal; infinite where standard output is none. */
export const width = Effect.gen(function* () {
  const columns = yield* (yield* Terminal.Terminal).columns
  const isTerminal = yield* (yield* Stdio.Stdio).stdoutIsTerminal
  return isTerminal && columns > 0 ? columns : Number.POSITIVE_INFINITY
})

/** Prints records: a table, or lines of JSON. An empty list is a note. */
export const rows = Effect.fnUntraced(function* <Row>(
  found: ReadonlyArray<Row>,
  { columns, json: isJson, none }: { readonly columns: Columns<Row>; readonly json: boolean; readonly none: string }
) {
  if (found.length === 0) return yield* note(none)
  if (isJson) return yield* Effect.forEach(found, record, { discard: true })
  yield* print(lines(columns, found, yield* width))
})

/** Names, each with its values, of which there may be none, below each other. */
export const pairs = (
  entries: ReadonlyArray<readonly [name: string, values: string | ReadonlyArray<string> | null]>
): ReadonlyArray<string> =>
  aligned(
    entries.flatMap(([name, values]) =>
      [values ?? []].flat().map((value, index) => [index === 0 ? printable(name) : "", value])
    )
  )

/** Columns for fields of records of the API. JSON has the whole text. */
export const columnsOf = (fields: ReadonlyArray<string>): Columns<AnyRecord> =>
  Object.fromEntries(fields.map((field) => [field, (one) => cut(printable(textOf(one[field])), 48)]))

/** The lines about one record of the API. */
export const linesOf = (one: AnyRecord) => pairs(Object.entries(one).map(([field, value]) => [field, textOf(value)]))
