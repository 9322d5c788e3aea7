/** Lines at the end of a terminal that are drawn again and again, below those that stay. */
import { Effect, Terminal } from "effect"
import { printable } from "../../../process/Printed.ts"

const escape = "\u001b["

/** The lines of a block, and how many rows they take once the terminal is narrower than it was. */
const rowsOf = (lines: ReadonlyArray<string>, columns: number) =>
  lines.reduce((rows, line) => rows + Math.max(1, Math.ceil(line.length / columns)), 0)

/** A screen. Whatever hides in a line is escaped. */
export const make = Effect.gen(function* () {
  const terminal = yield* Terminal.Terminal
  let drawn: ReadonlyArray<string> = []

  const size = Effect.all({ columns: terminal.columns, rows: terminal.rows }).pipe(
    Effect.map(({ columns, rows }) => ({ columns: columns > 0 ? columns : 80, rows: rows > 0 ? rows : 24 }))
  )

  const erased = (columns: number) => {
    const rows = rowsOf(drawn, columns)
    drawn = []
    return rows === 0 ? "" : `${escape}${rows}A\r${escape}J`
  }

  const write = (text: string) => Effect.ignore(terminal.display(text))

  return {
    /** Draws the block anew. Lines are cut to the terminal's width, and those that do not fit are left out. */
    draw: (lines: ReadonlyArray<string>, paint: (line: string) => string) =>
      Effect.flatMap(size, ({ columns, rows }) => {
        const erase = erased(columns)
        drawn = lines.slice(-(rows - 1)).map((line) => printable(line).slice(0, columns - 1))
        return write(erase + drawn.map((line) => `${paint(line)}\n`).join(""))
      }),
    /** Prints lines that stay, above the block, which is gone until it is drawn again. */
    print: (lines: ReadonlyArray<string>) =>
      Effect.flatMap(size, ({ columns }) =>
        write(erased(columns) + lines.map((line) => `${printable(line)}\n`).join(""))
      )
  }
})
