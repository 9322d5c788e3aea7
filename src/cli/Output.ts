/**
 * The output of commands. Standard output has the data and the result; standard error has the words beside them. With
 * `--json`, each record is a line of JSON. A table has aligned columns under titles.
 */
import { Effect, Schema, Stdio, Terminal } from "effect"
import { CliOutput, Flag, TerminalCapabilities } from "effect/cli"
import type { AnyRecord } from "../client/index.ts"
import { note, print, printable } from "../process/Printed.ts"

export { note, print } from "../process/Printed.ts"

/** The flag `--json`. */
export const json = Flag.Boolean("json").pipe(
  Flag.withoutNegation,
  Flag.withDescription("Print each record as one line of JSON, for a program"),
  Flag.withDefault(false)
)

/** The flag `--limit` of a list for operators. */
export const limit = (what: string) =>
  Flag.Int("limit").pipe(
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10_000 }))),
    Flag.withDescription(`How many ${what} at most, 50 by default`),
    Flag.withDefault(50)
  )

/** Prints a record as JSON. */
export const record = (value: unknown) => print(JSON.stringify(value))

const pretty = Schema.encodeEffect(Schema.fromJsonString(Schema.Unknown, { space: 2 }))

/** Prints indented JSON. */
export const document = (value: unknown) =>
  Effect.flatMap(Effect.orDie(pretty(value)), (text) => print(text.split("\n")))

/** A column of a table. */
export interface Column<Row> {
  readonly title: string
  /** The text of a row; null where it has none. */
  readonly value: (row: Row) => string | number | boolean | null
}

const gap = "  "

const cellOf = (value: string | number | boolean | null) => (value === null ? "-" : printable(String(value)))

const pad = (text: string, width: number) => text + " ".repeat(Math.max(0, width - CliOutput.displayWidth(text)))

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

/** The lines of a table, the titles first, each of at most so many cells. */
export const lines = <Row>(
  columns: ReadonlyArray<Column<Row>>,
  rows: ReadonlyArray<Row>,
  width = Number.POSITIVE_INFINITY
): ReadonlyArray<string> => {
  const cells = [
    columns.map(({ title }) => printable(title)),
    ...rows.map((row) => columns.map(({ value }) => cellOf(value(row))))
  ]
  const widths = columns.map((_, index) =>
    cells.reduce((widest, line) => Math.max(widest, CliOutput.displayWidth(line[index] ?? "")), 0)
  )
  return cells.map((line) => {
    const padded = line.map((text, index) => pad(text, widths[index] ?? 0))
    return cut(padded.join(gap).trimEnd(), width)
  })
}

/** The cells of a line of the terminal; infinite where standard output is none. */
export const width = Effect.gen(function* () {
  const columns = yield* (yield* Terminal.Terminal).columns
  const isTerminal = yield* (yield* Stdio.Stdio).stdoutIsTerminal
  return isTerminal && columns > 0 ? columns : Number.POSITIVE_INFINITY
})

interface Options<Row> {
  readonly columns: ReadonlyArray<Column<Row>>
  readonly json: boolean
  /** The words for an empty list. */
  readonly none: string
}

/** Prints records: a table, or lines of JSON. */
export const rows = Effect.fnUntraced(function* <Row>(found: ReadonlyArray<Row>, options: Options<Row>) {
  if (found.length === 0) return yield* note(options.none)
  if (options.json) return yield* Effect.forEach(found, record, { discard: true })
  const { canColor } = yield* TerminalCapabilities.TerminalCapabilities
  yield* print(lines(options.columns, found, yield* width), (line, index) =>
    canColor && index === 0 ? `\u001b[1m${line}\u001b[22m` : line
  )
})

/** An ISO 8601 time in UTC, to the second, for a column that says that it is UTC. */
export const second = (time: string | null) => time?.replace("T", " ").replace(/(\.\d+)?Z$/, "") ?? null

/** Names and their values below each other. */
export const pairs = (entries: ReadonlyArray<readonly [name: string, value: string]>): ReadonlyArray<string> => {
  const names = entries.map(([name]) => printable(name))
  const widest = Math.max(0, ...names.map(CliOutput.displayWidth))
  return entries.map(([, value], index) => `${pad(names[index] ?? "", widest)}${gap}${value}`.trimEnd())
}

const isTime = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/

const fieldOf = (value: unknown): string | null => {
  if (value === null || value === undefined) return null
  if (typeof value === "string") return isTime.test(value) ? second(value) : value
  return JSON.stringify(value)
}

/** The widest cell of a record. JSON has the whole text. */
const widestField = 48

/** Columns for fields of records of the API. */
export const columnsOf = (fields: ReadonlyArray<string>): ReadonlyArray<Column<AnyRecord>> =>
  fields.map((field) => ({
    title: field,
    value: (one) => {
      const text = fieldOf(one[field])
      return text === null ? null : cut(printable(text), widestField)
    }
  }))

/** The lines about one record of the API. */
export const linesOf = (one: AnyRecord) =>
  pairs(Object.entries(one).map(([field, value]) => [field, fieldOf(value) ?? "-"] as const))
