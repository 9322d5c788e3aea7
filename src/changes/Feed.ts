/** The feed of changes: decides whether a cursor is resumed, reads a page, and waits for changes where there are none. */
import { Array, Context, Deferred, Duration, Effect, Layer, Option, Record, Semaphore } from "effect"
import { HttpServerResponse } from "effect/http"
import type { CurrentOrganization } from "../api/Authorization.ts"
import * as Errors from "../api/Errors.ts"
import type { allChanges } from "../api/records/index.ts"
import * as Requests from "../api/records/Requests.ts"
import type { Resource } from "../api/records/Resource.ts"
import type { Json } from "../database/Columns.ts"
import { note } from "../observability/RequestFacts.ts"
import * as Cursor from "./Cursor.ts"
import { type FeedSnapshot, visibleIn } from "./Cursor.ts"
import { branchTable, type ChangeRow, makeRender, orderTable, pageLength, rowPlace } from "./FeedPage.ts"
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
  /** The page: `{"body":[...],"cursor":"...","has_more":...,"is_consistent":...,"schema":"..."}`. */
  readonly json: Json
  readonly cursor: string
  readonly rows: number
  /** True if the reader learns nothing from the page, and may wait for another. */
  readonly isEmpty: boolean
}

interface FeedRead {
  readonly snapshot: FeedSnapshot
  /** One more than the limit if there are more. */
  readonly rows: ReadonlyArray<ChangeRow>
}

/** The most readers of a process that wait at once. */
const maximumReaders = 100

/** The readers that wait for changes: each repeats its read once a second. */
export class LongPolls extends Context.Service<LongPolls>()("practice-data/changes/Feed/LongPolls", {
  make: Effect.gen(function* () {
    const permits = yield* Semaphore.make(maximumReaders)
    const stopped = yield* Deferred.make<void>()
    const ended = Effect.as(Deferred.await(stopped), Option.none())

    /**
     * Repeats a read each second until its result is found, or the time is over. Returns nothing then, at once if too many
     * readers wait, and once the process stops.
     */
    const poll = <A, E, R>(read: Effect.Effect<A, E, R>, isFound: (result: A) => boolean, within: Duration.Duration) =>
      read.pipe(
        Effect.delay("1 second"),
        Effect.repeat({ until: isFound }),
        Effect.asSome,
        Effect.raceFirst(ended),
        Effect.timeoutOrElse({ duration: within, orElse: () => Effect.succeedNone }),
        permits.withPermitsIfAvailable(1),
        Effect.map(Option.flatten)
      )

    return {
      poll,
      /** Ends all polls, now and from now on. */
      stop: Effect.asVoid(Deferred.succeed(stopped, undefined))
    }
  })
}) {
  static readonly layer = Layer.effect(LongPolls, LongPolls.make)
}

/** Waits for changes. */
export type Polls = Pick<LongPolls["Service"], "poll">

/** The store of a feed, for the organization of the request. */
export interface Store<E, R> {
  /** Reads up to `limit` changes of walks, and one more, with the state of the feed for the mark of a cursor. */
  readonly read: (walks: ReadonlyArray<Walk.Walk>, limit: number, mark: string) => Effect.Effect<FeedRead, E, R>
  readonly polls: Polls
}

/** A page of more changes is large: a short read first shows whether there are any. */
const largePage = 250

const cursorInvalid = new Errors.CursorInvalid()
const cursorExpired = new Errors.CursorExpired()
const busy = new Errors.RecordStoreDown({ detail: "The record store is busy" })

/** The most reads for a page, where the feed has to be settled first or a table is truncated. */
const attempts = 6

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

const isComplete = (walks: ReadonlyArray<Walk.Walk>) => walks.every(({ floor }) => floor === undefined)

type FeedError = Errors.ChangesNotServed | Errors.CursorInvalid | Errors.CursorExpired | Errors.RecordStoreDown

/** Reads changes in one order, by default for the current organization. */
export type Feed<E = never, R = CurrentOrganization> = (
  request: ChangesRequest
) => Effect.Effect<Changes, FeedError | E, R>

export const make = <E, R>(resources: ReadonlyArray<Resource>, { polls, read }: Store<E, R>) => {
  const render = makeRender(resources)
  const tables = new Map(resources.map((resource) => [resource.name, resource.table]))
  const names = new Map(resources.map((resource) => [resource.table, resource.name]))

  const feedToken = ({ tokens }: FeedSnapshot, resource: string) => tokens[tables.get(resource) ?? ""] ?? ""

  const advance = ({ limit, walks }: ReadPlan, { rows: all, snapshot }: FeedRead) => {
    const hasMore = all.length > limit
    const rows = hasMore ? all.slice(0, pageLength(all, limit)) : all
    const seen = visibleIn(snapshot)
    const walkIndex = ({ branch }: ChangeRow) =>
      walks.length === 1 ? 0 : walks.findIndex(({ feeds }) => (names.get(branchTable(branch)) ?? "") in feeds)
    const lasts = new Map(rows.map((row) => [walkIndex(row), row]))
    const cut = hasMore ? Math.max(...lasts.keys()) : Infinity
    const after = walks.map((before, index) => {
      const feeds = Record.map(before.feeds, (_, resource) => feedToken(snapshot, resource))
      const walk = { ...before, feeds }
      const row = lasts.get(index)
      const last = row && rowPlace(row)
      if (index < cut) return Walk.advanceToEnd(walk, seen, last, snapshot.marked)
      return index === cut && last !== undefined ? Walk.advanceTo(walk, seen, last) : walk
    })
    const isOne = !hasMore && after.length > 1
    return { hasMore, rows, walks: isOne ? [Walk.merge(after, seen)] : after }
  }

  const respond = (plan: ReadPlan, reading: FeedRead): Changes => {
    const { cursor, resets } = plan
    const { snapshot } = reading
    const { hasMore, rows, walks } = advance(plan, reading)
    const had = cursor ?? { ceiling: 0, wal: 0 }
    // An empty page shows the reader nothing that a failover could lose. An empty page of a load does: it leaves
    // removals out, and a removal that is lost brings its record back.
    const reached =
      rows.length === 0 && isComplete(plan.walks)
        ? { ceiling: had.ceiling, wal: had.wal }
        : { ceiling: Math.max(visibleIn(snapshot).next, had.ceiling), wal: Math.max(snapshot.wal, had.wal) }
    const order = snapshot.tokens[orderTable] ?? ""
    const next = { ...reached, mark: snapshot.mark, order, walks: Cursor.fitting(walks) }
    const text = Cursor.encode(next, snapshot.organization)
    const isSameLoad = cursor === undefined || isComplete(cursor.walks) === isComplete(walks)
    return {
      json: render({ rows, resets, cursor: text, hasMore }),
      cursor: text,
      rows: rows.length,
      isEmpty: rows.length + resets.length === 0 && isSameLoad
    }
  }

  /** The resources whose feed has ended since the cursor was given out: their tables were truncated. */
  const endedIn = ({ walks }: ReadPlan, snapshot: FeedSnapshot) =>
    walks
      .flatMap(({ feeds }) => Object.entries(feeds))
      .flatMap(([resource, token]) => (token === "" || token === feedToken(snapshot, resource) ? [] : [resource]))

  const readChanges = Effect.fnUntraced(function* ({ cursor, limit, walks }: ReadPlan) {
    const mark = cursor?.mark ?? ""
    // After a load, most reads find nothing: a short statement shows that at half the cost of a large page.
    if (!isComplete(walks) || limit <= largePage) return yield* read(walks, limit, mark)
    const first = yield* read(walks, 0, mark)
    return first.rows.length === 0 ? first : yield* read(walks, limit, mark)
  })

  const readPage = Effect.fnUntraced(function* (
    given: string | undefined,
    limit: number,
    requested: ReadonlyArray<string>
  ) {
    const decoded = given === undefined ? undefined : Cursor.decode(given)
    if (given !== undefined && decoded === undefined) return yield* cursorInvalid
    let plan = makePlan({ cursor: decoded, limit, names: requested })
    for (let attempt = 0; attempt < attempts; attempt++) {
      const { cursor } = plan
      const reading = yield* readChanges(plan)
      const { mark, organization, proven, tokens } = reading.snapshot
      if (given !== undefined && !Cursor.belongsTo(given, organization)) return yield* cursorInvalid
      // A cursor has no room for more.
      if (visibleIn(reading.snapshot).running.length > Walk.maximumRunning) return yield* busy
      const verdict = Cursor.judge(reading.snapshot, tokens[orderTable], cursor)
      if (verdict === "Expired") return yield* cursorExpired
      const ended = endedIn(plan, reading.snapshot)
      if (verdict === "Unsettled") {
        // The clock of the changes restarts the order, or writes the first mark of this run of the server.
        yield* Effect.sleep("500 millis")
      } else if (cursor !== undefined && cursor.mark !== mark) {
        // Ids above those that the mark proves may have been given out again.
        const walks = cursor.walks.map((walk) => Walk.setBack(walk, proven ?? 0))
        plan = makePlan({ ...plan, cursor: { ...cursor, mark, walks } })
      } else if (ended.length > 0) {
        plan = makePlan(plan, ended)
      } else return respond(plan, reading)
    }
    return yield* busy
  })

  const all = resources.map((resource) => resource.name)
  return Effect.fnUntraced(function* ({
    cursor,
    limit,
    resources: requested = all,
    wait = Duration.zero
  }: ChangesRequest) {
    const page = yield* readPage(cursor, limit, requested)
    if (!page.isEmpty || Duration.isZero(wait)) return page
    const found = yield* polls.poll(readPage(page.cursor, limit, requested), ({ isEmpty }) => !isEmpty, wait)
    return Option.getOrElse(found, () => page)
  })
}

/** Answers a request for changes of all resources, whose organization was checked. */
export const changesHandler = <E, R>(feed: Feed<E, R>) =>
  Effect.fnUntraced(function* (payload: (typeof allChanges.endpoints.changes)["~Payload"]["Type"]) {
    const limit = payload.limit ?? Requests.maximumChanges
    const page = yield* feed({
      cursor: payload.cursor ?? undefined,
      limit: yield* Requests.between("limit", limit, 1, Requests.maximumChanges),
      resources: payload.resources ? Array.dedupe(payload.resources) : undefined,
      wait: Duration.seconds(yield* Requests.between("wait", payload.wait ?? 0, 0, Requests.longestWait))
    })
    yield* note({ rows: page.rows })
    return HttpServerResponse.uint8Array(page.json, { contentType: "application/json" })
  })
