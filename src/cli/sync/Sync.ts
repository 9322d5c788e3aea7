/**
 * Keeps a copy of the resources in step by their changes. The target records the state of the copy: a sync that was
 * killed, or that meets an outage, resumes there.
 */
import { Clock, Duration, Effect, Stream } from "effect"
import { type Failed, Unavailable } from "../Usage.ts"
import { Event, type Report } from "./Progress.ts"
import type { Source } from "./Source.ts"
import type { Table } from "./Table.ts"
import type { Copy, Page, Target } from "./Target.ts"

export interface Options {
  readonly source: Source
  readonly target: Target
  readonly report: Report
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

const heldBack = (lag: number) =>
  `The last ${lag} seconds of changes are held back: a transaction is open in the service's database. They arrive once it ends.`

const notInStep = (resources: ReadonlyArray<string>) =>
  `The copy is not in step: a transaction that has been open in the service's database since the load began may hold back records of ${resources.join(", ")}.`

/** The subjects of an outage before any resource is read, and after all of them were. Others are resources. */
const [start, load] = ["start", "load"]

/** Retries while the service or the target does not respond, and notes the start and the end of an outage. */
const makeOutage = (note: (message: string) => Effect.Effect<void>, isWatching: boolean) => {
  let hasBegun = false
  let subject = start
  let since: number | undefined
  let pause = Duration.seconds(1)
  return {
    /** Records a success, which ends an outage of the same subject. */
    works: Effect.fnUntraced(function* (what: string) {
      hasBegun = true
      if (since === undefined || subject !== what) return
      since = undefined
      pause = Duration.seconds(1)
      yield* note("It works again.")
    }),
    /** Records the subject of a failure. */
    fails: (what: string) =>
      Effect.sync(() => {
        if (subject === load && what !== load) since = undefined
        subject = what
      }),
    /** Waits until the next attempt. Fails once the outage has lasted too long. */
    wait: Effect.fnUntraced(function* (error: Unavailable) {
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
export const run = (options: Options): Effect.Effect<void, Failed> => {
  const { concurrency, report, source, tables, target, watch } = options
  const note = (message: string) => report(Event.Note({ message }))
  const outage = makeOutage(note, watch !== undefined)

  const checked = new Set<string>()
  /** Notes once for each resource the fields of its records that are not copied. */
  const checkFields = ({ columns, resource }: Table, { body: [record] }: Page) => {
    if (record === undefined || checked.has(resource)) return Effect.void
    checked.add(resource)
    const unknown = Object.keys(record).filter((field) => !columns.some(({ name }) => name === field))
    if (unknown.length === 0) return Effect.void
    return note(
      `Records of ${resource} have fields that this version of practice-data does not know: ${unknown.join(", ")}. A newer version copies them.`
    )
  }

  const syncResource = Effect.fnUntraced(
    function* (copy: Copy, table: Table) {
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
      const restart = Effect.gen(function* () {
        yield* note(`The order of changes of ${resource} has ended: all of its records are read again.`)
        state = yield* Effect.uninterruptible(copy.restart(table, state))
      })
      const read: Effect.Effect<void, Failed> = Effect.suspend(() =>
        Stream.runForEach(Stream.buffer(source.changes(resource, state.cursor), { capacity: 1 }), apply)
      ).pipe(Effect.catchTag("CursorExpired", () => Effect.andThen(restart, read)))
      yield* read
      const isInStep = state.load === "done"
      if (isInStep) yield* report(Event.InStep({ resource, lag }))
      return { resource, isInStep, lag }
    },
    (syncing, _, { resource }) => Effect.tapError(syncing, () => outage.fails(resource))
  )

  let isFirst = true
  const opened = Effect.gen(function* () {
    const origin = { organization: yield* source.organization, url: source.url }
    const copy = yield* target.open({ ...options, origin })
    if (isFirst) yield* report(Event.Opened({ ...origin, target: target.name }))
    isFirst = false
    yield* outage.works(start)
    return copy
  }).pipe(Effect.tapError(() => outage.fails(start)))

  let isLagNoted = false
  const session = Effect.gen(function* () {
    const copy = yield* opened
    while (true) {
      const read = yield* Effect.forEach(tables, (table) => syncResource(copy, table), { concurrency })
      yield* Effect.uninterruptible(copy.finish)
      const loading = read.filter(({ isInStep }) => !isInStep).map(({ resource }) => resource)
      const isInStep = loading.length === 0
      if (isInStep) yield* report(Event.RoundEnded())
      const lag = Math.max(...read.map((one) => one.lag))
      const isBehind = lag > shortestLag
      if (isBehind && !isLagNoted) yield* note(isInStep ? heldBack(lag) : notInStep(loading))
      isLagNoted = isBehind
      if (watch === undefined && isInStep) return
      if (watch === undefined) {
        yield* outage.fails(load)
        return yield* new Unavailable({ message: notInStep(loading) })
      }
      yield* Effect.sleep(watch)
    }
  }).pipe(Effect.scoped)

  const attempt: Effect.Effect<void, Failed> = Effect.catchTag(session, "Unavailable", (error) =>
    Effect.andThen(outage.wait(error), attempt)
  )
  return attempt
}
