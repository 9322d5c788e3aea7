/** What many histories came to. */
import { Record } from "effect"
import { isBroken, type Outcome, type Played } from "./outcome.ts"

/** The columns of the table, by what they count. */
const columns = {
  histories: "histories",
  readers: "readers",
  records: "records",
  pages: "pages",
  lost: "lost",
  stale: "stale",
  troubled: "other faults",
  failed: "histories with any"
} as const

type Row = { -readonly [Name in keyof typeof columns]: number }

/** By the names of readers. */
export type Tally = Map<string, Row>

const servers = { changes: "", replica: ", replica", both: ", primary and replica in turn" }

const nameOf = ({ isOfAll, manner }: Outcome, isEmbedded: boolean) =>
  `${isOfAll ? "changes of all" : "changes"}${isEmbedded ? ", embedded" : servers[manner]}`

/** Adds a history. */
export const add = (tally: Tally, { outcomes }: Played, isEmbedded: boolean) => {
  for (const [name, all] of Map.groupBy(outcomes, (outcome) => nameOf(outcome, isEmbedded))) {
    const row: Row = tally.get(name) ?? Record.map(columns, () => 0)
    tally.set(name, row)
    row.histories++
    row.readers += all.length
    for (const sum of ["records", "pages", "lost", "stale"] as const) {
      for (const outcome of all) row[sum] += outcome[sum]
    }
    row.troubled += all.filter(({ trouble }) => trouble !== undefined).length
    if (all.some(isBroken)) row.failed++
  }
  return outcomes.some(isBroken)
}

/** As Markdown. */
export const table = (tally: Tally) => {
  const sorted = [...tally].toSorted(([one], [other]) => (one < other ? -1 : 1))
  const counts = sorted.map(([name, row]) => [
    name,
    ...Record.keys(columns).map((key) => row[key].toLocaleString("en"))
  ])
  const head = ["reader", ...Object.values(columns)]
  const lines = [head, head.map((_, at) => (at === 0 ? "---" : "---:")), ...counts]
  return lines.map((line) => `| ${line.join(" | ")} |`).join("\n")
}
