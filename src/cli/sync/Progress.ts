/** Reports of a running sync: lines for a person, lines of JSON for a program, or warnings only. */
import { Clock, Effect } from "effect"
import { count, counted, iso } from "../../operations/Format.ts"
import { note, print } from "../../process/Printed.ts"
import type { Change } from "./Target.ts"

export type Event =
  /** The target was opened, for the first time. */
  | { readonly event: "opened"; readonly organization: string; readonly url: string; readonly target: string }
  /** A sentence for the user. */
  | { readonly event: "note"; readonly message: string }
  /** A page was applied. */
  | { readonly event: "applied"; readonly changes: ReadonlyArray<Change> }
  /** The copy has all changes that the service has shown, but for those of so many seconds behind an open transaction. */
  | { readonly event: "in_step"; readonly seconds: number; readonly lag: number }

export type Report = (event: Event) => Effect.Effect<void>

/** Milliseconds between two lines about pages. */
const interval = 1000

/** Reports by lines, each an object and its sentence. Those about pages count the changes since the copy was last in step. */
const reporter = (shown: (line: object, sentence: string, now: number) => string) => (): Report => {
  let [records, removed, reset] = [0, 0, 0]
  let notedAt: number | undefined
  let isFirst = true
  const total = () =>
    [
      counted(records, "record"),
      ...(removed === 0 ? [] : [`${count(removed)} removed`]),
      ...(reset === 0 ? [] : [`${counted(reset, "resource")} read again`])
    ].join(", ")

  const lineOf = (event: Event, now: number): readonly [line: object, sentence: string] | undefined => {
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
        const held = ` The last ${lag} s are held back by a transaction that is open in the service's database.`
        const isShown = isFirst || hasNews
        records = removed = reset = 0
        notedAt = undefined
        isFirst = false
        return isShown ? [line, lag > 5 ? `${news}${held}` : news] : undefined
      }
    }
  }

  return (event) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const found = lineOf(event, now)
      return found === undefined ? Effect.void : print(shown(...found, now))
    })
}

/** The reports by their names: for a person, for a program, or warnings only, on standard error. */
export const reports = {
  text: reporter((_, sentence) => sentence),
  json: reporter((line, _, now) => JSON.stringify({ at: iso(now), ...line })),
  none: (): Report => (event) => (event.event === "note" ? note(event.message) : Effect.void)
}
