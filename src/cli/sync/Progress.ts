/** Reports of a running sync: lines for a person, lines of JSON for a program, or warnings only. */
import { Effect } from "effect"
import { count, counted, iso } from "../../operations/Format.ts"
import { note, print } from "../../process/Printed.ts"
import * as Time from "../../process/Time.ts"
import type { Change } from "./Target.ts"

export type Event =
  | { readonly event: "opened"; readonly organization: string; readonly url: string; readonly target: string }
  | { readonly event: "note"; readonly message: string }
  | { readonly event: "applied"; readonly changes: ReadonlyArray<Change> }
  /** The copy has all changes that the service has shown, but for those of so many seconds behind an open transaction. */
  | { readonly event: "in_step"; readonly seconds: number; readonly lag: number }

export type Report = (event: Event) => Effect.Effect<void>

/** Milliseconds between two lines about progress. */
export const interval = 1000

/** A line of a report, as an object and as its sentence. */
export type Line = readonly [line: object, sentence: string]

/**
 * The reports by their names: for a person, for a program, or warnings only, on standard error.
 *
 * @param start begins a report: a function from an event, at a monotonic time, to its line, if it has one
 * @param warning the text of an event that is a warning
 */
export const reportsOf = <E>(
  start: () => (event: E, now: number) => Line | undefined,
  warning: (event: E) => string | undefined
) => {
  const reporter = (shown: (...found: [...Line, wall: number]) => string) => () => {
    const lineOf = start()
    return Effect.fnUntraced(function* (event: E) {
      const found = lineOf(event, yield* Time.monotonic)
      if (found !== undefined) yield* print(shown(...found, yield* Time.wall))
    })
  }
  return {
    text: reporter((_, sentence) => sentence),
    json: reporter((line, _, wall) => JSON.stringify({ at: iso(wall), ...line })),
    none: () => (event: E) => {
      const message = warning(event)
      return message === undefined ? Effect.void : note(message)
    }
  }
}

/** The lines of a sync. Those about pages count the changes since the copy was last in step. */
const lines = () => {
  let [records, removed, reset] = [0, 0, 0]
  let notedAt: number | undefined
  let isFirst = true
  const total = () =>
    [
      counted(records, "record"),
      ...(removed === 0 ? [] : [`${count(removed)} removed`]),
      ...(reset === 0 ? [] : [`${counted(reset, "resource")} reloaded`])
    ].join(", ")

  return (event: Event, now: number): Line | undefined => {
    switch (event.event) {
      case "opened":
        return [event, `${event.organization} at ${event.url}, to ${event.target}`]
      case "note":
        return [event, event.message]
      case "applied":
        records += event.changes.filter((change) => "record" in change).length
        removed += event.changes.filter((change) => "removed" in change).length
        reset += event.changes.filter((change) => "reset" in change).length
        notedAt ??= now
        if (now - notedAt < interval) return undefined
        notedAt = now
        return [{ event: "applied", records, removed, reset }, `${total()} so far`]
      case "in_step": {
        const { lag, seconds } = event
        const [line, hasNews] = [{ ...event, records, removed, reset }, records + removed + reset > 0]
        const news = `In step: ${hasNews ? total() : "nothing new"}, after ${seconds.toFixed(1)} s.`
        // Some transaction is always open on a busy server.
        const held = ` The last ${lag} s are delayed by an open transaction in the service's database.`
        const isShown = isFirst || hasNews
        records = removed = reset = 0
        notedAt = undefined
        isFirst = false
        return isShown ? [line, lag > 5 ? `${news}${held}` : news] : undefined
      }
    }
  }
}

export const reports = reportsOf(lines, (event) => (event.event === "note" ? event.message : undefined))
