/** Reports of a running sync: lines for a person, lines of JSON for a program, or warnings only. */
import { Clock, Data, DateTime, Effect } from "effect"
import { note, print } from "../../process/Printed.ts"
import type { Change } from "./Target.ts"

export type Event = Data.TaggedEnum<{
  /** The target was opened, for the first time. */
  Opened: { readonly organization: string; readonly url: string; readonly target: string }
  /** A round begins. */
  Started: {}
  /** A page was applied. */
  Applied: { readonly changes: ReadonlyArray<Change> }
  /** The copy has all changes that the service has shown. */
  InStep: { readonly lag: number }
  /** A sentence for the user. */
  Note: { readonly message: string }
}>
export const Event = Data.taggedEnum<Event>()

export type Report = (event: Event) => Effect.Effect<void>

interface Changes {
  records: number
  removed: number
}

/** The changes of a resource in a round. */
interface Count extends Changes {
  readonly resource: string
  /** The time of the last line about them, in milliseconds. */
  notedAt: number
}

/** A line of a report, as a program reads it. */
type Line =
  | { readonly event: "opened"; readonly organization: string; readonly url: string; readonly target: string }
  | { readonly event: "note"; readonly message: string }
  | (Readonly<Changes> & { readonly event: "applied"; readonly resource: string })
  | (Readonly<Changes> & { readonly event: "in_step"; resource: string; seconds: number; lag: number })
  | (Readonly<Changes> & { readonly event: "done"; readonly seconds: number })

/** Milliseconds between two lines about pages of a resource. */
const interval = 1000

/** The lines of events, from counts of the changes of resources since the copy was last in step. */
const makeLines = (resources: ReadonlyArray<string>) => {
  let counts = new Map<string, Count>()
  let since: number | undefined
  let isFirst = true

  const applied = (changes: ReadonlyArray<Change>, now: number): ReadonlyArray<Line> => {
    const changed = new Set<Count>()
    for (const change of changes) {
      const count = counts.get(change.resource)
      if (count === undefined) continue
      changed.add(count)
      if ("record" in change) count.records += 1
      if ("removed" in change) count.removed += 1
    }
    const due = [...changed].filter(({ notedAt }) => now - notedAt >= interval)
    return due.map((count) => {
      count.notedAt = now
      return { event: "applied", resource: count.resource, records: count.records, removed: count.removed }
    })
  }

  const ended = (lag: number, now: number): ReadonlyArray<Line> => {
    const shown = [...counts.values()].filter(({ records, removed }) => isFirst || records + removed > 0)
    const seconds = (now - (since ?? now)) / 1000
    const total = { records: 0, removed: 0 }
    const lines = shown.map(({ records, removed, resource }): Line => {
      total.records += records
      total.removed += removed
      return { event: "in_step", resource, records, removed, seconds, lag }
    })
    since = undefined
    isFirst = false
    return shown.length === 0 ? [] : [...lines, { event: "done", ...total, seconds }]
  }

  return (event: Event, now: number): ReadonlyArray<Line> => {
    switch (event._tag) {
      case "Opened":
        return [{ event: "opened", organization: event.organization, url: event.url, target: event.target }]
      case "Note":
        return [{ event: "note", message: event.message }]
      case "Applied":
        return applied(event.changes, now)
      case "InStep":
        return ended(event.lag, now)
      case "Started":
        if (since !== undefined) return []
        since = now
        counts = new Map(
          resources.map((resource) => [resource, { resource, records: 0, removed: 0, notedAt: now }] as const)
        )
        return []
    }
  }
}

const number = new Intl.NumberFormat("en")

const textOf = ({ records, removed }: Readonly<Changes>) =>
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
export const quiet: Report = (event) => (event._tag === "Note" ? note(event.message) : Effect.void)
