/** Tables for a person: aligned columns under titles, without lines and quotes. */
import { CliOutput } from "effect/cli"
import { printable } from "../process/Printed.ts"

/** A column of a table. */
export interface Column<Row> {
  readonly title: string
  /** The text of a row; null where it has none. */
  readonly value: (row: Row) => string | number | boolean | null
}

const gap = "  "

const textOf = (value: string | number | boolean | null) => (value === null ? "-" : printable(String(value)))

const pad = (text: string, width: number) => text + " ".repeat(Math.max(0, width - CliOutput.displayWidth(text)))

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" })

/** As much of a line as fits. */
export const cut = (line: string, width: number) => {
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

/**
 * The lines of a table, the titles first.
 *
 * @param width how many cells a line may have
 */
export const lines = <Row>(
  columns: ReadonlyArray<Column<Row>>,
  rows: ReadonlyArray<Row>,
  width = Number.POSITIVE_INFINITY
): ReadonlyArray<string> => {
  const cells = [
    columns.map(({ title }) => printable(title)),
    ...rows.map((row) => columns.map(({ value }) => textOf(value(row))))
  ]
  const widths = columns.map((_, index) =>
    cells.reduce((widest, line) => Math.max(widest, CliOutput.displayWidth(line[index] ?? "")), 0)
  )
  return cells.map((line) =>
    cut(
      line
        .map((text, index) => pad(text, widths[index] ?? 0))
        .join(gap)
        .trimEnd(),
      width
    )
  )
}

/** An ISO 8601 time in UTC, to the second, for a column that says that it is UTC. */
export const second = (time: string | null) => time?.replace("T", " ").replace(/(\.\d+)?Z$/, "") ?? null

/** Names and their values below each other. */
export const pairs = (entries: ReadonlyArray<readonly [name: string, value: string]>): ReadonlyArray<string> => {
  const names = entries.map(([name]) => printable(name))
  const width = Math.max(0, ...names.map(CliOutput.displayWidth))
  return entries.map(([, value], index) => `${pad(names[index] ?? "", width)}${gap}${value}`.trimEnd())
}
