/**
 * The output of commands. Standard output has the data and the result; standard error has the words beside them. With
 * `--json`, each record is a line of JSON. A table has aligned columns under titles.
 */
import { Effect, Schema, Stdio, Terminal } from "effect"
import { CliOutput, Flag } from "effect/cli"
import type { AnyRecord } from "../client/index.ts"
import { note, print, printable } from "../process/Printed.ts"

export { note, print } from "../process/Printed.ts"

/** A flag without a value. */
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

/** Prints a record as JSON. */
export const record = (value: unknown) => print(JSON.stringify(value))

/** Prints a record: as JSON, or as lines for a person. */
export const shown = (isJson: boolean, value: unknown, text: string | ReadonlyArray<string>) =>
  isJson ? record(value) : print(text)

/** A number of things: `1 table`, `2 tables`. */
export const counted = (count: number, one: string) => `${count} ${count === 1 ? one : `${one}s`}`

type Value = string | number | boolean | null

/** The columns of a table: their titles, with a field or a function of a row. A time is shown to the second. */
export type Columns<Row> = Readonly<Record<string, (keyof Row & string) | ((row: Row) => Value)>>

const gap = "  "

const isTime = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/

/** An ISO 8601 time in UTC, to the second, where the title says that it is UTC. */
export const second = (time: string) => time.replace("T", " ").replace(/(\.\d+)?Z$/, "")

const textOf = (value: unknown): string => {
  if (value === null || value === undefined) return "-"
  if (typeof value === "string") return isTime.test(value) ? second(value) : value
  return JSON.stringify(value)
}

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
  columns: Columns<Row>,
  rows: ReadonlyArray<Row>,
  width = Number.POSITIVE_INFINITY
): ReadonlyArray<string> => {
  const read = Object.values(columns)
  const cells = [
    Object.keys(columns).map(printable),
    ...rows.map((row) => read.map((of) => printable(textOf(typeof of === "function" ? of(row) : row[of]))))
  ]
  // Not one call of `Math.max`: a list may have more lines than a call takes arguments.
  const widths = read.map((_, index) =>
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
  readonly columns: Columns<Row>
  readonly json: boolean
  /** The words for an empty list. */
  readonly none: string
}

/** Prints records: a table, or lines of JSON. */
export const rows = Effect.fnUntraced(function* <Row>(found: ReadonlyArray<Row>, options: Options<Row>) {
  if (found.length === 0) return yield* note(options.none)
  if (options.json) return yield* Effect.forEach(found, record, { discard: true })
  yield* print(lines(options.columns, found, yield* width))
})

/** A name with its values, of which there may be none. */
export type Pair = readonly [name: string, values: string | ReadonlyArray<string> | null]

/** Names and their values below each other. */
export const pairs = (entries: ReadonlyArray<Pair>): ReadonlyArray<string> => {
  const lists = entries.map(([name, values]) => [printable(name), [values ?? []].flat()] as const)
  const widest = Math.max(0, ...lists.map(([name, values]) => (values.length > 0 ? CliOutput.displayWidth(name) : 0)))
  return lists.flatMap(([name, values]) =>
    values.map((value, index) => `${pad(index === 0 ? name : "", widest)}${gap}${value}`.trimEnd())
  )
}

/** The widest cell of a record. JSON has the whole text. */
const widestField = 48

/** Columns for fields of records of the API. */
export const columnsOf = (fields: ReadonlyArray<string>): Columns<AnyRecord> =>
  Object.fromEntries(fields.map((field) => [field, (one) => cut(printable(textOf(one[field])), widestField)]))

/** The lines about one record of the API. */
export const linesOf = (one: AnyRecord) => pairs(Object.entries(one).map(([field, value]) => [field, textOf(value)]))
