/** The repositories of all resources. */
import { Context, Effect, Layer } from "effect"
import { type Records, resources } from "../api/records/index.ts"
import type { Resource, Stored } from "../api/records/Resource.ts"
import { RecordDatabase } from "../database/Database.ts"
import { ChangeClock } from "./ChangeClock.ts"
import * as Memory from "./Memory.ts"
import * as Postgres from "./Postgres.ts"
import type { Repository } from "./Repository.ts"
import { rowsOf } from "./Row.ts"

export class Repositories extends Context.Service<
  Repositories,
  {
    /** The repository of a resource. Made anew at each call: call it when a layer is built, not for each request. */
    readonly of: <R extends Resource>(resource: R) => Repository<R>
  }
>()("practice-data/records/Repositories") {
  /** Reads the resources' tables in the record database. */
  static readonly layer = Layer.effect(
    Repositories,
    Effect.gen(function* () {
      const sql = yield* RecordDatabase
      const clock = yield* ChangeClock
      return Repositories.of({ of: (resource) => Postgres.make(sql, resource, { clock }) })
    })
  )

  /**
   * The fake: records of any number of organizations, held in memory.
   *
   * @param sets records by the name of their resource; a resource that no set names has none
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
        return Repositories.of({ of: (resource) => Memory.make(resource, rows.get(resource.name) ?? []) })
      })
    )
}
