/** The repositories of records. Between the store and the socket, nothing parses their JSON. */
import { Context, type Duration, Effect, Layer } from "effect"
import type { CurrentOrganization } from "../api/CurrentOrganization.ts"
import type * as Errors from "../api/Errors.ts"
import { type Records, resources, searchable } from "../api/records/index.ts"
import type { Resource, Stored } from "../api/records/Resource.ts"
import type { Page } from "../api/records/Requests.ts"
import { RecordDatabase } from "../database/Database.ts"
import { ChangeClock } from "./ChangeClock.ts"
import * as FeedPages from "./FeedPages.ts"
import * as Memory from "./Memory.ts"
import type { Json } from "./Pages.ts"
import * as Postgres from "./Postgres.ts"
import { rowsOf } from "./Rows.ts"

export type { Page }

/** The criteria of a search: values of the resource's filters. */
export type Criteria<R extends Resource = Resource> = {
  readonly [Name in keyof R["filters"]]?: R["filters"][Name]["schema"]["Type"]
}

/** A request for changes: at most `limit` of them, after a cursor or from the start. */
export interface ChangesRequest {
  readonly cursor?: string | undefined
  readonly limit: number
  readonly wait?: Duration.Duration
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
}

/** The failures of a read. The statement that reads may look up the key as well. */
export type ReadError = Errors.Unauthorized | Errors.CredentialStoreDown | Errors.RecordStoreDown

export type ChangesError = Errors.CursorInvalid | Errors.CursorExpired | Errors.ChangesNotServed | ReadError

/**
 * Reads the changes of all resources for the current organization, in one order.
 *
 * @param names the resources; by default, all
 */
export type AllChanges = (
  request: ChangesRequest,
  names?: ReadonlyArray<string>
) => Effect.Effect<Changes, ChangesError, CurrentOrganization>

/** Reads the records of one resource for the current organization. */
export interface Repository<R extends Resource = Resource> {
  readonly resource: R
  /** A page: `{"body":[...]}`, the records in the resource's order. */
  readonly search: (criteria: Criteria<R>, page: Page) => Effect.Effect<Json, ReadError, CurrentOrganization>
  readonly get: (id: string) => Effect.Effect<Json, Errors.RecordNotFound | ReadError, CurrentOrganization>
  readonly changes: (request: ChangesRequest) => Effect.Effect<Changes, ChangesError, CurrentOrganization>
}

export class Repositories extends Context.Service<
  Repositories,
  {
    /** Makes the repository of a resource: call it when a layer is built, not for each request. */
    readonly of: <R extends Resource>(resource: R) => Repository<R>
    readonly changes: AllChanges
  }
>()("practice-data/records/Repository") {
  /** Reads the resources' tables in the record database. */
  static readonly layer = Layer.effect(
    Repositories,
    Effect.gen(function* () {
      const sql = yield* RecordDatabase
      const clock = yield* ChangeClock
      return Repositories.of({
        of: (resource) => Postgres.make(sql, resource, { clock }),
        changes: Postgres.makeChanges(sql, FeedPages.ofAll(searchable), clock)
      })
    })
  )

  /**
   * The fake: records of any number of organizations, held in memory.
   *
   * @param sets records by the name of their resource; by default none
   */
  static readonly layerMemory = (...sets: ReadonlyArray<Partial<Records>>) =>
    Layer.effect(
      Repositories,
      Effect.gen(function* () {
        const stored: ReadonlyArray<Partial<Readonly<Record<string, ReadonlyArray<Stored>>>>> = sets
        const rows = new Map(
          yield* Effect.forEach(resources, (resource: Resource) => {
            const records = stored.flatMap((set) => set[resource.name] ?? [])
            return Effect.map(rowsOf(resource, records), (all) => [resource.name, all] as const)
          })
        )
        return Repositories.of({
          of: (resource) => Memory.make(resource, rows.get(resource.name) ?? []),
          changes: Memory.makeChanges(FeedPages.ofAll(searchable), rows)
        })
      })
    )
}
