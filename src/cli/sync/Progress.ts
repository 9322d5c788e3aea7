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

/** The changes of a resource that were applied since all resources were last in step. */
interface Count {
  readonly resource: string
  records: number
  removed: number
  /** Milliseconds: when its reading began, and when it was in step. */
  readonly since: number
  until: number | undefined
}

const changesOf = ({ records, removed }: Pick<Count, "records" | "removed">) => records + removed
const secondsOf = ({ since, until }: Pick<Count, "since" | "until">, now: number) => ((until ?? now) - since) / 1000

type Report = (event: Event) => Effect.Effect<void>

/** The state that a format makes its lines of. The event has been counted, and a round that ended is still there. */
interface Tally {
  readonly counts: Map<string, Count>
  /** Rounds that ended before. */
  rounds: number
}

const makeTally = (): Tally => ({ counts: new Map(), rounds: 0 })

const totalOf = ({ counts }: Tally) => {
  const total = { records: 0, removed: 0, since: Infinity, until: undefined }
  for (const { records, removed, since } of counts.values()) {
    total.records += records
    total.removed += removed
    total.since = Math.min(total.since, since)
  }
  return total
}

/** Counts events, and prints the lines that a format makes of them. */
const reporting =
  <Line>(
    tally: Tally,
    linesOf: (event: Event, now: number) => ReadonlyArray<Line>,
    write: (lines: ReadonlyArray<Line>, now: number) => Effect.Effect<void>
  ): Report =>
  (event) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if ("resource" in event) {
        const { resource } = event
        const count = tally.counts.get(resource) ?? { resource, records: 0, removed: 0, since: now, until: undefined }
        tally.counts.set(resource, count)
        if (event._tag === "Applied") {
          count.records += event.records
          count.removed += event.removed
        } else count.until = event._tag === "InStep" ? now : undefined
      }
      const lines = linesOf(event, now)
      if (event._tag === "RoundEnded") {
        tally.counts.clear()
        tally.rounds += 1
      }
      return lines.length === 0 ? Effect.void : write(lines, now)
    })

/** Milliseconds between two JSON lines about pages of a resource. */
const interval = 1000

/** A line of JSON for each event that matters. */
const jsonReport = (): Report => {
  const tally = makeTally()
  /** The time of the last line about pages of a resource, and its changes when it was last in step. */
  const shownAt = new Map<string, number>()
  const inStep = new Map<string, number>()

  const linesOf = (event: Event, now: number): ReadonlyArray<object> => {
    switch (event._tag) {
      case "Opened": {
        const { organization, target, url } = event
        return [{ event: "opened", organization, url, target }]
      }
      case "Note":
        return [{ event: "note", message: event.message }]
      case "RoundEnded": {
        inStep.clear()
        const total = totalOf(tally)
        if (tally.rounds > 0 && changesOf(total) === 0) return []
        return [{ event: "done", records: total.records, removed: total.removed, seconds: secondsOf(total, now) }]
      }
      default: {
        const { resource } = event
        const count = tally.counts.get(resource)
        if (event._tag === "Started") shownAt.set(resource, now)
        if (count === undefined || event._tag === "Started") return []
        const { records, removed } = count
        if (event._tag === "Applied") {
          if (now - (shownAt.get(resource) ?? now) < interval) return []
          shownAt.set(resource, now)
          return [{ event: "applied", resource, records, removed }]
        }
        if (changesOf(count) === (inStep.get(resource) ?? (tally.rounds > 0 ? 0 : undefined))) return []
        inStep.set(resource, changesOf(count))
        return [{ event: "in_step", resource, records, removed, seconds: secondsOf(count, now), lag: event.lag }]
      }
    }
  }

  return reporting(tally, linesOf, (lines, now) => {
    const at = DateTime.formatIso(DateTime.makeUnsafe(now))
    return Effect.forEach(lines, (line) => print(JSON.stringify({ at, ...line })), { discard: true })
  })
}

const number = new Intl.NumberFormat("en")
const decimal = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 })

const textOf = ({ records, removed }: Pick<Count, "records" | "removed">) =>
  `${number.format(records)} record${records === 1 ? "" : "s"}${removed === 0 ? "" : `, ${number.format(removed)} removed`}`

const width = (texts: ReadonlyArray<string>) => Math.max(0, ...texts.map(({ length }) => length))

const barWidth = 24

/** A line for each resource that is read, and a bar of how many are in step. */
const barsOf = (tally: Tally, resources: number, now: number) => {
  const active = [...tally.counts.values()].filter(({ until }) => until === undefined)
  const done = tally.counts.size - active.length
  const names = width(active.map(({ resource }) => resource))
  const filled = Math.round((done / resources) * barWidth)
  const total = totalOf(tally)
  const bar = `[${"#".repeat(filled)}${"-".repeat(barWidth - filled)}]`
  return [
    ...active.map((count) => {
      const rate = changesOf(count) / Math.max(0.1, secondsOf(count, now))
      return `${count.resource.padEnd(names)}  ${textOf(count)}  ${number.format(Math.round(rate))}/s`
    }),
    `${bar} ${done} of ${resources} in step  ${textOf(total)}  ${decimal.format(secondsOf(total, now))} s`
  ]
}

/** The changes of the first round: a line for each resource, and their sum. */
const summaryOf = (changed: ReadonlyArray<Count>, tally: Tally, now: number) => {
  const total = totalOf(tally)
  const took = `${decimal.format(secondsOf(total, now))} s`
  if (changed.length === 0) return [`In step: nothing new, after ${took}.`]
  const cells = [
    ["resource", "records", "removed", "seconds"],
    ...changed.map((count) => [
      count.resource,
      number.format(count.records),
      number.format(count.removed),
      decimal.format(secondsOf(count, now))
    ])
  ]
  const widths = [0, 1, 2, 3].map((index) => width(cells.map((row) => row[index] ?? "")))
  const padded = (cell: string, index: number) => {
    const size = widths[index] ?? 0
    return index === 0 ? cell.padEnd(size) : cell.padStart(size)
  }
  return [...cells.map((row) => row.map(padded).join("  ")), `In step: ${textOf(total)}, after ${took}.`]
}

/** The changes of a later round, in one line. */
const newsOf = (changed: ReadonlyArray<Count>, now: number) => {
  const time = DateTime.formatIso(DateTime.makeUnsafe(now)).slice(11, 19)
  return changed.length === 0
    ? []
    : [`${time}Z  ${changed.map((count) => `${count.resource}: ${textOf(count)}`).join("; ")}`]
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

/** Bars where the terminal can move its cursor, and lines that stay. */
const textReport = Effect.fnUntraced(function* (resources: number) {
  const { canAnimate, canColor } = yield* TerminalCapabilities.TerminalCapabilities
  const screen = yield* makeScreen
  const tally = makeTally()
  const paint = (line: string) => (canColor && line.startsWith("[") ? green(line) : line)
  const draw = Effect.flatMap(Clock.currentTimeMillis, (now) =>
    // Later rounds end before a bar could be read.
    tally.counts.size === 0 || tally.rounds > 0 ? Effect.void : screen.draw(barsOf(tally, resources, now), paint)
  )
  if (canAnimate) {
    yield* Effect.addFinalizer(() => screen.print([]))
    yield* Effect.forkScoped(Effect.repeat(draw, Schedule.spaced("100 millis")))
  }

  const linesOf = (event: Event, now: number): ReadonlyArray<string> => {
    if (event._tag === "Note") return [event.message]
    if (event._tag === "Opened") return [`${event.organization} at ${event.url}, to ${event.target}`]
    if (event._tag !== "RoundEnded") return []
    const changed = [...tally.counts.values()].filter((count) => changesOf(count) > 0)
    return tally.rounds === 0 ? summaryOf(changed, tally, now) : newsOf(changed, now)
  }
  return reporting(tally, linesOf, screen.print)
})

export class Progress extends Context.Service<Progress, { readonly report: Report }>()(
  "practice-data/cli/sync/Progress"
) {
  /** For a person. */
  static readonly layerText = (resources: number) =>
    Layer.effect(
      Progress,
      Effect.map(textReport(resources), (report) => ({ report }))
    )

  /** For a program. */
  static readonly layerJson = Layer.sync(Progress, () => ({ report: jsonReport() }))

  /** Warnings only, on standard error. */
  static readonly layerQuiet = Layer.succeed(Progress, {
    report: (event) => (event._tag === "Note" ? note(event.message) : Effect.void)
  })
}
