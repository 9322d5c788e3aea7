/** Reports of a running sync: bars and lines for a person, lines of JSON for a program, or warnings only. */
import { Clock, Context, Data, DateTime, Effect, Layer, Schedule, Terminal } from "effect"
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

/** The changes of a resource that were applied since all resources were last in step. Times are milliseconds. */
interface Count {
  readonly resource: string
  records: number
  removed: number
  /** The start of its reading, and the time at which it was in step. */
  readonly since: number
  until: number | undefined
  /** The last JSON line about its pages, and the changes in the last one that it was in step. */
  notedAt: number
  noted: number
}

type Changes = Pick<Count, "records" | "removed">

const changesOf = ({ records, removed }: Changes) => records + removed
const secondsOf = ({ since, until }: { readonly since: number; readonly until?: number | undefined }, now: number) =>
  ((until ?? now) - since) / 1000

const totalOf = (counts: Iterable<Count>) => {
  const total = { records: 0, removed: 0, since: Infinity }
  for (const { records, removed, since } of counts) {
    total.records += records
    total.removed += removed
    total.since = Math.min(total.since, since)
  }
  return total
}

/** Counts events since the last round. */
const makeTally = () => {
  const counts = new Map<string, Count>()
  const tally = {
    counts,
    /** The rounds that ended. */
    rounds: 0,
    /** The count of the resource that an event is about. */
    add: (event: Event, now: number): Count | undefined => {
      if (!("resource" in event)) return undefined
      const { resource } = event
      const noted = tally.rounds > 0 ? 0 : -1
      const start = { resource, records: 0, removed: 0, since: now, until: undefined, notedAt: now, noted }
      const count = counts.get(resource) ?? start
      counts.set(resource, count)
      if (event._tag === "Applied") {
        count.records += event.records
        count.removed += event.removed
      } else count.until = event._tag === "InStep" ? now : undefined
      return count
    },
    endRound: () => {
      counts.clear()
      tally.rounds += 1
    }
  }
  return tally
}

type Report = (event: Event) => Effect.Effect<void>

/** Milliseconds between two JSON lines about pages of a resource. */
const interval = 1000

/** Prints a line of JSON for each event that matters. */
const jsonReport = (): Report => {
  const tally = makeTally()

  const lineOf = (event: Event, now: number): object | undefined => {
    const count = tally.add(event, now)
    if (event._tag === "Opened") {
      const { organization, target, url } = event
      return { event: "opened", organization, url, target }
    }
    if (event._tag === "Note") return { event: "note", message: event.message }
    if (event._tag === "RoundEnded") {
      const { since, ...total } = totalOf(tally.counts.values())
      const isNews = tally.rounds === 0 || changesOf(total) > 0
      tally.endRound()
      return isNews ? { event: "done", ...total, seconds: secondsOf({ since }, now) } : undefined
    }
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

  return (event) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const line = lineOf(event, now)
      const at = DateTime.formatIso(DateTime.makeUnsafe(now))
      return line === undefined ? Effect.void : print(JSON.stringify({ at, ...line }))
    })
}

const number = new Intl.NumberFormat("en")
const decimal = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 })

const textOf = ({ records, removed }: Changes) =>
  `${number.format(records)} record${records === 1 ? "" : "s"}${removed === 0 ? "" : `, ${number.format(removed)} removed`}`

const secondsText = (count: Parameters<typeof secondsOf>[0], now: number) => decimal.format(secondsOf(count, now))

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
    `[${"#".repeat(filled).padEnd(barWidth, "-")}] ${done} of ${resources} in step  ${textOf(total)}  ${secondsText(total, now)} s`
  ]
}

/** The changes of the first round: a line for each resource, and their sum. */
const summaryOf = (counts: ReadonlyArray<Count>, now: number) => {
  const changed = counts.filter((count) => changesOf(count) > 0)
  const total = totalOf(counts)
  const took = `${secondsText(total, now)} s`
  if (changed.length === 0) return [`In step: nothing new, after ${took}.`]
  const rows = changed.map((count) => [
    count.resource,
    number.format(count.records),
    number.format(count.removed),
    secondsText(count, now)
  ])
  const columns = ["resource", "records", "removed", "seconds"].map((title, index) => {
    const cells = [title, ...rows.map((row) => row[index] ?? "")]
    const size = width(cells)
    return cells.map((cell) => (index === 0 ? cell.padEnd(size) : cell.padStart(size)))
  })
  const table = [undefined, ...rows].map((_, row) => columns.map((column) => column[row]).join("  "))
  return [...table, `In step: ${textOf(total)}, after ${took}.`]
}

/** The changes of a later round, in one line. */
const newsOf = (counts: ReadonlyArray<Count>, now: number) => {
  const changed = counts.filter((count) => changesOf(count) > 0)
  const time = DateTime.formatIso(DateTime.makeUnsafe(now)).slice(11, 19)
  const texts = changed.map((count) => `${count.resource}: ${textOf(count)}`)
  return texts.length === 0 ? [] : [`${time}Z  ${texts.join("; ")}`]
}

const escape = "\u001b["
const green = (line: string) => `${escape}32m${line}${escape}39m`

/** A block of lines at the end of a terminal that is drawn again and again, below lines that stay. */
const makeScreen = Effect.map(Terminal.Terminal, ({ columns, display, rows }) => {
  let drawn: ReadonlyArray<string> = []
  /** Erases the block, which takes more rows once the terminal is narrower, and writes other lines. */
  const write = (lines: (columns: number, rows: number) => string) =>
    Effect.flatMap(Effect.all([columns, rows]), ([wide, high]) => {
      const size = wide > 0 ? wide : 80
      const taken = drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / size)), 0)
      drawn = []
      const text = lines(size, high > 0 ? high : 24)
      return Effect.ignore(display(`${taken === 0 ? "" : `${escape}${taken}A\r${escape}J`}${text}`))
    })
  return {
    /** Draws the block. Lines are cut to the terminal's width, and those that do not fit are left out. */
    draw: (lines: ReadonlyArray<string>, paint: (line: string) => string) =>
      write((wide, high) => {
        drawn = lines.slice(-(high - 1)).map((line) => printable(line).slice(0, wide - 1))
        return drawn.map((line) => `${paint(line)}\n`).join("")
      }),
    /** Prints lines that stay, above the block, which is gone until it is drawn again. */
    print: (lines: ReadonlyArray<string>) => write(() => lines.map((line) => `${printable(line)}\n`).join(""))
  }
})

/** Draws bars if the terminal can move its cursor, and prints lines that stay. */
const textReport = Effect.fnUntraced(function* (resources: number) {
  const { canAnimate, canColor } = yield* TerminalCapabilities.TerminalCapabilities
  const screen = yield* makeScreen
  const tally = makeTally()
  const paint = (line: string) => (canColor && line.startsWith("[") ? green(line) : line)
  const draw = Effect.flatMap(Clock.currentTimeMillis, (now) =>
    // Later rounds end before a bar could be read.
    tally.counts.size === 0 || tally.rounds > 0
      ? Effect.void
      : screen.draw(barsOf([...tally.counts.values()], resources, now), paint)
  )
  if (canAnimate) {
    yield* Effect.addFinalizer(() => screen.print([]))
    yield* Effect.forkScoped(Effect.repeat(draw, Schedule.spaced("100 millis")))
  }

  const linesOf = (event: Event, now: number): ReadonlyArray<string> => {
    tally.add(event, now)
    if (event._tag === "Note") return [event.message]
    if (event._tag === "Opened") return [`${event.organization} at ${event.url}, to ${event.target}`]
    if (event._tag !== "RoundEnded") return []
    const lines = (tally.rounds === 0 ? summaryOf : newsOf)([...tally.counts.values()], now)
    tally.endRound()
    return lines
  }
  const report: Report = (event) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const lines = linesOf(event, now)
      return lines.length === 0 ? Effect.void : screen.print(lines)
    })
  return { report }
})

export class Progress extends Context.Service<Progress, { readonly report: Report }>()(
  "practice-data/cli/sync/Progress"
) {
  /** For a person. */
  static readonly layerText = (resources: number) => Layer.effect(Progress, textReport(resources))

  /** For a program. */
  static readonly layerJson = Layer.sync(Progress, () => ({ report: jsonReport() }))

  /** Warnings only, on standard error. */
  static readonly layerQuiet = Layer.succeed(Progress, {
    report: (event) => (event._tag === "Note" ? note(event.message) : Effect.void)
  })
}
