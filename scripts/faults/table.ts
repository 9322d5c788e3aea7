/** The table of promises, for people. */
import { cpus, loadavg, totalmem } from "node:os"
import type { Row } from "./Scenario.ts"

/** When and where the figures were made, and how busy the machine was before: figures of a busy one say little. */
export const circumstances = (date: string, postgres: string, seed: number) =>
  `${date}, ${cpus().length} cores (${cpus()[0]?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}, Postgres ${postgres}, seed ${seed}, load ${(loadavg()[0] ?? 0).toFixed(1)}`

const cell = (text: string) => text.replaceAll("|", "\\|").replaceAll(/\s+/g, " ").trim()

const signs = { pass: "pass", fail: "FAIL", skip: "not run" } as const

/** As Markdown, for the README. */
export const markdown = (rows: ReadonlyArray<Row>) => {
  const lines = rows.map(({ done, promise, result, seen }) =>
    [done, promise, seen, signs[result]].map(cell).join(" | ")
  )
  return [
    "| what is done | what is promised | what was seen | |",
    "| --- | --- | --- | --- |",
    ...lines.map((line) => `| ${line} |`)
  ].join("\n")
}

/** One row as lines of text. */
export const paragraph = ({ name, done, promise, result, seconds, seen }: Row) =>
  [
    `${signs[result].toUpperCase().padEnd(8)}${name} (${seconds.toFixed(0)} s)`,
    `        done:     ${done}`,
    `        promised: ${promise}`,
    `        seen:     ${seen}`
  ].join("\n")

/** All rows, a line each. */
export const summary = (rows: ReadonlyArray<Row>) =>
  rows.map(({ name, result, seen }) => `${signs[result].padEnd(8)}${name.padEnd(22)}${seen}`).join("\n")
