/**
 * The reading side of a kind of record. A page or a record is handed out as the JSON text that goes to the client:
 * nothing between the store and the socket looks into a record.
 *
 * Each resource has a service of its own with this interface. `layerMemory` is the fake over typed records; the layer
 * over Postgres is `layerFrom(Postgres.make)`.
 */
import { Context, type Effect, Layer } from "effect"
import type { CredentialStoreDown, RecordNotFound, RecordStoreDown, Unauthorized } from "../api/Errors.ts"
import type { CurrentOrganization } from "../api/CurrentOrganization.ts"
import type * as Field from "../api/records/Field.ts"
import type { Value } from "../api/records/Filter.ts"
import * as Memory from "./Memory.ts"
import type { Filters, Resource, Stored } from "../api/records/Resource.ts"
import type { Page } from "../api/records/Search.ts"

/** The request of a search; of its fields only the resource's filters matter here. */
export type Criteria = Readonly<Record<string, Value | number | null | undefined>>

/** Why a read has no answer. The statement that reads may look up the key as well. */
export type ReadError = Unauthorized | CredentialStoreDown | RecordStoreDown

/** Reads the records of the current organization. */
export interface Repository {
  /** A page as JSON text: `{"body":[...]}`, the records in the resource's order. */
  readonly search: (criteria: Criteria, page: Page) => Effect.Effect<string, ReadError, CurrentOrganization>
  /** A record as JSON text. */
  readonly get: (id: string) => Effect.Effect<string, RecordNotFound | ReadError, CurrentOrganization>
}

/** The class of a resource's repository. `id` is the path of the resource's file. */
export const Service =
  <Self>() =>
  <
    const Id extends string,
    Name extends string,
    Fields extends Field.Fields,
    Hidden extends Field.Fields,
    F extends Filters
  >(
    id: Id,
    resource: Resource<Name, Fields, Hidden, F>
  ) =>
    class extends Context.Service<Self, Repository>()(id) {
      /** What the resource is. */
      static readonly resource = resource

      /** The repository that `make` builds for the resource. */
      static readonly layerFrom = <E, R>(make: (resource: Resource) => Effect.Effect<Repository, E, R>) =>
        Layer.effect(this, make(resource))

      /** The fake: the given records, of any number of organizations, held in memory. */
      static readonly layerMemory = (records: ReadonlyArray<Stored<Fields, Hidden>> = []) =>
        Layer.effect(this, Memory.make(resource, records))
    }
