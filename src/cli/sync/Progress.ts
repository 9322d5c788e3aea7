/** Reports of a running sync: lines for a person, lines of JSON for a program, or warnings only. */
import { Clock, DateTime, Effect, Number } from "effect"
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

interface Changes {
  readonly records: number
  readonly removed: number
}

type Line =
  | Said
  | (Changes & { readonly event: "applied"; readonly resource: string })
  | (Changes & InStep & { readonly event: "in_step"; readonly resource: string })
  | (Changes & InStep & { readonly event: "done" })

/** Milliseconds between two lines about pages. */
const interval = 1000

/** The lines of events, from counts of the changes of resources since the copy was last in step. */
const makeLines = () => {
  let counts = new Map<string, Changes>()
  let notedAt: number | undefined
  let isFirst = true

  const applied = (changes: ReadonlyArray<Change>, now: number): ReadonlyArray<Line> => {
    for (const change of changes) {
      const { records, removed } = counts.get(change.resource) ?? { records: 0, removed: 0 }
      const added = {
        records: records + ("record" in change ? 1 : 0),
        removed: removed + ("removed" in change ? 1 : 0)
      }
      counts.set(change.resource, added)
    }
    notedAt ??= now
    if (now - notedAt < interval) return []
    notedAt = now
    const touched = new Set(changes.map(({ resource }) => resource))
    return [...counts].flatMap(([resource, count]) =>
      touched.has(resource) ? [{ event: "applied", resource, ...count }] : []
    )
  }

  const inStep = ({ lag, seconds }: InStep): ReadonlyArray<Line> => {
    const changed = [...counts].filter(([, { records, removed }]) => records + removed > 0)
    notedAt = undefined
    counts = new Map()
    if (changed.length === 0 && !isFirst) return []
    isFirst = false
    const records = Number.sumAll(changed.map(([, count]) => count.records))
    const removed = Number.sumAll(changed.map(([, count]) => count.removed))
    const lines = changed.map(([resource, count]): Line => ({ event: "in_step", resource, ...count, seconds, lag }))
    return [...lines, { event: "done", records, removed, seconds, lag }]
  }

  return (event: Event, now: number): ReadonlyArray<Line> => {
    if (event.event === "applied") return applied(event.changes, now)
    return event.event === "in_step" ? inStep(event) : [event]
  }
}

const number = new Intl.NumberFormat("en")

const textOf = ({ records, removed }: Changes) =>
  `${number.format(records)} record${records === 1 ? "" : "s"}${removed === 0 ? "" : `, ${number.format(removed)} removed`}`

/** The sentence of a line for a person. */
const sentenceOf = (line: Line): string => {
  if (line.event === "opened") return `${line.organization} at ${line.url}, to ${line.target}`
  if (line.event === "note") return line.message
  if (line.event !== "done") return `${line.resource}: ${textOf(line)}${line.event === "applied" ? " so far" : ""}`
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
