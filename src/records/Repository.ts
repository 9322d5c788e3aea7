/**
 * Reads the records of one resource. A page or a record is returned as the JSON that goes to the client: nothing
 * between the store and the socket looks into a record.
 */
import type { Duration, Effect } from "effect"
import type {
  ChangesNotServed,
  CredentialStoreDown,
  CursorExpired,
  CursorInvalid,
  RecordNotFound,
  RecordStoreDown,
  Unauthorized
} from "../api/Errors.ts"
import type { CurrentOrganization } from "../api/CurrentOrganization.ts"
import type { Json } from "./Json.ts"
import type { Resource } from "../api/records/Resource.ts"

/** What a search asks for: values of the resource's filters. */
export type Criteria<R extends Resource = Resource> = {
  readonly [Name in keyof R["filters"]]?: R["filters"][Name]["schema"]["Type"]
}

/** The page of a search: at most `limit` records, after the first `offset`. */
export interface Page {
  readonly limit: number
  readonly offset: number
}

/** What is asked of a feed of changes: at most `limit` changes after a cursor, or from the beginning. */
export interface ChangesRequest {
  readonly cursor?: string | undefined
  readonly limit: number
  /** How long to wait where there is no change yet. */
  readonly wait?: Duration.Duration
}

/** A page of a feed of changes. */
export interface Changes {
  /** The page: `{"body":[...],"removed":[...],"cursor":"...","has_more":...}`. */
  readonly json: Json
  /** For how many seconds changes have been held back. */
  readonly lag: number
  /** True if a reader that began without a cursor has every record that existed then. */
  readonly isComplete: boolean
  readonly cursor: string
  /** How many records and removals it has. */
  readonly rows: number
  /** True if it has nothing new. */
  readonly isEmpty: boolean
}

/** Why a read fails. The statement that reads may look up the key as well. */
export type ReadError = Unauthorized | CredentialStoreDown | RecordStoreDown

/** Reads the records of the current organization. */
export interface Repository<R extends Resource = Resource> {
  readonly resource: R
  /** A page: `{"body":[...]}`, the records in the resource's order. */
  readonly search: (criteria: Criteria<R>, page: Page) => Effect.Effect<Json, ReadError, CurrentOrganization>
  /** A record. */
  readonly get: (id: string) => Effect.Effect<Json, RecordNotFound | ReadError, CurrentOrganization>
  /** The next page of the feed of changes. */
  readonly changes: (
    request: ChangesRequest
  ) => Effect.Effect<Changes, CursorInvalid | CursorExpired | ChangesNotServed | ReadError, CurrentOrganization>
}
