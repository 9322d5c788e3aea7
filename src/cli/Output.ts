/**
 * What commands print. Standard output has the data, and what was done; standard error has the words beside them. With
 * `--json`, each record is a line of JSON.
 */
import { Effect, Schema, Stdio, Terminal } from "effect"
import { Flag, TerminalCapabilities } from "effect/cli"
import * as Printed from "../process/Printed.ts"
import * as Table from "./Table.ts"

/** The flag `--json`. */
export const json = Flag.Boolean("json").pipe(
  Flag.withoutNegation,
  Flag.withDescription("Print each record as one line of JSON, for a program"),
  Flag.withDefault(false)
)

/** Bold where the terminal can. */
const titles = Effect.map(
  TerminalCapabilities.TerminalCapabilities,
  ({ canColor }) =>
    (line: string, index: number) =>
      canColor && index === 0 ? `\u001b[1m${line}\u001b[22m` : line
)

/** How many cells a line has; any number where it is not read on a terminal. */
export const width = Effect.gen(function* () {
  const columns = yield* (yield* Terminal.Terminal).columns
  const isTerminal = yield* (yield* Stdio.Stdio).stdoutIsTerminal
  return isTerminal && columns > 0 ? columns : Number.POSITIVE_INFINITY
})

export { note, print } from "../process/Printed.ts"

/** Prints a record as JSON. */
export const record = (value: unknown) => Printed.print(JSON.stringify(value))

const pretty = Schema.encodeEffect(Schema.fromJsonString(Schema.Unknown, { space: 2 }))

/** Prints a document of JSON that a person may read, too. */
export const document = (value: unknown) =>
  Effect.flatMap(Effect.orDie(pretty(value)), (text) => Printed.print(text.split("\n")))

/** How to print records. */
export interface Options<Row> {
  readonly columns: ReadonlyArray<Table.Column<Row>>
  readonly json: boolean
  /** What to say when there is none. */
  readonly none: string
}

/** Prints records: a table, or lines of JSON. */
export const rows = Effect.fnUntraced(function* <Row>(found: ReadonlyArray<Row>, options: Options<Row>) {
  if (found.length === 0) return yield* Printed.note(options.none)
  if (options.json) return yield* Effect.forEach(found, record, { discard: true })
  yield* Printed.print(Table.lines(options.columns, found, yield* width), yield* titles)
})
