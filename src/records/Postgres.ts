/** Reads records from Postgres. */
import { Duration, Effect, Schema } from "effect"
import type { Fragment } from "effect/sql/Statement"
import { ChangesNotServed, RecordNotFound, RecordStoreDown } from "../api/Errors.ts"
import type { Resource } from "../api/records/Resource.ts"
import { atMost, fair } from "../database/Admission.ts"
import type { Database } from "../database/Database.ts"
import * as OrganizationReads from "../keys/OrganizationReads.ts"
import { note } from "../observability/RequestFacts.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as ChangeClock from "./ChangeClock.ts"
import * as Cursor from "./Cursor.ts"
import * as Feed from "./Feed.ts"
import { type ChangeRow, type Kind, ofResource } from "./FeedPages.ts"
import * as FeedQuery from "./FeedQuery.ts"
import { searchPage } from "./Pages.ts"
import type { AllChanges, Repository } from "./Repository.ts"
import { askedOf, getQuery, searchQuery } from "./SearchQuery.ts"

/**
 * Large pages keep this process busy, not the database: in parallel they are no faster, and delay the reads of other
 * organizations.
 */
const largePage = 250

// Made once: a stack trace costs more than the rest of the response.
const notFound = new RecordNotFound()
const notServed = new ChangesNotServed()

const within = Duration.seconds(8)

/** Reads up to `limit` rows. */
const reader = (sql: Database) => {
  const readAs = OrganizationReads.make(sql)
  return <Row extends object>(
    limit: number,
    queryOf: OrganizationReads.Read<Row>["queryOf"],
    shaped?: OrganizationReads.Shaped
  ) => {
    const isShort = limit <= largePage
    return readAs({ queryOf, shaped, share: isShort ? fair : atMost(1), within, isShort })
  }
}

const spanned = (name: string, collection: string) => Tracing.spanned(name, { "db.collection.name": collection })

const decode = <S extends Schema.Codec<unknown, unknown>>(schema: S) => {
  const decodeText = Schema.decodeEffect(Schema.fromJsonString(schema))
  return ([first]: ReadonlyArray<ChangeRow>) => Effect.orDie(decodeText(first?.removal ?? ""))
}
const decodeSnapshot = decode(Cursor.FeedSnapshot)
const decodeState = decode(Cursor.FeedState)

/** Reads the changes of a feed. */
export const makeChanges = (sql: Database, kind: Kind, clock: ChangeClock.ChangeClock["Service"]): AllChanges => {
  const read = reader(sql)

  /** Fails unless all records are on one server: a position in the order means nothing on another. */
  const requireSingle = Effect.gen(function* () {
    yield* sql.distribution.refresh
    const isDistributed = sql.distribution.isDistributed()
    if (isDistributed === undefined) return yield* new RecordStoreDown()
    if (isDistributed) return yield* notServed
  })

  const changes = Feed.make(kind, {
    clock,
    largePage,
    check: Effect.suspend(() => (sql.distribution.isDistributed() === false ? Effect.void : requireSingle)),
    read: (walks, limit) =>
      read<ChangeRow>(
        limit,
        (owner, [ranges = ""]) =>
          FeedQuery.changesQuery(sql, owner, kind, limit, FeedQuery.snapshotQuery(sql, owner, kind), ranges),
        { shape: `${kind.name} changes ${limit}`, values: [FeedQuery.rangesText(kind, walks)] }
      ).pipe(
        Effect.flatMap((rows) => Effect.map(decodeSnapshot(rows), (snapshot) => ({ snapshot, rows: rows.slice(1) })))
      ),
    state: (mark) =>
      Effect.flatMap(
        read<ChangeRow>(1, (owner) => FeedQuery.stateQuery(sql, owner, kind, mark)),
        decodeState
      )
  })
  const span = spanned("Records.changes", kind.name)
  return (request, names) => span(changes(request, names))
}

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
  const read = reader(sql)
  const [asSearch, asGet] = [spanned("Records.search", resource.table), spanned("Records.get", resource.table)]
  return {
    resource,
    search: (criteria, page) => {
      const { conditions, ...shaped } = askedOf(resource, criteria, page)
      const queryOf = (owner: Fragment, values: ReadonlyArray<string>) =>
        searchQuery(sql, owner, resource, { conditions, values }, page, deep)
      return asSearch(Effect.flatMap(read(page.limit, queryOf, shaped), searchPage))
    },
    get: (id) =>
      read(1, (owner, [given = ""]) => getQuery(sql, owner, resource, given), { shape: "get", values: [id] }).pipe(
        Effect.flatMap(([row]) =>
          row?.record == null ? Effect.fail(notFound) : Effect.as(note({ rows: 1 }), row.record)
        ),
        asGet
      ),
    changes: makeChanges(sql, ofResource(resource), clock)
  }
}
