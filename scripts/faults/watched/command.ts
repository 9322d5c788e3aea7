/**
 * Faults that are watched through metrics, logs and health alone: each has to be seen within 15 seconds, by the right
 * alert, with its cause. Ends with code 1 when one is not.
 *
 *     npm run faults -- watched
 *     npm run faults -- watched --only store --own --markdown
 */
import { Clock, Console, Data, DateTime, Effect, Semaphore } from "effect"
import { Command, Flag } from "effect/cli"
import * as Prometheus from "../../../test/support/Prometheus.ts"
import * as Ground from "../support/Ground.ts"
import { circumstances } from "../table.ts"
import { faults } from "./faults.ts"
import * as OwnWatcher from "./OwnWatcher.ts"
import * as RealPrometheus from "./RealPrometheus.ts"
import { bound, type Row, watch } from "./watch.ts"

/** Something was not seen, or something else was. */
class NotSeen extends Data.TaggedError("NotSeen")<{ readonly message: string }> {}

const flags = {
  only: Flag.String("only").pipe(
    Flag.withDescription("A fault, or the beginning of the names of several; may be repeated"),
    Flag.atLeast(0)
  ),
  own: Flag.Boolean("own").pipe(
    Flag.withDescription("Our evaluator, even where there is a Prometheus"),
    Flag.withDefault(false)
  ),
  atOnce: Flag.Int("at-once").pipe(Flag.withDescription("How many faults at once"), Flag.withDefault(3)),
  markdown: Flag.Boolean("markdown").pipe(
    Flag.withDescription("Print the table as Markdown too"),
    Flag.withDefault(false)
  )
}

const secondsOf = (seconds: number | undefined) => (seconds === undefined ? "" : seconds.toFixed(1))

const firedOf = ({ fired }: Row) => fired.map(({ summary }) => summary).join("; ")

const line = (row: Row) =>
  [
    `${row.problems.length === 0 ? "seen" : "NOT"}  ${row.name.padEnd(20)}${secondsOf(row.seconds).padStart(6)} s  ${firedOf(row)}`,
    ...row.problems.map((problem) => `     ${problem}`)
  ].join("\n")

const cell = (text: string) => text.replaceAll("|", "\\|").replaceAll(/127\.0\.0\.1:\d+/g, "HOST")

const markdown = (rows: ReadonlyArray<Row>) =>
  [
    "| what is done | what fires | after | over after | |",
    "| --- | --- | --- | --- | --- |",
    ...rows.map((row) =>
      [
        row.done,
        row.fired.map(({ name, summary }) => `\`${name}\`: ${summary}`).join("; ") || "nothing",
        row.seconds === undefined ? "" : `${secondsOf(row.seconds)} s`,
        row.fired.length === 0 ? "" : `${Math.round(row.over ?? Number.NaN)} s`,
        row.problems.length === 0 ? "as it should" : row.problems.join("; ")
      ]
        .map(cell)
        .join(" | ")
    )
  ]
    .map((text, index) => (index < 2 ? text : `| ${text} |`))
    .join("\n")

export const watched = Command.make(
  "watched",
  flags,
  Effect.fn(function* ({ atOnce, markdown: isMarkdown, only, own }) {
    const seed = (yield* Clock.currentTimeMillis) % 1_000_000
    const chosen = faults.filter(({ name }) => only.length === 0 || only.some((one) => name.startsWith(one)))
    if (chosen.length === 0) {
      return yield* new NotSeen({ message: `There are: ${faults.map(({ name }) => name).join(", ")}` })
    }
    const watcher = yield* Prometheus.isInstalled && !own ? RealPrometheus.make : OwnWatcher.make
    const ground = yield* Ground.make({ databaseUrl: undefined, seed })
    const where = `${circumstances(DateTime.formatIsoDateUtc(yield* DateTime.now), ground.version, seed)}, watched by ${watcher.name}`
    yield* Console.log(`${where}\n`)
    const permits = yield* Semaphore.make(atOnce)
    const rows = yield* Effect.forEach(
      chosen,
      (fault) => Effect.tap(watch(fault, ground, watcher, permits), (row) => Console.log(line(row))),
      { concurrency: "unbounded" }
    )
    if (isMarkdown) yield* Console.log(`\n${where}:\n\n${markdown(rows)}`)
    const bad = rows.filter(({ problems }) => problems.length > 0)
    if (bad.length > 0) {
      return yield* new NotSeen({ message: `Not as it should be: ${bad.map(({ name }) => name).join(", ")}` })
    }
    yield* Console.log(`\nEach was seen within ${bound} seconds, and nothing else.`)
  }, Effect.scoped)
).pipe(Command.withDescription("Watch faults through metrics, logs and health alone"))
