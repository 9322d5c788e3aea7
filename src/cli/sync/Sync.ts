/**
 * Keeps a copy of the resources in step by their changes. Where a copy is stands in its target, so that a sync which is
 * killed, or meets an outage, begins again from there.
 */
import { Clock, Duration, Effect, Stream } from "effect"
import { Event, Progress } from "./progress/Progress.ts"
import { Source, SourceUnavailable } from "./Source.ts"
import type { Table } from "./Table.ts"
import type { Copy, Page, State, Target, TargetUnavailable } from "./Target.ts"

export interface Options {
  readonly target: Target
  readonly tables: ReadonlyArray<Table>
  /** How many resources are read at the same time. */
  readonly concurrency: number
  /** How long to pause before the changes are asked for again. Undefined: the sync ends when all resources are in step. */
  readonly watch: Duration.Duration | undefined
  /** Whether a copy that was made from another address is to be taken over. */
  readonly allowNewUrl: boolean
}

/** How long an outage may last where nobody watches. One that is met at the start is not waited out. */
const patience = Duration.minutes(1)

const longestPause = Duration.seconds(15)

/** In seconds. Some transaction is always open on a busy server. */
const shortestLag = 5

type Unavailable = SourceUnavailable | TargetUnavailable

const note = (message: string) => Effect.flatMap(Progress, ({ report }) => report(Event.Note({ message })))

/** Says once for each resource which fields of its records are not copied. */
const makeFieldCheck = () => {
  const checked = new Set<string>()
  return Effect.fnUntraced(function* ({ columns, resource }: Table, { records }: Page) {
    const [record] = records
    if (record === undefined || checked.has(resource)) return
    checked.add(resource)
    const known = new Set(columns.map(({ name }) => name))
    const unknown = Object.keys(record).filter((field) => !known.has(field))
    if (unknown.length > 0) {
      yield* note(
        `Records of ${resource} have fields that this version of practice-data does not know: ${unknown.join(", ")}. A newer version copies them.`
      )
    }
  })
}

/** Makes a note of something that goes on for a while: once, when it begins. */
const makeNote = () => {
  let isNoted = false
  return Effect.fnUntraced(function* (message: string | undefined) {
    if (message !== undefined && !isNoted) yield* note(message)
    isNoted = message !== undefined
  })
}

const heldBack = (lag: number) =>
  `The last ${lag} seconds of changes are held back: a transaction is open in the service's database. They come once it has ended.`

const notInStep = (resources: ReadonlyArray<string>) =>
  `The copy is not in step: a transaction that has been open in the service's database since the load began may hold back records of ${resources.join(", ")}.`

/** What an outage is of before any resource is read, and after all of them were. */
const [start, load] = ["start", "load"]

/** Waits out when the service or the target does not respond, and says when that begins and ends. */
const makeOutage = (isWatching: boolean) => {
  let hasBegun = false
  /** What failed, and since when. */
  let failed = start
  let since: number | undefined
  let pause = Duration.seconds(1)
  return {
    /** Notes that something works. That ends an outage of it; of an outage of something else it says nothing. */
    works: (what: string) =>
      Effect.suspend(() => {
        hasBegun = true
        if (since === undefined || failed !== what) return Effect.void
        since = undefined
        pause = Duration.seconds(1)
        return note("It works again.")
      }),
    /** Notes what fails first. */
    fails: (what: string) =>
      Effect.sync(() => {
        if (failed === load && what !== load) since = undefined
        failed = what
      }),
    /** Returns when it is time to try again. Fails when that has been done for long enough. */
    wait: Effect.fnUntraced(function* (error: Unavailable) {
      const now = yield* Clock.currentTimeMillis
      if (!isWatching && (!hasBegun || now - (since ?? now) > Duration.toMillis(patience))) return yield* error
      if (since === undefined && failed !== load) yield* note(`${error.message}. Trying again.`)
      since ??= now
      yield* Effect.sleep(pause)
      pause = Duration.min(Duration.times(pause, 2), longestPause)
    })
  }
}

/**
 * Brings the copy up to date, and keeps it so if it is to be watched. Fails when trying again does not help, or when for
 * longer than a minute the service or the target was unavailable, or a load did not become complete; never for these while
 * it watches.
 */
export const run = Effect.fnUntraced(function* (options: Options) {
  const source = yield* Source
  const { report } = yield* Progress
  const checkFields = makeFieldCheck()
  const noteLag = makeNote()
  const outage = makeOutage(options.watch !== undefined)

  const follow = Effect.fnUntraced(function* (copy: Copy, table: Table, from: State) {
    let state = from
    let lag = 0
    const applied = Stream.runForEach(
      Stream.buffer(source.changes(table.resource, state.cursor), { capacity: 1 }),
      (page) =>
        Effect.gen(function* () {
          yield* checkFields(table, page)
          // A stop signal is heard when the page is applied.
          state = yield* Effect.uninterruptible(copy.apply(table, state, page))
          lag = page.lag
          yield* outage.works(table.resource)
          const { records, removed } = page
          yield* report(Event.Applied({ resource: table.resource, records: records.length, removed: removed.length }))
        })
    )
    const isExpired = yield* Effect.as(applied, false).pipe(
      Effect.catchTag("CursorExpired", () => Effect.succeed(true))
    )
    return { isExpired, state, lag }
  })

  const syncResource = Effect.fnUntraced(function* (copy: Copy, table: Table) {
    const { resource } = table
    yield* report(Event.Started({ resource }))
    let outcome = yield* follow(copy, table, yield* copy.stateOf(table))
    while (outcome.isExpired) {
      yield* note(`The order of changes of ${resource} began anew: all of its records are read again.`)
      outcome = yield* follow(copy, table, yield* Effect.uninterruptible(copy.restart(table, outcome.state)))
    }
    const { lag, state } = outcome
    const isInStep = state.load === "done"
    if (isInStep) yield* report(Event.InStep({ resource, lag }))
    return { resource, isInStep, lag }
  })

  const round = (copy: Copy) =>
    Effect.forEach(
      options.tables,
      (table) => Effect.tapError(syncResource(copy, table), () => outage.fails(table.resource)),
      { concurrency: options.concurrency }
    )

  let isFirst = true
  const opened = Effect.gen(function* () {
    const origin = { organization: yield* source.organization, url: source.url }
    const copy = yield* options.target.open({ origin, tables: options.tables, allowNewUrl: options.allowNewUrl })
    if (isFirst) yield* report(Event.Opened({ ...origin, target: options.target.name }))
    isFirst = false
    return copy
  }).pipe(
    Effect.tapError(() => outage.fails(start)),
    Effect.tap(() => outage.works(start))
  )

  const session = Effect.gen(function* () {
    const copy = yield* opened
    while (true) {
      const read = yield* round(copy)
      yield* Effect.uninterruptible(copy.finish)
      const loading = read.filter(({ isInStep }) => !isInStep).map(({ resource }) => resource)
      const isInStep = loading.length === 0
      if (isInStep) yield* report(Event.RoundEnded())
      const lag = Math.max(...read.map((one) => one.lag))
      yield* noteLag(lag <= shortestLag ? undefined : isInStep ? heldBack(lag) : notInStep(loading))
      if (options.watch !== undefined) yield* Effect.sleep(options.watch)
      else if (isInStep) return
      else {
        yield* outage.fails(load)
        return yield* new SourceUnavailable({ message: notInStep(loading) })
      }
    }
  }).pipe(Effect.scoped)

  const attempt = session.pipe(
    Effect.as(true),
    Effect.catchTag(["SourceUnavailable", "TargetUnavailable"], (error) => Effect.as(outage.wait(error), false))
  )
  while (!(yield* attempt)) continue
})
