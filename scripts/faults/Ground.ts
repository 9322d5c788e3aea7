/** A Postgres that can be stopped, and a migrated database in it: one of our own, or a given one behind a proxy that is cut. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { migrate } from "../../src/database/Migrations.ts"
import * as Cluster from "../../test/system/database/Cluster.ts"
import { clientOf } from "../../test/support/TestDatabase.ts"
import * as TcpProxy from "../../test/support/TcpProxy.ts"

/** Stops the Postgres at once, and starts it again. */
export type Power = Pick<Cluster.Cluster, "stopImmediately" | "start">

export interface Ground {
  readonly power: Power
  /** The database for the service. */
  readonly url: string
  /** A client that reaches the database even when the service does not. */
  readonly sql: PgClient.PgClient
  /** The version of Postgres. */
  readonly version: string
}

const own = Effect.map(Cluster.empty({ settings: { max_connections: 200 } }), (power) => ({
  url: power.url,
  direct: power.url,
  power
}))

/** A new database of a given Postgres. */
const given = Effect.fnUntraced(function* (server: string) {
  const admin = yield* clientOf(server)
  const name = `practice_data_faults_${process.pid}`
  const drop = Effect.orDie(admin.unsafe(`drop database ${name} with (force)`))
  yield* Effect.acquireRelease(admin.unsafe(`create database ${name}`), () => drop)
  const direct = Object.assign(new URL(server), { pathname: `/${name}` }).href
  const { proxy, url } = yield* TcpProxy.through(direct)
  const power: Power = { stopImmediately: proxy.cut("refuse"), start: proxy.mend }
  return { url, direct, power }
})

/** Makes the ground, until the scope closes. */
export const make = Effect.fnUntraced(function* (databaseUrl: string | undefined) {
  const { direct, power, url } = yield* databaseUrl === undefined ? own : given(databaseUrl)
  const sql = yield* clientOf(direct, { maxConnections: 4, statementTimeout: "2 minutes" })
  yield* migrate(sql)
  const [row] = yield* sql<{ version: string }>`select current_setting('server_version') as version`
  const ground: Ground = { power, url, sql, version: row?.version ?? "" }
  return ground
})
