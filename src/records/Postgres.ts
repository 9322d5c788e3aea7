/** Reads records from Postgres. */
import { Array, Context, Duration, Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { atMost, fair } from "../database/Admission.ts"
import type { Database } from "../database/Database.ts"
import { retryOvertaken } from "../database/SqlFailure.ts"
import { CredentialStoreDown, RecordNotFound, RecordStoreDown, Unauthorized } from "../api/Errors.ts"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { CurrentRequest, found, type RequestFacts } from "../observability/RequestFacts.ts"
import * as Tracing from "../observability/Tracing.ts"
import { keyRow, recordUse, shareOf } from "../keys/KeyLookup.ts"
import * as ChangeClock from "./ChangeClock.ts"
import * as ChangesPostgres from "./ChangesPostgres.ts"
import * as Json from "./Json.ts"
import type { ReadError, Repository } from "./Repository.ts"
import type { Resource } from "../api/records/Resource.ts"
import { askedOf, getQuery, type Keyed, ownerOfKey, type Query, searchQuery, withKey } from "./SearchQuery.ts"
import * as Templates from "./Templates.ts"
import type { Made, Owner, Shaped } from "./Templates.ts"

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
  const attributes = { "db.collection.name": resource.table }
  const keyOwner = sql.literal(ownerOfKey)
  const templates = Templates.make()

  const run = <A extends object, E>(
    key: string,
    limit: number,
    { isPlannedOnce, query }: Made,
    onError: (error: SqlError) => Effect.Effect<unknown, E | SqlError>
  ) => {
    const request = { key, share: shareOfConnections(limit), within, unavailable: RecordStoreDown.from }
    const alone = () => {
      const statement = sql.unsafe<A>(...query)
      return Effect.tapErrorTag(retryOvertaken(isPlannedOnce ? statement : statement.unprepared), "SqlError", onError)
    }
    return isPlannedOnce && limit <= largePage ? sql.runShort(request, query, alone) : sql.run(request, alone())
  }

  /** After a statement that waited for a lock too long: finds out whether it is the keys that are locked. */
  const lookUpAlone = (keyHash: Uint8Array) => (error: SqlError) =>
    error.reason._tag === "LockTimeoutError"
      ? keyRow(sql, keyHash).pipe(
          Effect.mapError(() => new CredentialStoreDown({ detail: "The credential store is busy" })),
          Effect.filterOrFail(Array.isReadonlyArrayNonEmpty, () => unauthorized)
        )
      : Effect.void

  /** The rows of a statement that looks the key up, behind the key's own. */
  const rowsOf = <Row>(
    rows: ReadonlyArray<Keyed<Row>>,
    keyHash: Uint8Array,
    facts: RequestFacts | undefined
  ): Effect.Effect<ReadonlyArray<Row>, Unauthorized> => {
    const key = rows[0]?.key
    if (key == null) return Effect.fail(unauthorized)
    if (facts !== undefined) facts.organization = key.slice(1)
    const own = Effect.succeed(rows.slice(1))
    return key.startsWith("!") ? Effect.andThen(recordUse(sql, keyHash), own) : own
  }

  /**
   * What a query finds for the current organization.
   *
   * @param shaped what its text depends on and its values, where it is worth to keep the text
   */
  const read = <Row extends object>(
    limit: number,
    queryOf: (owner: Fragment, values: ReadonlyArray<string>) => Query<Row>,
    shaped?: Shaped
  ) => {
    const makeFor = (owner: Owner, values: ReadonlyArray<string>): Made => {
      const query = queryOf(typeof owner === "string" ? sql`${owner}` : keyOwner, values)
      const statement = typeof owner === "string" ? query.statement : withKey(sql, owner, query)
      return { query: statement.compile(), isPlannedOnce: query.isPlannedOnce }
    }
    const madeFor = (owner: Owner) => (shaped === undefined ? makeFor(owner, []) : templates(owner, shaped, makeFor))
    return Effect.contextWith(
      (
        context: Context.Context<CurrentOrganization>
      ): Effect.Effect<ReadonlyArray<Row>, ReadError, CurrentOrganization> => {
        const organization = Context.get(context, CurrentOrganization)
        if ("id" in organization) {
          const { id } = organization
          return run<Row, never>(`organization ${id}`, limit, madeFor(id), () => Effect.void)
        }
        const { keyHash } = organization
        const keyed = run<Keyed<Row>, Unauthorized | CredentialStoreDown>(
          shareOf(keyHash),
          limit,
          madeFor(keyHash),
          lookUpAlone(keyHash)
        )
        return Effect.flatMap(keyed, (rows) => rowsOf(rows, keyHash, Context.get(context, CurrentRequest)))
      }
    )
  }

  const asSearch = Tracing.spanned("Records.search", attributes)
  const asGet = Tracing.spanned("Records.get", attributes)

  return {
    resource,
    search: (criteria, page) => {
      const { conditions, ...shaped } = askedOf(resource, criteria, page)
      const queryOf = (owner: Fragment, values: ReadonlyArray<string>) =>
        searchQuery(sql, owner, resource, { conditions, values }, page, deep)
      return read(page.limit, queryOf, shaped).pipe(
        Effect.flatMap((rows) => Effect.as(found(rows.length), Json.list('{"body":[', Json.recordsOf(rows), "]}"))),
        asSearch
      )
    },
    get: (id) =>
      read(1, (owner, [given = ""]) => getQuery(sql, owner, resource, given), { shape: "get", values: [id] }).pipe(
        Effect.flatMap(([row]) => (row?.record == null ? Effect.fail(notFound) : Effect.as(found(1), row.record))),
        asGet
      ),
    changes: ChangesPostgres.make(sql, clock, resource, read, largePage)
  }
}
