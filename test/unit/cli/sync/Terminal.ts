/** A terminal that keeps what stands on it, as far as a sync writes to one. It wraps lines, and again when it is resized. */
import { Effect, Terminal } from "effect"

const newline = "\n"
const up = /^\p{Cc}\[(\d+)A/u
const eraseBelow = /^\p{Cc}\[J/u
const color = /^\p{Cc}\[\d+m/u

export const make = (initialColumns: number, rows: number) => {
  let columns = initialColumns
  /** The lines, however many rows each takes. */
  const lines = [""]
  let written = ""
  const rowsOf = (line: string) => Math.max(1, Math.ceil(line.length / columns))

  /** Removes as many rows from the end, as a move up and an erase do. */
  const moveUp = (count: number) => {
    let left = count
    // The cursor is in the first column of an empty line.
    lines.pop()
    while (left > 0) {
      const line = lines.pop() ?? ""
      left -= rowsOf(line)
      // It stopped in the middle of a line: the rest of it stays.
      if (left < 0) lines.push(line.slice(0, -left * columns))
    }
    lines.push("")
  }

  const write = (text: string) => {
    let rest = text
    while (rest !== "") {
      const moved = up.exec(rest)
      const skipped = moved ?? eraseBelow.exec(rest) ?? color.exec(rest)
      if (moved !== null) moveUp(Number(moved[1]))
      if (skipped !== null) {
        rest = rest.slice(skipped[0].length)
        continue
      }
      const [character = ""] = rest
      if (character === newline) lines.push("")
      else if (character !== "\r") lines[lines.length - 1] += character
      rest = rest.slice(character.length)
    }
  }

  const terminal = Terminal.make({
    columns: Effect.sync(() => columns),
    rows: Effect.succeed(rows),
    size: Effect.never,
    readInput: Effect.never,
    readLine: Effect.never,
    display: (text) =>
      Effect.sync(() => {
        written += text
        write(text)
      })
  })
  return {
    terminal,
    resize: (width: number) => void (columns = width),
    /** The lines on the screen. */
    lines: () => lines.slice(0, -1),
    /** All that was written to it. */
    written: () => written
  }
}
