/** Tells a person what happens: bars where the terminal can move its cursor, and lines that stay. */
import { Clock, DateTime, Effect, Layer, Schedule } from "effect"
import { TerminalCapabilities } from "effect/cli"
import { type Event, Progress } from "./Progress.ts"
import * as Screen from "./Screen.ts"
import * as Tally from "./Tally.ts"

export interface Options {
  /** How many resources are kept in step. */
  readonly resources: number
}

const barWidth = 24

const number = new Intl.NumberFormat("en")
const seconds = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 })

const plural = (count: number, noun: string) => `${number.format(count)} ${noun}${count === 1 ? "" : "s"}`

const changesOf = ({ records, removed }: Pick<Tally.Count, "records" | "removed">) =>
  [plural(records, "record"), ...(removed === 0 ? [] : [`${number.format(removed)} removed`])].join(", ")

const width = (texts: ReadonlyArray<string>) => Math.max(0, ...texts.map(({ length }) => length))

const rateOf = (count: Tally.Count, now: number) => {
  const rate = (count.records + count.removed) / Math.max(0.1, Tally.secondsOf(count, now))
  return `${number.format(Math.round(rate))}/s`
}

/** A line for each resource that is read, and a bar of how many are in step. */
const barsOf = (counts: ReadonlyArray<Tally.Count>, resources: number, now: number) => {
  const active = counts.filter(({ until }) => until === undefined)
  const done = counts.length - active.length
  const names = width(active.map(({ resource }) => resource))
  const filled = Math.round((done / resources) * barWidth)
  const { records, removed, since } = Tally.totalOf(counts)
  return [
    ...active.map((count) => `${count.resource.padEnd(names)}  ${changesOf(count)}  ${rateOf(count, now)}`),
    `[${"#".repeat(filled)}${"-".repeat(barWidth - filled)}] ${done} of ${resources} in step  ${changesOf({ records, removed })}  ${seconds.format((now - since) / 1000)} s`
  ]
}

/** What a round has changed: a line for each resource, and their sum. */
const summaryOf = (counts: ReadonlyArray<Tally.Count>, now: number) => {
  const changed = counts.filter(({ records, removed }) => records + removed > 0)
  const { records, removed, since } = Tally.totalOf(counts)
  const rows = changed.map((count) => [
    count.resource,
    number.format(count.records),
    number.format(count.removed),
    seconds.format(Tally.secondsOf(count, now))
  ])
  const cells = [["resource", "records", "removed", "seconds"], ...rows]
  const widths = [0, 1, 2, 3].map((index) => width(cells.map((row) => row[index] ?? "")))
  const table = cells.map((row) =>
    row
      .map((cell, index) => (index === 0 ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0)))
      .join("  ")
  )
  const took = `${seconds.format((now - since) / 1000)} s`
  return changed.length === 0
    ? [`In step: nothing new, after ${took}.`]
    : [...table, `In step: ${changesOf({ records, removed })}, after ${took}.`]
}

const clockTime = (now: number) => DateTime.formatIso(DateTime.makeUnsafe(now)).slice(11, 19)

/** What a later round has changed, in one line. */
const newsOf = (counts: ReadonlyArray<Tally.Count>, now: number) => {
  const changed = counts.filter(({ records, removed }) => records + removed > 0)
  if (changed.length === 0) return []
  return [`${clockTime(now)}Z  ${changed.map((count) => `${count.resource}: ${changesOf(count)}`).join("; ")}`]
}

const green = (line: string) => `\u001b[32m${line}\u001b[39m`

const make = Effect.fnUntraced(function* ({ resources }: Options) {
  const { canAnimate, canColor } = yield* TerminalCapabilities.TerminalCapabilities
  const screen = yield* Screen.make
  const tally = Tally.make()
  let rounds = 0

  const paint = (line: string) => (canColor && line.startsWith("[") ? green(line) : line)
  const draw = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const counts = tally.counts()
    // Later rounds are over before anybody could read a bar.
    return counts.length === 0 || rounds > 0 ? Effect.void : screen.draw(barsOf(counts, resources, now), paint)
  })
  if (canAnimate) {
    yield* Effect.addFinalizer(() => screen.print([]))
    yield* Effect.forkScoped(Effect.repeat(draw, Schedule.spaced("100 millis")))
  }

  const linesOf = (event: Event, now: number): ReadonlyArray<string> => {
    if (event._tag === "Note") return [event.message]
    if (event._tag === "Opened") return [`${event.organization} at ${event.url}, to ${event.target}`]
    if (event._tag !== "RoundEnded") return []
    return rounds === 0 ? summaryOf(tally.counts(), now) : newsOf(tally.counts(), now)
  }

  return Progress.of({
    report: Effect.fnUntraced(function* (event) {
      const now = yield* Clock.currentTimeMillis
      const lines = linesOf(event, now)
      tally.add(event, now)
      if (event._tag === "RoundEnded") rounds += 1
      if (lines.length > 0) yield* screen.print(lines)
    })
  })
})

export const layer = (options: Options) => Layer.effect(Progress, make(options))
