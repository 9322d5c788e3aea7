/** Reports of a running sync: bars and lines for a person, lines of JSON for a program, or warnings only. */
import { Clock, Data, DateTime, Effect, Schedule, Terminal } from "effect"
import { TerminalCapabilities } from "effect/cli"
import { note, print, printable } from "../../process/Printed.ts"

export type Event = Data.TaggedEnum<{
  /** The target was opened, for the first time. */
  Opened: { readonly organization: string; readonly url: string; readonly target: string }
  /** A resource is being read. */
  Started: { readonly resource: string }
  /** A page was applied. */
  Applied: { readonly resource: string; readonly records: number; readonly removed: number }
  /** The copy of a resource has all changes that the service has shown. */
  InStep: { readonly resource: string; readonly lag: number }
  /** All resources are in step. */
  RoundEnded: {}
  /** A sentence for the user. */
  Note: { readonly message: string }
}>
export const Event = Data.taggedEnum<Event>()

export type Report = (event: Event) => Effect.Effect<void>

interface Changes {
  records: number
  removed: number
  /** The start of the reading, in milliseconds. */
  since: number
}

/** The changes of a resource that were applied since all resources were last in step. */
interface Count extends Changes {
  readonly resource: string
  /** The time at which it was in step, in milliseconds. */
  until: number | undefined
  /** The last JSON line about its pages, and the changes in the last one that it was in step. */
  notedAt: number
  noted: number
}

/** The time from one end of a round to the next. */
interface Round {
  readonly isFirst: boolean
  readonly counts: Map<string, Count>
}

const changesOf = ({ records, removed }: Changes) => records + removed

const secondsOf = ({ since, until }: Changes & { readonly until?: number | undefined }, now: number) =>
  ((until ?? now) - since) / 1000

const totalOf = (counts: ReadonlyArray<Count>): Changes => ({
  records: counts.reduce((sum, { records }) => sum + records, 0),
  removed: counts.reduce((sum, { removed }) => sum + removed, 0),
  since: Math.min(...counts.map(({ since }) => since))
})

/** Adds an event to the count of the resource that it is about. */
const add = ({ counts, isFirst }: Round, event: Event, now: number) => {
  if (!("resource" in event)) return
  const { resource } = event
  const start = {
    resource,
    records: 0,
    removed: 0,
    since: now,
    until: undefined,
    notedAt: now,
    noted: isFirst ? -1 : 0
  }
  const count: Count = counts.get(resource) ?? start
  counts.set(resource, count)
  count.until = event._tag === "InStep" ? now : undefined
  if (event._tag !== "Applied") return
  count.records += event.records
  count.removed += event.removed
}

/** Reports the lines of events. */
const reporter = (
  linesOf: (event: Event, round: Round, now: number) => ReadonlyArray<string>,
  write: (lines: ReadonlyArray<string>) => Effect.Effect<void>
) => {
  let round: Round = { isFirst: true, counts: new Map() }
  const report: Report = (event) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      add(round, event, now)
      const lines = linesOf(event, round, now)
      if (event._tag === "RoundEnded") round = { isFirst: false, counts: new Map() }
      return lines.length === 0 ? Effect.void : write(lines)
    })
  return { report, round: () => round }
}

/** Milliseconds between two JSON lines about pages of a resource. */
const interval = 1000

/** The JSON of an event that matters. */
const jsonOf = (event: Event, { counts, isFirst }: Round, now: number): object | undefined => {
  if (event._tag === "Opened" || event._tag === "Note") {
    const { _tag, ...fields } = event
    return { event: _tag.toLowerCase(), ...fields }
  }
  if (event._tag === "RoundEnded") {
    const total = totalOf([...counts.values()])
    const { records, removed } = total
    return isFirst || changesOf(total) > 0
      ? { event: "done", records, removed, seconds: secondsOf(total, now) }
      : undefined
  }
  const count = counts.get(event.resource)
  if (count === undefined || event._tag === "Started") return undefined
  const { notedAt, records, removed, resource } = count
  if (event._tag === "Applied") {
    if (now - notedAt < interval) return undefined
    count.notedAt = now
    return { event: "applied", resource, records, removed }
  }
  if (changesOf(count) === count.noted) return undefined
  count.noted = changesOf(count)
  return { event: "in_step", resource, records, removed, seconds: secondsOf(count, now), lag: event.lag }
}

const number = new Intl.NumberFormat("en")
const decimal = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 })

const textOf = ({ records, removed }: Changes) =>
  `${number.format(records)} record${records === 1 ? "" : "s"}${removed === 0 ? "" : `, ${number.format(removed)} removed`}`

const width = (texts: ReadonlyArray<string>) => Math.max(0, ...texts.map(({ length }) => length))

const barWidth = 24

/** A line for each resource that is read, and a bar of how many are in step. */
const barsOf = (counts: ReadonlyArray<Count>, resources: number, now: number) => {
  const active = counts.filter(({ until }) => until === undefined)
  const done = counts.length - active.length
  const names = width(active.map(({ resource }) => resource))
  const filled = Math.round((done / resources) * barWidth)
  const total = totalOf(counts)
  return [
    ...active.map((count) => {
      const rate = changesOf(count) / Math.max(0.1, secondsOf(count, now))
      return `${count.resource.padEnd(names)}  ${textOf(count)}  ${number.format(Math.round(rate))}/s`
    }),
    `[${"#".repeat(filled).padEnd(barWidth, "-")}] ${done} of ${resources} in step  ${textOf(total)}  ${decimal.format(secondsOf(total, now))} s`
  ]
}

/** The changes of the first round: a line for each resource, and their sum. */
const summaryOf = (counts: ReadonlyArray<Count>, changed: ReadonlyArray<Count>, now: number) => {
  const total = totalOf(counts)
  const took = `${decimal.format(secondsOf(total, now))} s`
  if (changed.length === 0) return [`In step: nothing new, after ${took}.`]
  const rows = [
    ["resource", "records", "removed", "seconds"],
    ...changed.map((count) => [
      count.resource,
      number.format(count.records),
      number.format(count.removed),
      decimal.format(secondsOf(count, now))
    ])
  ]
  const widths = [0, 1, 2, 3].map((column) => width(rows.map((row) => row[column] ?? "")))
  const [names = 0] = widths
  const table = rows.map(([name = "", ...cells]) =>
    [name.padEnd(names), ...cells.map((cell, index) => cell.padStart(widths[index + 1] ?? 0))].join("  ")
  )
  return [...table, `In step: ${textOf(total)}, after ${took}.`]
}

/** The lines of an event that stay. */
const textsOf = (event: Event, round: Round, now: number) => {
  if (event._tag === "Note") return [event.message]
  if (event._tag === "Opened") return [`${event.organization} at ${event.url}, to ${event.target}`]
  if (event._tag !== "RoundEnded") return []
  const counts = [...round.counts.values()]
  const changed = counts.filter((count) => changesOf(count) > 0)
  if (round.isFirst) return summaryOf(counts, changed, now)
  const time = DateTime.formatIso(DateTime.makeUnsafe(now)).slice(11, 19)
  const news = changed.map((count) => `${count.resource}: ${textOf(count)}`)
  return news.length === 0 ? [] : [`${time}Z  ${news.join("; ")}`]
}

const escape = "\u001b["

/**
 * A terminal with a block of lines at its end that is drawn again and again. Returns the function that erases the block,
 * prints lines that stay, and draws the next block: cut to the terminal's width and height.
 */
const makeScreen = Effect.map(Terminal.Terminal, ({ columns, display, rows }) => {
  let drawn: ReadonlyArray<string> = []
  return (stay: ReadonlyArray<string>, block: ReadonlyArray<string> = [], paint = (line: string) => line) =>
    Effect.flatMap(Effect.all([columns, rows]), ([wide, high]) => {
      const size = wide > 0 ? wide : 80
      // A block takes more rows once the terminal is narrower.
      const taken = drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / size)), 0)
      drawn = block.slice(1 - (high > 0 ? high : 24)).map((line) => printable(line).slice(0, size - 1))
      const text = [...stay.map(printable), ...drawn.map(paint)].map((line) => `${line}\n`).join("")
      return Effect.ignore(display(`${taken === 0 ? "" : `${escape}${taken}A\r${escape}J`}${text}`))
    })
})

/** For a person: bars if the terminal can move its cursor, and lines that stay. */
export const text = Effect.fnUntraced(function* (resources: number) {
  const { canAnimate, canColor } = yield* TerminalCapabilities.TerminalCapabilities
  const show = yield* makeScreen
  const { report, round } = reporter(textsOf, (lines) => show(lines))
  if (!canAnimate) return report
  const paint = (line: string) => (canColor && line.startsWith("[") ? `${escape}32m${line}${escape}39m` : line)
  const draw = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const { counts, isFirst } = round()
    // Later rounds end before a bar could be read.
    return isFirst && counts.size > 0 ? show([], barsOf([...counts.values()], resources, now), paint) : Effect.void
  })
  yield* Effect.addFinalizer(() => show([]))
  yield* Effect.forkScoped(Effect.repeat(draw, Schedule.spaced("100 millis")))
  return report
})

/** For a program. */
export const json = Effect.sync(() => {
  const linesOf = (event: Event, round: Round, now: number) => {
    const line = jsonOf(event, round, now)
    return line === undefined ? [] : [JSON.stringify({ at: DateTime.formatIso(DateTime.makeUnsafe(now)), ...line })]
  }
  return reporter(linesOf, print).report
})

/** Warnings only, on standard error. */
export const quiet: Report = (event) => (event._tag === "Note" ? note(event.message) : Effect.void)
