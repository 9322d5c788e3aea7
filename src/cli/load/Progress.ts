/** Reports of a load. */
import { count, counted } from "../../operations/Format.ts"
import { interval, type Line, reportsOf } from "../sync/Progress.ts"
import type { Fault } from "./Decoder.ts"

export type Event =
  | { readonly event: "note"; readonly message: string }
  | ({ readonly event: "fault"; readonly file: string; readonly line: number } & Fault)
  /** A part of a file, 0 to 1, was read or applied. */
  | { readonly event: "read" | "applied"; readonly file: string; readonly rows: number; readonly part: number }
  | ({ readonly event: "loaded"; readonly file: string; readonly seconds: number } & Loaded)

/** The rows of a file by what became of them. */
export type Loaded = Readonly<Record<"rows" | "inserted" | "updated" | "unchanged" | "deleted" | "rejected", number>>

const textOf = (event: Event): string => {
  switch (event.event) {
    case "note":
      return event.message
    case "fault":
      return [`${event.file}:${event.line}`, ...(event.field === undefined ? [] : [event.field]), event.reason].join(
        ": "
      )
    case "loaded": {
      const { file, rows, seconds, ...counts } = event
      const each = (["inserted", "updated", "unchanged", "deleted", "rejected"] as const).flatMap((name) =>
        counts[name] === 0 ? [] : [`${count(counts[name])} ${name}`]
      )
      return `${file}: ${[counted(rows, "row"), ...each].join(", ")}, after ${seconds.toFixed(1)} s.`
    }
    default:
      return `${event.file}: ${Math.floor(event.part * 100)} % ${event.event}, ${counted(event.rows, "row")}`
  }
}

const lines = () => {
  let notedAt: number | undefined
  return (event: Event, now: number): Line | undefined => {
    if (event.event === "read" || event.event === "applied") {
      notedAt ??= now
      if (now - notedAt < interval) return undefined
      notedAt = now
    }
    return [event, textOf(event)]
  }
}

export const reports = reportsOf(lines, (event) =>
  event.event === "note" || event.event === "fault" ? textOf(event) : undefined
)

export type Report = ReturnType<(typeof reports)["text"]>
