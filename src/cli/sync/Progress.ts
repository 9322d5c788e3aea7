/** Reports of a running sync: lines for a person, lines of JSON for a program, or warnings only. */
import { Clock, DateTime, Effect } from "effect"
import { note, print } from "../../process/Printed.ts"
import type { Change } from "./Target.ts"

type Said =
  /** The target was opened, for the first time. */
  | { readonly event: "opened"; readonly organization: string; readonly url: string; readonly target: string }
  /** A sentence for the user. */
  | { readonly event: "note"; readonly message: string }

export type Event =
  | Said
  /** A round begins. */
  | { readonly event: "started" }
  /** A page was applied. */
  | { readonly event: "applied"; readonly changes: ReadonlyArray<Change> }
  /** The copy has all changes that the service has shown. */
  | { readonly event: "in_step"; readonly lag: number }

export type Report = (event: Event) => Effect.Effect<void>

interface Changes {
  readonly records: number
  readonly removed: number
}

type Line =
  | Said
  | (Changes & { readonly event: "applied"; readonly resource: string })
  | (Changes & { readonly event: "in_step"; resource: string; seconds: number; lag: number })
  | (Changes & { readonly event: "done"; readonly seconds: number })

/** Milliseconds between two lines about pages of a resource. */
const interval = 1000

/** The lines of events, from counts of the changes of resources since the copy was last in step. */
const makeLines = (resources: ReadonlyArray<string>) => {
  let counts = new Map<string, { records: number; removed: number; notedAt: number }>()
  let since: number | undefined
  let isFirst = true

  const started = (now: number): ReadonlyArray<Line> => {
    if (since !== undefined) return []
    since = now
    counts = new Map(resources.map((resource) => [resource, { records: 0, removed: 0, notedAt: now }]))
    return []
  }

  const applied = (changes: ReadonlyArray<Change>, now: number): ReadonlyArray<Line> => {
    for (const change of changes) {
      const count = counts.get(change.resource)
      if (count !== undefined && "record" in change) count.records += 1
      if (count !== undefined && "removed" in change) count.removed += 1
    }
    return [...new Set(changes.map(({ resource }) => resource))].flatMap((resource) => {
      const count = counts.get(resource)
      if (count === undefined || now - count.notedAt < interval) return []
      count.notedAt = now
      return [{ event: "applied", resource, records: count.records, removed: count.removed }]
    })
  }

  const inStep = (lag: number, now: number): ReadonlyArray<Line> => {
    const seconds = (now - (since ?? now)) / 1000
    const total = { records: 0, removed: 0 }
    const lines = [...counts].flatMap(([resource, { records, removed }]): ReadonlyArray<Line> => {
      total.records += records
      total.removed += removed
      const isShown = isFirst || records + removed > 0
      return isShown ? [{ event: "in_step", resource, records, removed, seconds, lag }] : []
    })
    since = undefined
    isFirst = false
    return lines.length === 0 ? [] : [...lines, { event: "done", ...total, seconds }]
  }

  return (event: Event, now: number): ReadonlyArray<Line> => {
    switch (event.event) {
      case "started":
        return started(now)
      case "applied":
        return applied(event.changes, now)
      case "in_step":
        return inStep(event.lag, now)
      default:
        return [event]
    }
  }
}

const number = new Intl.NumberFormat("en")

const textOf = ({ records, removed }: Changes) =>
  `${number.format(records)} record${records === 1 ? "" : "s"}${removed === 0 ? "" : `, ${number.format(removed)} removed`}`

/** A line for a person; none for a resource without changes. */
const sentenceOf = (line: Line): ReadonlyArray<string> => {
  if (line.event === "opened") return [`${line.organization} at ${line.url}, to ${line.target}`]
  if (line.event === "note") return [line.message]
  const isNew = line.records + line.removed > 0
  if (line.event === "done") {
    return [`In step: ${isNew ? textOf(line) : "nothing new"}, after ${line.seconds.toFixed(1)} s.`]
  }
  return isNew ? [`${line.resource}: ${textOf(line)}${line.event === "applied" ? " so far" : ""}`] : []
}

const reporter =
  (textsOf: (line: Line, now: number) => ReadonlyArray<string>) =>
  (resources: ReadonlyArray<string>): Report => {
    const linesOf = makeLines(resources)
    return (event) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const texts = linesOf(event, now).flatMap((line) => textsOf(line, now))
        return texts.length === 0 ? Effect.void : print(texts)
      })
  }

/** For a person. */
export const text = reporter(sentenceOf)

/** For a program. */
export const json = reporter((line, now) => [
  JSON.stringify({ at: DateTime.formatIso(DateTime.makeUnsafe(now)), ...line })
])

/** Warnings only, on standard error. */
export const quiet = (): Report => (event) => (event.event === "note" ? note(event.message) : Effect.void)
