/** Reports of a running command: sentences for a person, lines of JSON for a program, or warnings only. */
import { Effect, Option } from "effect"
import { Flag, TerminalCapabilities } from "effect/cli"
import { iso } from "../operations/Format.ts"
import { note, print } from "../process/Printed.ts"
import * as Time from "../process/Time.ts"

export interface Line {
  readonly event: string
  readonly [field: string]: unknown
}

/** Reports an event: its fields for a program, and its sentence for a person. */
export type Report = (line: Line, sentence: string, isWarning?: boolean) => Effect.Effect<void>

/** The reports by their names. `none` prints warnings alone, to standard error. */
export const reports: Readonly<Record<"text" | "json" | "none", Report>> = {
  text: (_, sentence) => print(sentence),
  json: (line) => Effect.flatMap(Time.wall, (now) => print(JSON.stringify({ at: iso(now), ...line }))),
  none: (_, sentence, isWarning = false) => (isWarning ? note(sentence) : Effect.void)
}

/** Reports a warning. */
export const warn = (report: Report, message: string) => report({ event: "note", message }, message, true)

/** Lets a report through at most once a second, the first time after a second. */
export const everySecond = () => {
  let reportedAt: number | undefined
  return (report: Effect.Effect<void>) =>
    Effect.flatMap(Time.monotonic, (now) => {
      reportedAt ??= now
      if (now - reportedAt < 1000) return Effect.void
      reportedAt = now
      return report
    })
}

/** The flag `--progress`, with the reports that remain at `none`. */
export const flag = (warnings: string) =>
  Flag.Literals("progress", ["text", "json", "none"]).pipe(
    Flag.optional,
    Flag.withDescription(
      `Progress report: text (default on a terminal), json (default otherwise), or none (${warnings} only)`
    ),
    Flag.mapEffect(
      Effect.fnUntraced(function* (given) {
        const { canAnimate } = yield* TerminalCapabilities.TerminalCapabilities
        return reports[Option.getOrElse(given, () => (canAnimate ? "text" : "json"))]
      })
    )
  )
