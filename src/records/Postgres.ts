/** Reads records from Postgres. */
import { Array, Duration, Effect, Option, Predicate, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment, Statement } from "effect/sql/Statement"
import { atMost, fair } from "../database/Admission.ts"
import type { Database } from "../database/Database.ts"
import {
  CredentialStoreDown,
  CursorExpired,
  CursorInvalid,
  RecordNotFound,
  RecordStoreDown,
  Unauthorized
} from "../api/Errors.ts"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { keyRow, recordUse, shareOf } from "../keys/KeyLookup.ts"
import * as ChangeClock from "./ChangeClock.ts"
import { changesQuery } from "./ChangesQuery.ts"
import * as Cursor from "./Cursor.ts"
import * as Feed from "./Feed.ts"
import { pageOf } from "./ChangesPage.ts"
import type { ChangesRequest, ReadError, Repository } from "./Repository.ts"
import type { Resource } from "../api/records/Resource.ts"
import { type Found, getQuery, ownerOfKey, type Query, searchQuery, withKey } from "./SearchQuery.ts"

/**
 * Large pages keep this process busy, and not the database: more of them at once make no response come sooner, and
 * keep others waiting for theirs.
 */
const shareOfConnections = (limit: number) => (limit > 250 ? atMost(1) : fair)

// Made once: a stack trace costs more than the rest of the response.
const unauthorized = new Unauthorized()
const notFound = new RecordNotFound()
const cursorInvalid = new CursorInvalid()
const cursorExpired = new CursorExpired()

const decodeState = Schema.decodeEffect(Schema.fromJsonString(Feed.State))

/** How long a read may take. */
const within = Duration.seconds(8)

export interface Options {
  /** The clock of the changes; by default, one of the database that is read. */
  readonly clock?: ChangeClock.ChangeClock["Service"]
  /** As in `searchQuery`. */
  readonly deep?: number
}

/** A repository over the table of a resource. */
export const make = <R extends Resource>(
  sql: Database,
  resource: R,
  { clock = ChangeClock.make(sql, sql), deep }: Options = {}
): Repository<R> => {
  const run = <A, E>(
    key: string,
    limit: number,
    isPlannedOnce: boolean,
    statement: Statement<A>,
    onError: (error: SqlError) => Effect.Effect<unknown, E | SqlError>
  ) =>
    sql.run(
      { key, share: shareOfConnections(limit), within, unavailable: RecordStoreDown.from },
      Effect.tapErrorTag(isPlannedOnce ? statement : statement.unprepared, "SqlError", onError)
    )

  /** After a statement that waited for a lock too long: finds out whether it is the keys that are locked. */
  const lookUpAlone = (keyHash: Uint8Array) => (error: SqlError) =>
    error.reason._tag === "LockTimeoutError"
      ? keyRow(sql, keyHash).pipe(
          Effect.mapError(() => new CredentialStoreDown({ detail: "The credential store is busy" })),
          Effect.filterOrFail(Array.isReadonlyArrayNonEmpty, () => unauthorized)
        )
      : Effect.void

  /** What a query finds for the current organization. A query that finds nothing may have a row of nulls. */
  const read = Effect.fnUntraced(function* <Row extends Found>(
    limit: number,
    queryOf: (owner: Fragment) => Query<Row>
  ): Effect.fn.Return<ReadonlyArray<Row>, ReadError, CurrentOrganization> {
    const organization = yield* CurrentOrganization
    if ("id" in organization) {
      const { id } = organization
      const { isPlannedOnce, statement } = queryOf(sql`${id}`)
      return yield* run(`organization ${id}`, limit, isPlannedOnce, statement, () => Effect.void)
    }
    const { keyHash } = organization
    const query = queryOf(sql.literal(ownerOfKey))
    const statement = withKey(sql, keyHash, query)
    const rows = yield* run(shareOf(keyHash), limit, query.isPlannedOnce, statement, lookUpAlone(keyHash))
    const [key] = rows
    if (key === undefined) return yield* unauthorized
    if (key.is_first_use_today) yield* recordUse(sql, keyHash)
    return rows
  })

  const recordsIn = (rows: ReadonlyArray<Found>) => rows.map(({ record }) => record).filter(Predicate.isNotNull)

  /** A page of changes; none where the feed has to be settled first. */
  const readChanges = Effect.fnUntraced(function* ({ cursor: given, limit }: ChangesRequest) {
    const cursor = given === undefined ? undefined : Option.getOrUndefined(Cursor.decode(given))
    if (given !== undefined && cursor === undefined) return yield* cursorInvalid
    const [first, ...changes] = yield* read(limit, (owner) => changesQuery(sql, owner, resource, cursor, limit))
    if (first === undefined || first.record === null) return Option.none()
    const state = yield* Effect.orDie(decodeState(first.record))
    const owner = { organization: state.organization, resource: resource.name }
    if (cursor !== undefined && Cursor.encode(cursor, owner) !== given) return yield* cursorInvalid
    const verdict = Feed.verdictOf(state, cursor)
    const lag = Math.max(yield* clock.lag(state), Math.ceil(state.replayLag))
    switch (verdict._tag) {
      case "Unsettled":
        return Option.none()
      case "Expired":
        return yield* cursorExpired
      case "Behind":
        return Option.some(pageOf([], limit, Math.max(lag, 1), () => given ?? ""))
      case "Readable": {
        const before = cursor ?? Cursor.start
        const ceiling = Math.max(state.ceiling, cursor?.ceiling ?? 0)
        const seen = { feed: state.token, mark: verdict.mark, ceiling }
        return Option.some(pageOf(changes, limit, lag, (last = before) => Cursor.encode({ ...seen, ...last }, owner)))
      }
    }
  })

  return {
    resource,
    search: Effect.fn("Records.search", { attributes: { table: resource.table } })(function* (criteria, page) {
      const records = yield* read(page.limit, (owner) => searchQuery(sql, owner, resource, criteria, page, deep))
      return `{"body":[${recordsIn(records).join(",")}]}`
    }),
    get: Effect.fn("Records.get", { attributes: { table: resource.table } })(function* (id) {
      const [found] = yield* read(1, (owner) => getQuery(sql, owner, resource, id))
      return found?.record ?? (yield* notFound)
    }),
    changes: Effect.fn("Records.changes", { attributes: { table: resource.table } })(function* (request) {
      const page = yield* readChanges(request)
      if (Option.isSome(page)) return page.value
      yield* clock.keep
      return yield* Effect.flatMap(
        readChanges(request),
        Option.match({
          onSome: Effect.succeed,
          onNone: () => Effect.fail(new RecordStoreDown({ detail: "The record store is busy" }))
        })
      )
    })
  }
}
