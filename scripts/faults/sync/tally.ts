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

const servers = { changes: "", replica: ", replica", both: ", primary and replica in turn" }

const nameOf = ({ isOfAll, isWithin, manner }: Outcome, isEmbedded: boolean) => {
  if (manner === "margin") return isWithin ? "search with a margin" : "the same, beyond its margin"
  return `${isOfAll ? "changes of all" : "changes"}${isEmbedded ? ", embedded" : servers[manner]}`
}

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
  const sorted = [...tally].toSorted(([one], [other]) => (one < other ? -1 : 1))
  const rows = sorted.map(([name, { failed, histories, lost, pages, readers, records, stale, troubled, unseen }]) => [
    name,
    histories,
    readers,
    records,
    pages,
    lost,
    stale,
    unseen,
    troubled,
    failed.size
  ])
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
