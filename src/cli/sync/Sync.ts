/**
 * `sync`: keeps a copy of the records in step by their changes. The target records the state of the copy: a sync that was
 * killed, or that meets an outage, resumes there.
 */
import { DateTime, Duration, Effect, Layer, Redacted, Result, Stream } from "effect"
import { Argument, Flag } from "effect/cli"
import * as ConnectionUrl from "../../database/ConnectionUrl.ts"
import { count, counted } from "../../operations/Format.ts"
import { endAtSecondSignal } from "../../process/Failure.ts"
import * as Time from "../../process/Time.ts"
import { clientOf, connection } from "../Clients.ts"
import * as Output from "../Output.ts"
import { command, type Failed, misused, Unavailable } from "../Usage.ts"
import * as PostgresTarget from "./PostgresTarget.ts"
import * as Source from "./Source.ts"
import * as SqliteTarget from "./SqliteTarget.ts"
import {
  type Change,
  type ChangePage,
  type Copy,
  type OpenOptions,
  tables as allTables,
  type Target
} from "./Target.ts"

export interface SyncOptions extends Omit<OpenOptions, "origin"> {
  readonly source: Source.Source
  readonly target: Target
  readonly report: Output.Report
  /** The pause between rounds. Undefined: the sync ends when the copy is in step. */
  readonly watch: Duration.Duration | undefined
}

interface RequestedPage {
  readonly page: ChangePage
  /** A time before it was requested. */
  readonly requestedAt: DateTime.Utc
}

/**
 * Pages with a time before each was requested. The client requests a page while the one before it arrives, but not before
 * that is taken: when the one before that had come.
 */
const pagesOf = <E>(pages: Stream.Stream<ChangePage, E>): Stream.Stream<RequestedPage, E> =>
  Effect.map(DateTime.now, (begun) =>
    Stream.mapAccumEffect(
      pages,
      () => [begun, begun] as const,
      ([requestedAt, next], page) => Effect.map(DateTime.now, (now) => [[next, now], [{ page, requestedAt }]] as const)
    )
  ).pipe(Stream.unwrap)

/** Reports the changes since the copy was last in step. */
export const reporting = (report: Output.Report) => {
  const none = { records: 0, removed: 0, reset: 0 }
  let counts = none
  let limited = Output.everySecond()
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
      limited = Output.everySecond()
      isFirst = false
      return isShown ? report(line, lag > 5 ? `${news}${held}` : news) : Effect.void
    }
  }
}

/** The longest outage without `watch`, in milliseconds. An outage at the start fails at once. */
const patience = 60_000

/**
 * Brings the copy up to date, and keeps it so with `watch`. Fails when a retry does not help, or when the service or the
 * target was unavailable for longer than a minute; never for this with `watch`.
 */
export const run = (options: SyncOptions): Effect.Effect<void, Failed> => {
  const { report, source, tables, target, watch } = options
  const requested = tables.map(({ resource }) => resource)
  const progress = reporting(report)
  const note = (message: string) => Output.warn(report, message)
  let hasBegun = false
  let downSince: number | undefined
  /** True from a restart of the order of changes to a round without one. The next one is waited out as an outage is. */
  let isRestarted = false
  let mayRestart = true

  const endOutage = Effect.suspend(() => {
    if (downSince === undefined) return Effect.void
    downSince = undefined
    return note("Recovered.")
  })

  /** Waits until the next attempt. Fails once the outage has lasted too long. */
  const waitOut = Effect.fnUntraced(function* (error: Unavailable) {
    if (!hasBegun && watch === undefined) return yield* error
    const now = yield* Time.monotonic
    if (downSince === undefined) yield* note(`${error.message}. Retrying.`)
    downSince ??= now
    const elapsed = now - downSince
    if (watch === undefined && elapsed > patience) return yield* error
    // It doubles each time.
    yield* Effect.sleep(Math.min(elapsed + 1000, 15_000))
    mayRestart = true
  })

  /** The page that begins a load: what does not come again until the round ends is gone. */
  const resets: ChangePage = {
    body: requested.map((resource) => ({ resource, reset: true })),
    cursor: undefined,
    resources: requested,
    has_more: true,
    is_consistent: false,
    lag: 0
  }

  /** Reads and applies a round. Returns its last page. */
  const readRound = Effect.fnUntraced(function* (copy: Copy) {
    let last: ChangePage = { ...resets, ...(yield* copy.state) }
    const keep = Effect.fnUntraced(function* (page: ChangePage, requestedAt: DateTime.Utc) {
      // A stop signal waits until the page is applied.
      yield* Effect.uninterruptible(copy.apply(page, source.timeOf(requestedAt)))
      last = page
    })
    const keepResets = Effect.flatMap(DateTime.now, (now) => keep(resets, now))
    const receive = Effect.fnUntraced(function* ({ requestedAt, page }: RequestedPage) {
      yield* keep(page, requestedAt)
      if (!isRestarted) yield* endOutage
      yield* progress.applied(page.body)
    })
    const follow = Effect.suspend(() =>
      // Two pages are read ahead of the one that is applied.
      Stream.runForEach(Stream.buffer(pagesOf(source.changes(last.cursor, requested)), { capacity: 2 }), receive)
    )
    const whole = requested.filter((resource) => last.resources.includes(resource))
    // A resource that a request leaves out comes with a reset when it is requested again.
    const leaveOut = Stream.runForEach(Stream.take(pagesOf(source.changes(last.cursor, whole)), 1), receive)
    const resume = whole.length < requested.length ? leaveOut : Effect.void
    const restart = Effect.gen(function* () {
      if (!isRestarted) yield* note("The order of changes restarted: reloading all records.")
      isRestarted = true
      mayRestart = false
      yield* keepResets
      yield* follow
    })
    const end = Effect.sync(() => {
      isRestarted = false
      mayRestart = true
    })
    yield* Effect.andThen(last.cursor === undefined || whole.length === 0 ? keepResets : resume, follow).pipe(
      Effect.andThen(end),
      Effect.catchTag("CursorExpired", (expired) => (mayRestart ? restart : expired)),
      Effect.catchTag("CursorExpired", () => new Unavailable({ message: "The order of changes keeps restarting" }))
    )
    return last
  })

  const session = Effect.gen(function* () {
    const origin = { organization: yield* source.organization, url: source.url }
    const copy = yield* target.open({ ...options, origin })
    if (!hasBegun) {
      const sentence = `${origin.organization} at ${origin.url}, to ${target.name}`
      yield* report({ event: "opened", ...origin, target: target.name }, sentence)
    }
    hasBegun = true
    while (true) {
      const [duration, { lag }] = yield* Effect.timed(readRound(copy))
      yield* progress.inStep(Duration.toSeconds(duration), lag)
      if (watch === undefined) return
      yield* Effect.sleep(watch)
    }
  }).pipe(Effect.scoped)

  const attempt: Effect.Effect<void, Failed> = Effect.catchTag(session, "Unavailable", (error) =>
    Effect.andThen(waitOut(error), attempt)
  )
  return attempt
}

/** The target of `postgres://...` or `sqlite:FILE`. */
export const targetOf = Effect.fnUntraced(function* (
  text: string,
  { schema, softDelete }: Readonly<{ schema: string | undefined; softDelete: boolean }>
) {
  const [, kind, given = ""] = /^(postgres(?:ql)?|sqlite):(.+)/s.exec(text) ?? []
  if (kind === undefined) {
    return yield* misused("The target must be postgres://... or sqlite:FILE.")
  }
  if (kind === "sqlite") {
    if (schema !== undefined) return yield* misused("--schema is for a postgres:// target.")
    return SqliteTarget.make(given, text, softDelete)
  }
  const parsed = ConnectionUrl.connectionOptions(text)
  if (Result.isFailure(parsed)) {
    return yield* misused(`The target is not a URL such as postgres://user@host:5432/database: ${parsed.failure}.`)
  }
  const name = schema ?? new URLSearchParams(text.split("?")[1]).get("schema") ?? "public"
  if (name === "") return yield* misused("The schema name is empty.")
  const database = ConnectionUrl.format({ ...parsed.success, user: undefined })
  return PostgresTarget.make({ url: Redacted.make(text), database, schema: name, softDelete })
})

const names = allTables.map(({ resource }) => resource)

export const sync = command("sync", Layer.empty, {
  description: `Keep a copy of the records in Postgres or SQLite, in step with the service.

The first run copies everything, one table per resource. Later runs, or --watch, apply the changes since then. Changes become visible in one transaction, so a query sees a consistent state: an invoice with its lines. _synced_at is the time at which a row was written.

You can kill a run at any point; the next one resumes. It never touches tables that it did not create. A SQLite file is readable only by its owner.

Exit codes: 0 in step; 1 refused, such as an invalid API key or target; 2 usage error; 75 the service or the target is unavailable, at startup or for more than a minute: retry later; 130 and 143 stopped by a signal. With --watch, it retries during outages, and reloads a dropped table.`,
  examples: [
    ["PRACTICE_DATA_API_KEY=pda_demo_oakridge practice-data sync sqlite:practice.db"],
    ["practice-data sync postgres://me@localhost/warehouse --schema practice --watch 10", "PGPASSWORD: the password"],
    ["practice-data sync sqlite:charges.db --resource charges", "The charges alone"]
  ],
  flags: {
    target: Argument.String("target").pipe(Argument.withDescription("postgres://USER@HOST/DATABASE or sqlite:FILE")),
    tables: Flag.Literals("resource", names).pipe(
      Flag.between(0, names.length),
      Flag.withDescription(
        "Only this resource; repeatable, default all. A resource that a run omits is reloaded when a later run includes it"
      ),
      Flag.map((chosen) => allTables.filter(({ resource }) => chosen.length === 0 || chosen.includes(resource)))
    ),
    watch: Output.integer("watch", 1, 86_400, "Keep running, and poll for changes at this interval in seconds").pipe(
      Flag.map(Duration.seconds),
      Output.optional
    ),
    schema: Output.text("schema", "Postgres only: the schema, default public. Created if it does not exist"),
    softDelete: Output.flag("soft-delete", "Set _removed_at on removed rows instead of deleting them"),
    report: Output.progress("notes"),
    ...connection,
    allowNewUrl: Output.flag("allow-new-url", "Accept a copy made from another URL, if the service moved")
  }
})(function* (given) {
  const source = Source.make(given.url, yield* clientOf(given))
  // Until the command ends, only their user can read files that are made.
  yield* Effect.acquireRelease(
    Effect.sync(() => process.umask(0o077)),
    (before) => Effect.sync(() => process.umask(before))
  )
  yield* Effect.sync(endAtSecondSignal)
  yield* run({ ...given, source, target: yield* targetOf(given.target, given) })
})
