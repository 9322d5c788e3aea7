/**
 * Keeps a copy of the resources in step by their changes. The target records the state of the copy: a sync that was
 * killed, or that meets an outage, resumes there.
 */
import { Clock, Duration, Effect, Stream } from "effect"
import { Event, Progress } from "./Progress.ts"
import { Source, SourceUnavailable } from "./Source.ts"
import type { Table } from "./Table.ts"
import type { Copy, Page, Target, TargetUnavailable } from "./Target.ts"

export interface Options {
  readonly target: Target
  readonly tables: ReadonlyArray<Table>
  /** The resources read at the same time. */
  readonly concurrency: number
  /** The pause between rounds. Undefined: the sync ends when all resources are in step. */
  readonly watch: Duration.Duration | undefined
  /** Accepts a copy that was made from another address. */
  readonly allowNewUrl: boolean
}

/** The longest outage without `watch`. An outage at the start fails at once. */
const patience = Duration.minutes(1)

const longestPause = Duration.seconds(15)

/** In seconds. Some transaction is always open on a busy server. */
const shortestLag = 5

const note = (message: string) => Effect.flatMap(Progress, ({ report }) => report(Event.Note({ message })))

/** Notes once for each resource the fields of its records that are not copied. */
const makeFieldCheck = () => {
  const checked = new Set<string>()
  return Effect.fnUntraced(function* ({ columns, resource }: Table, { body: [record] }: Page) {
    if (record === undefined || checked.has(resource)) return
    checked.add(resource)
    const unknown = Object.keys(record).filter((field) => !columns.some(({ name }) => name === field))
    if (unknown.length > 0) {
      yield* note(
        `Records of ${resource} have fields that this version of practice-data does not know: ${unknown.join(", ")}. A newer version copies them.`
      )
    }
  })
}

const heldBack = (lag: number) =>
  `The last ${lag} seconds of changes are held back: a transaction is open in the service's database. They arrive once it ends.`

const notInStep = (resources: ReadonlyArray<string>) =>
  `The copy is not in step: a transaction that has been open in the service's database since the load began may hold back records of ${resources.join(", ")}.`

/** The subjects of an outage before any resource is read, and after all of them were. Others are resources. */
const [start, load] = ["start", "load"]

/** Retries while the service or the target does not respond, and notes the start and the end of an outage. */
const makeOutage = (isWatching: boolean) => {
  let hasBegun = false
  let subject = start
  let since: number | undefined
  let pause = Duration.seconds(1)
  return {
    /** Records a success, which ends an outage of the same subject. */
    works: (what: string) =>
      Effect.suspend(() => {
        hasBegun = true
        if (since === undefined || subject !== what) return Effect.void
        since = undefined
        pause = Duration.seconds(1)
        return note("It works again.")
      }),
    /** Records the subject of a failure. */
    fails: (what: string) =>
      Effect.sync(() => {
        if (subject === load && what !== load) since = undefined
        subject = what
      }),
    /** Waits until the next attempt. Fails once the outage has lasted too long. */
    wait: Effect.fnUntraced(function* (error: SourceUnavailable | TargetUnavailable) {
      const now = yield* Clock.currentTimeMillis
      if (!isWatching && (!hasBegun || now - (since ?? now) > Duration.toMillis(patience))) return yield* error
      if (since === undefined && subject !== load) yield* note(`${error.message}. Trying again.`)
      since ??= now
      yield* Effect.sleep(pause)
      pause = Duration.min(Duration.times(pause, 2), longestPause)
    })
  }
}

/**
 * Brings the copy up to date, and keeps it so with `watch`. Fails when a retry does not help, or when for longer than a
 * minute the service or the target was unavailable, or a load did not become complete; never for these with `watch`.
 */
export const run = Effect.fnUntraced(function* ({ allowNewUrl, concurrency, tables, target, watch }: Options) {
  const source = yield* Source
  const { report } = yield* Progress
  const checkFields = makeFieldCheck()
  const outage = makeOutage(watch !== undefined)

  const syncResource = Effect.fnUntraced(function* (copy: Copy, table: Table) {
    const { resource } = table
    yield* report(Event.Started({ resource }))
    let state = yield* copy.stateOf(table)
    let lag = 0
    const apply = Effect.fnUntraced(function* (page: Page) {
      yield* checkFields(table, page)
      // A stop signal waits until the page is applied.
      state = yield* Effect.uninterruptible(copy.apply(table, state, page))
      lag = page.lag
      yield* outage.works(resource)
      yield* report(Event.Applied({ resource, records: page.body.length, removed: page.removed.length }))
    })
    const read = Effect.suspend(() =>
      Stream.runForEach(Stream.buffer(source.changes(resource, state.cursor), { capacity: 1 }), apply)
    )
    const restart = Effect.gen(function* () {
      yield* note(`The order of changes of ${resource} has ended: all of its records are read again.`)
      state = yield* Effect.uninterruptible(copy.restart(table, state))
    })
    const attempt = Effect.as(read, true).pipe(Effect.catchTag("CursorExpired", () => Effect.as(restart, false)))
    yield* Effect.repeat(attempt, { until: (isRead) => isRead })
    const isInStep = state.load === "done"
    if (isInStep) yield* report(Event.InStep({ resource, lag }))
    return { resource, isInStep, lag }
  })

  let isFirst = true
  const opened = Effect.gen(function* () {
    const origin = { organization: yield* source.organization, url: source.url }
    const copy = yield* target.open({ origin, tables, allowNewUrl })
    if (isFirst) yield* report(Event.Opened({ ...origin, target: target.name }))
    isFirst = false
    return copy
  }).pipe(
    Effect.tapError(() => outage.fails(start)),
    Effect.tap(() => outage.works(start))
  )

  let isLagNoted = false
  const session = Effect.gen(function* () {
    const copy = yield* opened
    while (true) {
      const read = yield* Effect.forEach(
        tables,
        (table) => Effect.tapError(syncResource(copy, table), () => outage.fails(table.resource)),
        { concurrency }
      )
      yield* Effect.uninterruptible(copy.finish)
      const loading = read.filter(({ isInStep }) => !isInStep).map(({ resource }) => resource)
      const isInStep = loading.length === 0
      if (isInStep) yield* report(Event.RoundEnded())
      const lag = Math.max(...read.map((one) => one.lag))
      const isBehind = lag > shortestLag
      if (isBehind && !isLagNoted) yield* note(isInStep ? heldBack(lag) : notInStep(loading))
      isLagNoted = isBehind
      if (watch !== undefined) yield* Effect.sleep(watch)
      else if (isInStep) return true
      else {
        yield* outage.fails(load)
        return yield* new SourceUnavailable({ message: notInStep(loading) })
      }
    }
  }).pipe(Effect.scoped)

  const attempt = Effect.catchTag(session, ["SourceUnavailable", "TargetUnavailable"], (error) =>
    Effect.as(outage.wait(error), false)
  )
  yield* Effect.repeat(attempt, { until: (isDone) => isDone })
})
