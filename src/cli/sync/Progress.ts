/** Reports of a running sync: lines for a person, lines of JSON for a program, or warnings only. */
import { Clock, DateTime, Effect } from "effect"
import { note, print } from "../../process/Printed.ts"
import type { Change } from "./Target.ts"

type Said =
  /** The target was opened, for the first time. */
  | { readonly event: "opened"; readonly organization: string; readonly url: string; readonly target: string }
  /** A sentence for the user. */
  | { readonly event: "note"; readonly message: string }

/** The copy has all changes that the service has shown, but for those of so many seconds behind an open transaction. */
interface InStep {
  readonly seconds: number
  readonly lag: number
}

export type Event =
  | Said
  /** A page was applied. */
  | { readonly event: "applied"; readonly changes: ReadonlyArray<Change> }
  | (InStep & { readonly event: "in_step" })

export type Report = (event: Event) => Effect.Effect<void>

/** The changes since the copy was last in step. */
interface Count {
  readonly records: number
  readonly removed: number
}

type Line = Said | (Count & { readonly event: "applied" }) | (Count & InStep & { readonly event: "in_step" })

/** Milliseconds between two lines about pages. */
const interval = 1000

/** The lines of events. */
const makeLines = () => {
  let [records, removed] = [0, 0]
  let notedAt: number | undefined
  let isFirst = true

  return (event: Event, now: number): ReadonlyArray<Line> => {
    if (event.event === "applied") {
      records += event.changes.filter((change) => "record" in change).length
      removed += event.changes.filter((change) => "removed" in change).length
      notedAt ??= now
      if (now - notedAt < interval) return []
      notedAt = now
      return [{ event: "applied", records, removed }]
    }
    if (event.event !== "in_step") return [event]
    const line = { ...event, records, removed }
    const isNews = isFirst || records + removed > 0
    records = removed = 0
    notedAt = undefined
    isFirst = false
    return isNews ? [line] : []
  }
}

const number = new Intl.NumberFormat("en")

const textOf = ({ records, removed }: Count) =>
  `${number.format(records)} record${records === 1 ? "" : "s"}${removed === 0 ? "" : `, ${number.format(removed)} removed`}`

/** The sentence of a line for a person. */
const sentenceOf = (line: Line): string => {
  if (line.event === "opened") return `${line.organization} at ${line.url}, to ${line.target}`
  if (line.event === "note") return line.message
  if (line.event === "applied") return `${textOf(line)} so far`
  const news = line.records + line.removed > 0 ? textOf(line) : "nothing new"
  // Some transaction is always open on a busy server.
  const held =
    line.lag > 5 ? ` The last ${line.lag} s are held back by a transaction that is open in the service's database.` : ""
  return `In step: ${news}, after ${line.seconds.toFixed(1)} s.${held}`
}

const reporter = (shown: (line: Line, now: number) => string) => (): Report => {
  const linesOf = makeLines()
  return (event) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const texts = linesOf(event, now).map((line) => shown(line, now))
      return texts.length === 0 ? Effect.void : print(texts)
    })
}

/** For a person. */
export const text = reporter(sentenceOf)

/** For a program. */
export const json = reporter((line, now) =>
  JSON.stringify({ at: DateTime.formatIso(DateTime.makeUnsafe(now)), ...line })
)

/** Warnings only, on standard error. */
export const quiet = (): Report => (event) => (event.event === "note" ? note(event.message) : Effect.void)
