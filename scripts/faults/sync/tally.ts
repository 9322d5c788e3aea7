/** What many histories came to. */
import { isBroken, type Outcome, type Played } from "./outcome.ts"

interface Row {
  histories: number
  readers: number
  records: number
  lost: number
  stale: number
  unseen: number
  pages: number
  troubled: number
  readonly failed: Set<number>
}

/** By the names of readers. */
export type Tally = Map<string, Row>

const empty = (): Row => ({
  histories: 0,
  readers: 0,
  records: 0,
  lost: 0,
  stale: 0,
  unseen: 0,
  pages: 0,
  troubled: 0,
  failed: new Set()
})

const nameOf = ({ isWithin, manner }: Outcome, isEmbedded: boolean) => {
  switch (manner) {
    case "changes":
      return isEmbedded ? "changes, embedded" : "changes"
    case "replica":
      return "changes, replica"
    case "both":
      return "changes, primary and replica in turn"
    case "margin":
      return isWithin ? "search with a margin" : "the same, beyond its margin"
    case "offset":
      return "search by offset"
  }
}

const order = [
  "changes",
  "changes, replica",
  "changes, primary and replica in turn",
  "changes, embedded",
  "search with a margin",
  "the same, beyond its margin",
  "search by offset"
]

/** Adds a history. */
export const add = (tally: Tally, number: number, { outcomes }: Played, isEmbedded: boolean) => {
  const counted = new Set<string>()
  for (const outcome of outcomes) {
    const name = nameOf(outcome, isEmbedded)
    const row = tally.get(name) ?? empty()
    tally.set(name, row)
    if (!counted.has(name)) row.histories++
    counted.add(name)
    row.readers++
    row.records += outcome.records
    row.lost += outcome.lost
    row.stale += outcome.stale
    row.unseen += outcome.unseen
    row.pages += outcome.pages
    if (outcome.trouble !== undefined) row.troubled++
    if (outcome.lost + outcome.stale > 0 || outcome.trouble !== undefined) row.failed.add(number)
  }
  return outcomes.some(isBroken)
}

const count = (value: number) => value.toLocaleString("en")

/** As Markdown. */
export const table = (tally: Tally) => {
  const rows = order.flatMap((name) => {
    const row = tally.get(name)
    if (row === undefined) return []
    const { failed, histories, lost, pages, readers, records, stale, troubled, unseen } = row
    return [[name, histories, readers, records, pages, lost, stale, unseen, troubled, failed.size]]
  })
  const cells = rows.map((row) => row.map((cell) => (typeof cell === "number" ? count(cell) : cell)))
  const head = [
    "reader",
    "histories",
    "readers",
    "records",
    "pages",
    "lost",
    "stale",
    "removals unseen",
    "other faults",
    "histories with any"
  ]
  const lines = [head, head.map((_, at) => (at === 0 ? "---" : "---:")), ...cells]
  return lines.map((line) => `| ${line.join(" | ")} |`).join("\n")
}
