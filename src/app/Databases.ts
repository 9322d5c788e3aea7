/** The databases that the configuration names, with the metrics of their pools. */
import { Layer } from "effect"
import * as Databases from "../database/Databases.ts"
import { Meters } from "../database/Store.ts"
import * as PoolMetrics from "../observability/PoolMetrics.ts"

export { type DatabaseSettings, namesOf, type Options, poolsOf } from "../database/Databases.ts"

export const layer = (settings: Databases.DatabaseSettings, options: Databases.Options) =>
  Layer.provide(Databases.layer(settings, options), Layer.succeed(Meters, PoolMetrics.make))
