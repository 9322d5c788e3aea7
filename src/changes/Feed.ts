/** A feed of changes: decides whether a cursor is resumed, reads a page, and waits for changes where there are none. */
import { Duration, Effect, Record, Semaphore } from "effect"
import type { CurrentOrganization } from "../api/Authorization.ts"
import * as Errors from "../api/Errors.ts"
import type { Json } from "../database/RecordJson.ts"
import { polling } from "../observability/RequestFacts.ts"
import * as Time from "../process/Time.ts"
import type { ChangeClock } from "./ChangeClock.ts"
import * as Cursor from "./Cursor.ts"
import type { SeenState } from "./FeedQuery.ts"
import { type ChangeRow, type ChangesPage, type FeedDefinition, placeOf, tableOf } from "./FeedDefinition.ts"
import { type FeedSnapshot, horizonOf, isHeldBack, readableIn, visibleIn } from "./FeedSnapshot.ts"
import * as Walk from "./Walk.ts"

/** A request for changes: at most `limit` of them, after a cursor or from the start. */
export interface ChangesRequest {
  readonly cursor?: string | undefined
  readonly limit: number
  readonly wait?: Duration.Duration
  /** By default, all of the feed. */
  readonly resources?: ReadonlyArray<string> | undefined
}

export interface Changes {
  /** The page, as its feed renders it. */
  readonly json: Json
  /** The seconds for which changes have been held back. */
  readonly lag: number
  /** True if a reader that began without a cursor has every record that existed then. */
  readonly isComplete: boolean
  readonly cursor: string
  readonly hasMore: boolean
  readonly rows: number
  readonly isEmpty: boolean
  /** The state that the reader has seen: where the page is empty, it may wait for changes after it. */
  readonly seen: SeenState
}

interface FeedRead {
  readonly snapshot: FeedSnapshot
  /** One more than the limit if there are more. */
  readonly rows: ReadonlyArray<ChangeRow>
}

/** The store of a feed, for the organization of the request. */
export interface Store {
  /** Reads up to `limit` changes of walks, and one more; with the mark of a cursor, also the state of the feed. */
  readonly read: (
    walks: ReadonlyArray<Walk.Walk>,
    limit: number,
    mark?: string
  ) => Effect.Effect<FeedRead, Errors.RecordStoreDown, CurrentOrganization>
  readonly clock: Pick<ChangeClock["Service"], "hasMark" | "isOfRun" | "keep" | "lag" | "wait">
  /** The number of records above which a page is large. */
  readonly largePage: number
}

const cursorInvalid = new Errors.CursorInvalid()
const cursorExpired = new Errors.CursorExpired()
const busy = new Errors.RecordStoreDown({ detail: "The record store is busy" })

const wokenAtOnce = 16

/** The time for a mark to arrive on a standby. */
const replication = "400 millis"

/** The most reads for a page, where the feed has to be settled first or a table is truncated. */
const attempts = 5

/** The walks that a request continues. */
interface ReadPlan {
  readonly cursor: Cursor.Cursor | undefined
  readonly limit: number
  readonly names: ReadonlyArray<string>
  readonly walks: ReadonlyArray<Walk.Walk>
  /** The resources that are read from their beginning, by a reader who has a copy of others. */
  readonly resets: ReadonlyArray<string>
}

/** Plans to read resources. Those that no walk has, or whose feed has ended, are read from their beginning. */
const makePlan = (
  { cursor, limit, names }: Pick<ReadPlan, "cursor" | "limit" | "names">,
  ended: ReadonlyArray<string> = []
): ReadPlan => {
  const known = (cursor?.walks ?? []).flatMap((walk) => {
    const feeds = Object.entries(walk.feeds).filter(([name]) => names.includes(name) && !ended.includes(name))
    return feeds.length === 0 ? [] : [{ ...walk, feeds: Object.fromEntries(feeds) }]
  })
  const others = names.filter((name) => !known.some(({ feeds }) => name in feeds))
  const feeds = Object.fromEntries(others.map((name) => [name, ""]))
  const opened = others.length === 0 ? [] : [Walk.fromStart(feeds)]
  return { cursor, limit, names, walks: [...known, ...opened], resets: cursor === undefined ? [] : others }
}

const isComplete = (walks: ReadonlyArray<Walk.Walk>) => walks.every(({ target }) => target === undefined)

/** Reads changes for the current organization, in one order. */
export type Feed = (
  request: ChangesRequest
) => Effect.Effect<
  Changes,
  Errors.ChangesNotServed | Errors.CursorInvalid | Errors.CursorExpired | Errors.RecordStoreDown,
  CurrentOrganization
>

export const make = (definition: FeedDefinition, { clock, largePage, read }: Store) => {
  const { name, orderTable, pageLength, render, resources } = definition
  const tables = new Map(resources.map((resource) => [resource.name, resource.table]))
  const byTable = new Map(resources.map((resource) => [resource.table, resource.name]))
  const turns = Semaphore.makeUnsafe(wokenAtOnce)
  /** The snapshot of the feed when its state was last read. */
  let settled: FeedSnapshot | undefined

  const tokenOf = ({ tokens }: FeedSnapshot, resource: string) => tokens[tables.get(resource) ?? ""] ?? ""

  const advance = ({ limit, walks }: ReadPlan, { rows: all, snapshot }: FeedRead) => {
    const hasMore = all.length > limit
    const rows = hasMore ? all.slice(0, pageLength(all, limit)) : all
    const seen = readableIn(snapshot)
    const indexOf = ({ branch }: ChangeRow) =>
      walks.length === 1 ? 0 : walks.findIndex(({ feeds }) => (byTable.get(tableOf(branch ?? "")) ?? "") in feeds)
    const lasts = new Map(rows.map((row) => [indexOf(row), row]))
    const cut = hasMore ? Math.max(...lasts.keys()) : Infinity
    const after = walks.map((before, index) => {
      const feeds = Record.map(before.feeds, (_, resource) => tokenOf(snapshot, resource))
      const walk = { ...before, feeds }
      const row = lasts.get(index)
      const last = row && placeOf(row)
      if (index < cut) return Walk.advanceToEnd(walk, seen, last, snapshot.marked)
      return index === cut && last !== undefined ? Walk.advanceTo(walk, seen, last) : walk
    })
    const isOne = !hasMore && after.length > 1 && !isHeldBack(snapshot)
    return { hasMore, rows, walks: isOne ? [Walk.merge(after, seen)] : after }
  }

  /** A page with the cursor behind it. */
  const renderPage = (
    { names }: ReadPlan,
    snapshot: FeedSnapshot,
    next: Cursor.Cursor,
    page: Omit<ChangesPage, "cursor">,
    isEmpty: boolean
  ) => {
    const { organization } = snapshot
    const cursor = Cursor.encode({ ...next, walks: Cursor.fitting(next.walks) }, { organization, resource: name })
    const followed = names.flatMap((resource) => tables.get(resource) ?? [])
    return Effect.map(clock.lag(snapshot), (lag): Changes => ({
      json: render({ ...page, cursor }),
      cursor,
      hasMore: page.hasMore,
      lag,
      isComplete: isComplete(next.walks),
      rows: page.rows.length,
      isEmpty,
      seen: { organization, tables: followed, snapshot: readableIn(snapshot) }
    }))
  }

  const respond = (plan: ReadPlan, reading: FeedRead) => {
    const { cursor, resets } = plan
    const { snapshot } = reading
    const { hasMore, rows, walks } = advance(plan, reading)
    const isDelayed = isHeldBack(snapshot)
    const had = cursor ?? { ceiling: 0, wal: 0 }
    const { mark, tokens } = snapshot
    const isSameLoad = cursor === undefined || isComplete(cursor.walks) === isComplete(walks)
    const isEmpty = rows.length + resets.length === 0 && isSameLoad
    // The reader of an empty page has seen nothing more that may not survive a failover, unless newer changes are held
    // back: where those are lost, the states before them are there again. So its walk stays as it is. A page of a load
    // leaves removals out, so it says something where it is empty: a removal that is lost brings its record back.
    const reached =
      rows.length === 0 && !isDelayed && isComplete(plan.walks)
        ? { ceiling: had.ceiling, wal: had.wal }
        : { ceiling: Math.max(visibleIn(snapshot).next, had.ceiling), wal: Math.max(snapshot.wal, had.wal) }
    // Nor does that of a replica's reader, until it is half as old as a cursor can be.
    const isYoung = cursor !== undefined && Cursor.needsNoneBelow(cursor, (snapshot.keptFrom + snapshot.marked) / 2)
    const next =
      isEmpty && isDelayed && isYoung
        ? { ...cursor, walks: plan.walks }
        : { ...reached, mark, order: tokens[orderTable] ?? "", walks }
    // A standby that is behind the reader does not show the rest of what the reader has in part.
    const isConsistent = !hasMore && (!isDelayed || horizonOf(snapshot) >= reached.ceiling)
    return renderPage(plan, snapshot, next, { rows, resets, hasMore, isConsistent }, isEmpty)
  }

  /** The response of a standby that is behind the cursor: nothing yet. */
  const respondBehind = Effect.fnUntraced(function* (plan: ReadPlan, snapshot: FeedSnapshot) {
    const { cursor, resets, walks } = plan
    // A mark of a server that was promoted and is gone never arrives.
    if (cursor === undefined || !(yield* clock.hasMark(cursor.mark))) return yield* cursorExpired
    // A resource that has left restarts when it joins again.
    const kept = walks.filter(({ feeds }) => !resets.some((resource) => resource in feeds))
    const nothing = { rows: [], resets: [], hasMore: false, isConsistent: false }
    const changes = yield* renderPage(plan, snapshot, { ...cursor, walks: kept }, nothing, true)
    return { ...changes, lag: Math.max(changes.lag, 1) }
  })

  /** The resources whose feed has ended since the cursor was given out: their tables were truncated. */
  const endedIn = ({ walks }: ReadPlan, snapshot: FeedSnapshot) =>
    walks
      .flatMap(({ feeds }) => Object.entries(feeds))
      .flatMap(([resource, token]) => (token === "" || token === tokenOf(snapshot, resource) ? [] : [resource]))

  /** The changes of a request, where its cursor is resumed as it is. */
  const readSettled = Effect.fnUntraced(function* ({ cursor, limit, walks }: ReadPlan) {
    if (settled === undefined) return undefined
    // After their load, most readers have seen all: a short statement shows it at half the cost of a large page.
    const first = isComplete(walks) && limit > largePage ? 0 : limit
    let reading = yield* read(walks, first)
    if (first < limit && reading.rows.length > 0) reading = yield* read(walks, limit)
    const { snapshot } = reading
    return Cursor.isUnchanged(settled, snapshot, snapshot.tokens[orderTable], cursor) ? reading : undefined
  })

  const readPage = Effect.fnUntraced(function* (
    given: string | undefined,
    limit: number,
    names: ReadonlyArray<string>
  ) {
    const decoded = given === undefined ? undefined : Cursor.decode(given)
    if (given !== undefined && decoded === undefined) return yield* cursorInvalid
    let plan = makePlan({ cursor: decoded, limit, names })
    for (let attempt = 0; attempt < attempts; attempt++) {
      const { cursor } = plan
      const reading = yield* readSettled(plan)
      const { snapshot } = reading ?? (yield* read([], 0, cursor?.mark ?? ""))
      const { isStandby, mark, organization, run, state, tokens } = snapshot
      if (given !== undefined && !Cursor.belongsTo(given, { organization, resource: name })) return yield* cursorInvalid
      if (reading !== undefined) {
        const ended = endedIn(plan, snapshot)
        if (ended.length === 0) return yield* respond(plan, reading)
        plan = makePlan(plan, ended)
        continue
      }
      const verdict = Cursor.verdictOf(snapshot, tokens[orderTable], cursor)
      // A standby may show what its primary wrote after it was started again, without the mark of that run yet: a cursor
      // with the mark before would expire. A standby that is further behind is read all the same.
      const mayLackMark = verdict === "Readable" && isStandby && run !== settled?.run && attempt < attempts - 2
      switch (mayLackMark && !(yield* clock.isOfRun(mark)) ? "Unsettled" : verdict) {
        case "Unsettled":
          yield* Effect.timeoutOption(clock.keep, "3 seconds")
          if (isStandby) yield* Effect.sleep(replication)
          break
        case "Expired":
          return yield* cursorExpired
        case "Behind":
          return yield* respondBehind(plan, snapshot)
        case "Readable":
          settled = snapshot
          // Ids above those that the mark proves may have been given out again.
          if (cursor !== undefined && cursor.mark !== mark) {
            const proven = state?.proven ?? 0
            const walks = cursor.walks.map((walk) => Walk.setBack(walk, proven))
            plan = makePlan({ ...plan, cursor: { ...cursor, mark, walks } })
          }
      }
    }
    return yield* busy
  })

  const all = resources.map((resource) => resource.name)
  return Effect.fnUntraced(function* ({ cursor, limit, resources: names = all, wait = Duration.zero }: ChangesRequest) {
    const begun = Duration.isZero(wait) ? 0 : yield* Time.monotonic
    let page = yield* readPage(cursor, limit, names)
    while (page.isEmpty && !Duration.isZero(wait)) {
      const left = Duration.toMillis(wait) - ((yield* Time.monotonic) - begun)
      if (left <= 0 || !(yield* polling(clock.wait(page.seen, Duration.millis(left))))) break
      // One change may wake all readers: each reads a small page, on a shared connection, in its turn.
      page = yield* turns.withPermit(readPage(page.cursor, Math.min(limit, largePage), names))
    }
    return page
  })
}
