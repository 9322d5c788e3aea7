/** Reads records from Postgres. */
import { Duration, Effect } from "effect"
import type { Fragment } from "effect/sql/Statement"
import { atMost, fair } from "../database/Admission.ts"
import type { Database } from "../database/Database.ts"
import { RecordNotFound } from "../api/Errors.ts"
import { note } from "../observability/RequestFacts.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as OrganizationReads from "../keys/OrganizationReads.ts"
import type { Read, Shaped } from "../keys/OrganizationReads.ts"
import * as ChangeClock from "./ChangeClock.ts"
import * as ChangesPostgres from "./ChangesPostgres.ts"
import * as Json from "./Json.ts"
import type { Repository } from "./Repository.ts"
import type { Resource } from "../api/records/Resource.ts"
import { askedOf, getQuery, searchQuery } from "./SearchQuery.ts"

/**
 * Large pages keep this process busy, and not the database: more of them at once make no response come sooner, and
 * keep others waiting for theirs.
 */
const largePage = 250

const shareOfConnections = (limit: number) => (limit > largePage ? atMost(1) : fair)

// Made once: a stack trace costs more than the rest of the response.
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
  const readAs = OrganizationReads.make(sql)
  const read = <Row extends object>(limit: number, queryOf: Read<Row>["queryOf"], shaped?: Shaped) =>
    readAs({ queryOf, shaped, share: shareOfConnections(limit), within, isShort: limit <= largePage })

  const asSearch = Tracing.spanned("Records.search", attributes)
  const asGet = Tracing.spanned("Records.get", attributes)

  return {
    resource,
    search: (criteria, page) => {
      const { conditions, ...shaped } = askedOf(resource, criteria, page)
      const queryOf = (owner: Fragment, values: ReadonlyArray<string>) =>
        searchQuery(sql, owner, resource, { conditions, values }, page, deep)
      return read(page.limit, queryOf, shaped).pipe(
        Effect.flatMap((rows) =>
          Effect.as(note({ rows: rows.length }), Json.list('{"body":[', Json.recordsOf(rows), "]}"))
        ),
        asSearch
      )
    },
    get: (id) =>
      read(1, (owner, [given = ""]) => getQuery(sql, owner, resource, given), { shape: "get", values: [id] }).pipe(
        Effect.flatMap(([row]) =>
          row?.record == null ? Effect.fail(notFound) : Effect.as(note({ rows: 1 }), row.record)
        ),
        asGet
      ),
    changes: ChangesPostgres.make(sql, clock, resource, read, largePage)
  }
}
