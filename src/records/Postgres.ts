/** Reads records from Postgres. */
import { Array, Duration, Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment, Statement } from "effect/sql/Statement"
import { atMost, fair } from "../database/Admission.ts"
import type { Database } from "../database/Database.ts"
import { retryOvertaken } from "../database/SqlFailure.ts"
import { CredentialStoreDown, RecordNotFound, RecordStoreDown, Unauthorized } from "../api/Errors.ts"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { CurrentRequest, found } from "../observability/RequestFacts.ts"
import { keyRow, recordUse, shareOf } from "../keys/KeyLookup.ts"
import * as ChangeClock from "./ChangeClock.ts"
import * as ChangesPostgres from "./ChangesPostgres.ts"
import * as Json from "./Json.ts"
import type { ReadError, Repository } from "./Repository.ts"
import type { Resource } from "../api/records/Resource.ts"
import { getQuery, ownerOfKey, type Query, searchQuery, withKey } from "./SearchQuery.ts"

/**
 * Large pages keep this process busy, and not the database: more of them at once make no response come sooner, and
 * keep others waiting for theirs.
 */
const largePage = 250

const shareOfConnections = (limit: number) => (limit > largePage ? atMost(1) : fair)

// Made once: a stack trace costs more than the rest of the response.
const unauthorized = new Unauthorized()
const notFound = new RecordNotFound()

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
  ) => {
    const request = { key, share: shareOfConnections(limit), within, unavailable: RecordStoreDown.from }
    const statements = Effect.tapErrorTag(
      retryOvertaken(isPlannedOnce ? statement : statement.unprepared),
      "SqlError",
      onError
    )
    return isPlannedOnce && limit <= largePage
      ? sql.runShort(request, statement, statements)
      : sql.run(request, statements)
  }

  /** After a statement that waited for a lock too long: finds out whether it is the keys that are locked. */
  const lookUpAlone = (keyHash: Uint8Array) => (error: SqlError) =>
    error.reason._tag === "LockTimeoutError"
      ? keyRow(sql, keyHash).pipe(
          Effect.mapError(() => new CredentialStoreDown({ detail: "The credential store is busy" })),
          Effect.filterOrFail(Array.isReadonlyArrayNonEmpty, () => unauthorized)
        )
      : Effect.void

  /** What a query finds for the current organization. */
  const read = Effect.fnUntraced(function* <Row extends object>(
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
    const key = rows[0]?.key
    if (key == null) return yield* unauthorized
    const facts = yield* CurrentRequest
    if (facts !== undefined) facts.organization = key.slice(1)
    if (key.startsWith("!")) yield* recordUse(sql, keyHash)
    return rows.slice(1)
  })

  return {
    resource,
    search: Effect.fn("Records.search", { attributes: { "db.collection.name": resource.table } })(
      function* (criteria, page) {
        const records = yield* read(page.limit, (owner) => searchQuery(sql, owner, resource, criteria, page, deep))
        yield* found(records.length)
        return Json.list(
          '{"body":[',
          records.flatMap(({ record }) => record ?? []),
          "]}"
        )
      }
    ),
    get: Effect.fn("Records.get", { attributes: { "db.collection.name": resource.table } })(function* (id) {
      const [row] = yield* read(1, (owner) => getQuery(sql, owner, resource, id))
      if (row?.record == null) return yield* notFound
      yield* found(1)
      return row.record
    }),
    changes: ChangesPostgres.make(sql, clock, resource, read)
  }
}
