/** What came of hostile bodies, for people. */
import type { Result } from "./attack.ts"

const size = (bytes: number) =>
  bytes < 1024
    ? `${bytes} B`
    : bytes < 1024 ** 2
      ? `${(bytes / 1024).toFixed(1)} KiB`
      : `${(bytes / 1024 ** 2).toFixed(1)} MiB`

const heads = ["kind", "request", "status", "answer", "CPU ms", "longest wait ms", "peak MiB", ""] as const

const cellsOf = ({ answerBytes, broken, cpu, kind, longest, peak, requestBytes, statuses }: Result) => [
  kind,
  size(requestBytes),
  statuses.join(" ") || "closed",
  size(answerBytes),
  cpu.toFixed(1),
  longest.toFixed(0),
  peak.toFixed(0),
  broken.length === 0 ? "pass" : `FAIL: ${broken.join(", ")}`
]

const widths = [42, 9, 9, 10, 8, 16, 9, 0]

const lineOf = (cells: ReadonlyArray<string>) =>
  cells
    .map((cell, index) => (index === 0 ? cell.padEnd(widths[index] ?? 0) : ` ${cell.padStart(widths[index] ?? 0)}`))
    .join("")

/** The names of the columns. */
export const head = lineOf(heads)

/** One kind. */
export const line = (result: Result) => lineOf(cellsOf(result))
