/** Reads records from Postgres. */
import { Duration, Effect } from "effect"
import type { Fragment } from "effect/sql/Statement"
import { RecordNotFound } from "../api/Errors.ts"
import type { Resource } from "../api/records/Resource.ts"
import { atMost, fair } from "../database/Admission.ts"
import type { Database } from "../database/Database.ts"
import * as OrganizationReads from "../keys/OrganizationReads.ts"
import { note } from "../observability/RequestFacts.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as ChangeClock from "./ChangeClock.ts"
import * as Feed from "./Feed.ts"
import { searchPage } from "./Pages.ts"
import type { Repository } from "./Repository.ts"
import { askedOf, getQuery, searchQuery } from "./SearchQuery.ts"

/**
 * Large pages keep this process busy, not the database: in parallel they are no faster, and delay the reads of other
 * organizations.
 */
const largePage = 250

// Made once: a stack trace costs more than the rest of the response.
const notFound = new RecordNotFound()

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
  const readAs = OrganizationReads.make(sql)
  const read: Feed.ReadRows = (limit, queryOf, shaped) => {
    const isShort = limit <= largePage
    return readAs({ queryOf, shaped, share: isShort ? fair : atMost(1), within, isShort })
  }
  const spanned = (name: string) => Tracing.spanned(name, { "db.collection.name": resource.table })
  const [asSearch, asGet, asChanges] = [spanned("Records.search"), spanned("Records.get"), spanned("Records.changes")]
  const changes = Feed.make(sql, clock, resource, read, largePage)
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
    changes: (request) => asChanges(changes(request))
  }
}
