/** Reads records from Postgres. */
import { Effect, Schema } from "effect"
import type { Fragment } from "effect/sql/Statement"
import { ChangesNotServed, RecordNotFound, RecordStoreDown } from "../api/Errors.ts"
import type { Resource } from "../api/records/Resource.ts"
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

// Made once: a stack trace costs more than the rest of the response.
const notFound = new RecordNotFound()
const notServed = new ChangesNotServed()

const spanned = (name: string, collection: string) => Tracing.spanned(name, { "db.collection.name": collection })

const decodeSnapshot = Schema.decodeEffect(Schema.fromJsonString(Cursor.FeedSnapshot))

export const makeChanges = (sql: Database, kind: Kind, clock: ChangeClock.ChangeClock["Service"]): AllChanges => {
  const read = OrganizationReads.make(sql)

  /** Fails unless all records are on one server: a position in the order means nothing on another. */
  const requireSingle = Effect.gen(function* () {
    yield* sql.distribution.refresh
    const isDistributed = sql.distribution.isDistributed()
    if (isDistributed === undefined) return yield* new RecordStoreDown()
    if (isDistributed) return yield* notServed
  })

  const changes = Feed.make(kind, {
    clock,
    largePage: OrganizationReads.largePage,
    check: Effect.suspend(() => (sql.distribution.isDistributed() === false ? Effect.void : requireSingle)),
    read: (walks, limit, mark) => {
      const isMarked = mark !== undefined
      const found = read<ChangeRow>({
        limit,
        shape: `${kind.name} changes ${limit} ${isMarked}`,
        values: [FeedQuery.rangesText(kind, walks), ...(isMarked ? [mark] : [])],
        queryOf: (owner, [ranges = "", of]) =>
          FeedQuery.changesQuery(sql, owner, kind, limit, FeedQuery.snapshotQuery(sql, owner, kind, of), ranges)
      })
      return Effect.flatMap(found, ([first, ...rows]) =>
        Effect.map(Effect.orDie(decodeSnapshot(first?.removal ?? "")), (snapshot) => ({ snapshot, rows }))
      )
    }
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

export const make = <R extends Resource>(
  sql: Database,
  resource: R,
  { clock = ChangeClock.make(sql, sql), deep }: Options = {}
): Repository<R> => {
  const read = OrganizationReads.make(sql)
  const [asSearch, asGet] = [spanned("Records.search", resource.table), spanned("Records.get", resource.table)]
  return {
    resource,
    search: (criteria, page) => {
      const { conditions, shape, values } = askedOf(resource, criteria, page)
      const queryOf = (owner: Fragment, of: ReadonlyArray<string>) =>
        searchQuery(sql, owner, resource, { conditions, values: of }, page, deep)
      return asSearch(Effect.flatMap(read({ limit: page.limit, shape, values, queryOf }), searchPage))
    },
    get: (id) =>
      read({
        limit: 1,
        shape: "get",
        values: [id],
        queryOf: (owner, [given = ""]) => getQuery(sql, owner, resource, given)
      }).pipe(
        Effect.flatMap(([row]) =>
          row === undefined ? Effect.fail(notFound) : Effect.as(note({ rows: 1 }), row.record)
        ),
        asGet
      ),
    changes: makeChanges(sql, ofResource(resource), clock)
  }
}
