/**
 * `sync`: keeps a copy of the records in step by their changes, in rounds. The target records the state of the copy: a
 * sync that was killed, or that meets an outage, resumes there.
 */
import { Config, Data, DateTime, Duration, Effect, Layer, Option, Record, Ref, Schedule, Stream } from "effect"
import { Argument, Flag, TerminalCapabilities } from "effect/cli"
import { count, counted, iso } from "../../operations/Format.ts"
import { endAtSecondSignal } from "../../process/Failure.ts"
import * as Time from "../../observability/Time.ts"
import * as Output from "../Output.ts"
import { command, type Failed, misused, Unavailable } from "../Usage.ts"
import * as Source from "./Source.ts"
import type { Copy, OpenOptions, Target } from "./SqlCopy.ts"
import * as Tables from "./Tables.ts"
import { parseTarget } from "./Targets.ts"

export interface Line {
  readonly event: string
  readonly [field: string]: unknown
}

/** Reports an event of a long command: its sentence to a person, its fields to a program. */
export type Report = (line: Line, sentence: string) => Effect.Effect<void>

export const reports: Readonly<Record<"text" | "json", Report>> = {
  text: (_, sentence) => Output.print(sentence),
  json: (line) => Effect.flatMap(Time.wall, (now) => Output.record({ at: iso(now), ...line }))
}

/** The report for a terminal, or for a program. */
const terminalReport = Effect.map(TerminalCapabilities.TerminalCapabilities, ({ canAnimate }) =>
  canAnimate ? reports.text : reports.json
)

export interface SyncOptions extends Omit<OpenOptions, "organization"> {
  readonly source: Source.Source
  readonly target: Target
  readonly report: Report
  /** The pause between rounds. Undefined: the sync ends when the copy is in step. */
  readonly watch: Duration.Duration | undefined
}

/** The kinds of changes by the names of their numbers. */
const kinds = { records: "record", removed: "removed", reset: "reset" } as const
const none = Record.map(kinds, () => 0)

const sentence = ({ records, removed, reset }: typeof none) =>
  [
    counted(records, "record"),
    ...(removed === 0 ? [] : [`${count(removed)} removed`]),
    ...(reset === 0 ? [] : [`${counted(reset, "resource")} reloaded`])
  ].join(", ")

/** Reports the changes since the copy was last in step: at most each second, and at the end of a round. */
export const reporting = Effect.fnUntraced(function* (report: Report) {
  const state = yield* Ref.make({ total: none, reportedAt: Option.none<number>(), isFirst: true })
  return {
    applied: Effect.fnUntraced(function* (changes: ReadonlyArray<Tables.Change>) {
      const now = yield* Time.monotonic
      const { reportedAt, total: before, ...rest } = yield* Ref.get(state)
      const total = Record.map(kinds, (kind, name) => before[name] + changes.filter((change) => kind in change).length)
      const isDue = Option.exists(reportedAt, (last) => now - last >= 1000)
      const at = isDue ? Option.some(now) : Option.orElseSome(reportedAt, () => now)
      yield* Ref.set(state, { ...rest, total, reportedAt: at })
      if (isDue) yield* report({ event: "applied", ...total }, `${sentence(total)} so far`)
    }),
    /** Reports the end of a round. Rounds without changes are silent, except the first. */
    inStep: Effect.fnUntraced(function* (seconds: number) {
      const { isFirst, total } = yield* Ref.getAndSet(state, { total: none, reportedAt: Option.none(), isFirst: false })
      const hasNews = Object.values(total).some((value) => value > 0)
      if (!isFirst && !hasNews) return
      const news = hasNews ? sentence(total) : "nothing new"
      yield* report({ event: "in_step", seconds, ...total }, `In step: ${news}, after ${seconds.toFixed(1)} s.`)
    })
  }
})

/** The longest outage without `watch`, in milliseconds. An outage at the start fails at once. */
const patience = 60_000

const restarted = new Unavailable({ message: "The order of changes keeps restarting" })

/** The phase of a sync. `since`: the monotonic time at which an outage began. */
type Phase = Data.TaggedEnum<{
  /** The service and the target were not reached yet. */
  Starting: { readonly since: number | undefined }
  Running: { readonly since: undefined }
  /** Ends with the next page. */
  Down: { readonly since: number }
  /** The order of changes restarted. Ends with a round that begins at a cursor. */
  Restarting: { readonly since: number | undefined }
}>
const { Down, Restarting, Running, Starting } = Data.taggedEnum<Phase>()
const running = Running({ since: undefined })

/**
 * Brings the copy up to date, and keeps it so with `watch`. Fails when a retry does not help, or when the service or the
 * target was unavailable for longer than a minute; never for this with `watch`.
 */
export const run = Effect.fnUntraced(function* (options: SyncOptions): Effect.fn.Return<void, Failed> {
  const { report, source, tables, target, watch } = options
  const reported = yield* reporting(report)
  const phase = yield* Ref.make<Phase>(Starting({ since: undefined }))
  const note = (message: string) => report({ event: "note", message }, message)

  /** Ends a phase, and the outage in it. */
  const end = Effect.fnUntraced(function* (tag: "Down" | "Restarting") {
    const before = yield* Ref.get(phase)
    if (before._tag !== tag) return
    yield* Ref.set(phase, running)
    if (before.since !== undefined) yield* note("Recovered.")
  })

  /** Waits until the next attempt. False once the outage has lasted too long. */
  const waitOut = Effect.fnUntraced(function* (error: Failed) {
    const before = yield* Ref.get(phase)
    if (error._tag === "Refused" || (before._tag === "Starting" && watch === undefined)) return false
    if (error === restarted && before._tag !== "Restarting") {
      yield* note("The order of changes restarted: reloading all records.")
      yield* Ref.set(phase, Restarting({ since: before.since }))
      return true
    }
    const now = yield* Time.monotonic
    const since = before.since ?? now
    if (before.since === undefined) yield* note(`${error.message}. Retrying.`)
    yield* Ref.set(phase, before._tag === "Running" ? Down({ since }) : { ...before, since })
    if (watch === undefined && now - since > patience) return false
    // The pause doubles each time.
    yield* Effect.sleep(Math.min(now - since + 1000, 15_000))
    return true
  })

  /** Reads and applies a round. */
  const readRound = Effect.fnUntraced(function* (copy: Copy) {
    // A stop signal waits until the page is applied.
    const keep = (page: Tables.ChangePage) => Effect.uninterruptible(copy.apply(page))
    const receive = Effect.fnUntraced(function* (page: Tables.ChangePage) {
      yield* keep(page)
      yield* end("Down")
      yield* reported.applied(page.body)
    })
    /** Begins a load: records that do not come again until the round ends are removed. */
    const reset = Effect.gen(function* () {
      const body = tables.map(({ resource }) => ({ resource, reset: true as const }))
      const requestedAt = yield* DateTime.now
      yield* keep({ body, cursor: undefined, has_more: true, is_consistent: false, requestedAt })
    })
    const cursor = yield* copy.cursor
    if (cursor === undefined) yield* reset
    // Two pages are read ahead of the one that is applied.
    yield* Stream.runForEach(Stream.buffer(source.changes(cursor), { capacity: 2 }), receive).pipe(
      Effect.catchTag("CursorExpired", () => Effect.andThen(reset, restarted))
    )
    if (cursor !== undefined) yield* end("Restarting")
  })

  const session = Effect.gen(function* () {
    const organization = yield* source.organization
    const copy = yield* target.open({ organization, tables })
    const { _tag, since } = yield* Ref.get(phase)
    if (_tag === "Starting") {
      const opened = `${organization} at ${source.url}, to ${target.name}`
      yield* report({ event: "opened", organization, url: source.url, target: target.name }, opened)
      yield* Ref.set(phase, since === undefined ? running : Down({ since }))
    }
    const round = Effect.gen(function* () {
      const [duration] = yield* Effect.timed(readRound(copy))
      yield* reported.inStep(Duration.toSeconds(duration))
    })
    yield* watch === undefined ? round : Effect.repeat(round, Schedule.spaced(watch))
  })

  yield* Effect.retry(Effect.scoped(session), { while: waitOut })
})

export const sync = command("sync", Layer.empty, {
  description: `Keep a copy of the records in Postgres or SQLite, in step with the service.

The first run copies everything, one table per resource. Later runs, or --watch, apply the changes since then. Changes become visible in one transaction, so a query sees a consistent state: an invoice with its lines. _synced_at is the time at which a row was written.

You can kill a run at any point; the next one resumes. It never touches tables that it did not create. A SQLite file is readable only by its owner.

Exit codes: 0 in step; 1 refused, such as an invalid API key or target; 2 usage error; 75 the service or the target is unavailable, at startup or for more than a minute: retry later; 130 and 143 stopped by a signal. With --watch, it retries during outages, and loads a copy again whose table was dropped.`,
  examples: [
    ["PRACTICE_DATA_API_KEY=pda_demo_oakridge practice-data sync sqlite:practice.db"],
    ["practice-data sync postgres://me@localhost/warehouse --schema practice --watch 10", "PGPASSWORD: the password"]
  ],
  flags: {
    target: Argument.String("target").pipe(Argument.withDescription("postgres://USER@HOST/DATABASE or sqlite:FILE")),
    watch: Output.integer("watch", 1, 86_400, "Keep running, and poll for changes at this interval in seconds").pipe(
      Flag.map(Duration.seconds),
      Output.optional
    ),
    schema: Output.text("schema", "Postgres only: the schema, default public. Created if it does not exist"),
    softDelete: Output.flag("soft-delete", "Set _removed_at on removed rows instead of deleting them"),
    url: Flag.String("url").pipe(
      Flag.withDescription("URL of the service (PRACTICE_DATA_URL; default http://127.0.0.1:3000)"),
      Flag.withFallbackConfig(Config.NonEmptyString("PRACTICE_DATA_URL")),
      Flag.withDefault("http://127.0.0.1:3000")
    ),
    // Others on the machine see a command line.
    apiKey: Flag.Redacted("api-key").pipe(
      Flag.withDescription("API key (prefer PRACTICE_DATA_API_KEY, which other users cannot see)"),
      Flag.withFallbackConfig(Config.Redacted("PRACTICE_DATA_API_KEY")),
      Flag.optional
    )
  }
})(function* (given) {
  if (Option.isNone(given.apiKey)) return yield* misused("No API key. Set PRACTICE_DATA_API_KEY or --api-key.")
  const source = yield* Source.make({ baseUrl: given.url, apiKey: given.apiKey.value }).pipe(
    Effect.mapError(({ message }) => misused(`${message}.`))
  )
  const target = yield* parseTarget(given.target, given)
  // Until the command ends, only their user can read files that are made.
  yield* Effect.acquireRelease(
    Effect.sync(() => process.umask(0o077)),
    (before) => Effect.sync(() => process.umask(before))
  )
  yield* Effect.sync(endAtSecondSignal)
  yield* run({ ...given, tables: Tables.tables, report: yield* terminalReport, source, target })
})
