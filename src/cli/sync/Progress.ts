/** The reports of a running sync about its pages. */
import { Effect } from "effect"
import { count, counted } from "../../operations/Format.ts"
import { everySecond, type Report } from "../Progress.ts"
import type { Change } from "./Target.ts"

/** Counts the changes since the copy was last in step. */
export const make = (report: Report) => {
  const none = { records: 0, removed: 0, reset: 0 }
  let counts = none
  let limited = everySecond()
  let isFirst = true
  const total = () =>
    [
      counted(counts.records, "record"),
      ...(counts.removed === 0 ? [] : [`${count(counts.removed)} removed`]),
      ...(counts.reset === 0 ? [] : [`${counted(counts.reset, "resource")} reloaded`])
    ].join(", ")
  return {
    applied: (changes: ReadonlyArray<Change>) => {
      const countOf = (kind: "record" | "removed" | "reset") => changes.filter((change) => kind in change).length
      counts = {
        records: counts.records + countOf("record"),
        removed: counts.removed + countOf("removed"),
        reset: counts.reset + countOf("reset")
      }
      return limited(report({ event: "applied", ...counts }, `${total()} so far`))
    },
    /** The copy has every change that the service has shown, except those of `lag` seconds behind an open transaction. */
    inStep: (seconds: number, lag: number) => {
      const hasNews = Object.values(counts).some((value) => value > 0)
      const news = `In step: ${hasNews ? total() : "nothing new"}, after ${seconds.toFixed(1)} s.`
      // Some transaction is always open on a busy server.
      const held = ` The last ${lag} s are delayed by an open transaction in the service's database.`
      const line = { event: "in_step", seconds, lag, ...counts }
      const isShown = isFirst || hasNews
      counts = none
      limited = everySecond()
      isFirst = false
      return isShown ? report(line, lag > 5 ? `${news}${held}` : news) : Effect.void
    }
  }
}
