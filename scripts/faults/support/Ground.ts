/** A Postgres that can be stopped, and databases in it: one of our own, or a given one behind a proxy that is cut. */
import type { PgClient } from "@effect/sql-pg"
import { Effect, Redacted, type Scope } from "effect"
import { Reactivity } from "effect/reactivity"
import type { SqlError } from "effect/sql/SqlError"
import { connect } from "../../../src/database/Database.ts"
import { migrate } from "../../../src/database/Migrations.ts"
import * as TcpProxy from "../../../test/support/TcpProxy.ts"
import * as Cluster from "../../../test/support/Cluster.ts"

/** A database: its address for the service, and a client that reaches it even when the service does not. */
export interface Database {
  readonly url: string
  readonly sql: PgClient.PgClient
}

/** Stops the Postgres and starts it again. */
export interface Power {
  /** Refuses connections, and breaks the open ones. */
  readonly stopImmediately: Effect.Effect<void>
  /** Returns once it answers. */
  readonly start: Effect.Effect<void>
}

const clientOf = (url: string, maxConnections: number) =>
  connect({
    url: Redacted.make(url),
    applicationName: "practice-data-faults",
    maxConnections,
    statementTimeout: "2 minutes"
  })

const named = (url: string, database: string) => Object.assign(new URL(url), { pathname: `/${database}` }).href

const own = Effect.map(Cluster.empty({ settings: { max_connections: 200 } }), ({ start, stopImmediately, url }) => ({
  url,
  direct: url,
  power: { stopImmediately: Effect.orDie(stopImmediately), start: Effect.orDie(start) } satisfies Power
}))

const given = Effect.fnUntraced(function* (url: string) {
  const { hostname, port } = new URL(url)
  const proxy = yield* TcpProxy.make({ host: hostname, port: Number(port === "" ? 5432 : port) })
  const power: Power = { stopImmediately: proxy.cut("refuse"), start: proxy.mend }
  const proxied = Object.assign(new URL(url), { hostname: proxy.host, port: String(proxy.port) }).href
  return { url: proxied, direct: url, power }
})

/** Makes the ground, until the scope closes. */
export const make = Effect.fnUntraced(function* (options: {
  readonly databaseUrl: string | undefined
  readonly seed: number
}) {
  const server = yield* options.databaseUrl === undefined ? own : given(options.databaseUrl)
  const admin = yield* clientOf(server.direct, 1)
  const prefix = `practice_data_faults_${process.pid}`
  let made = 0

  const create = (template?: string): Effect.Effect<string, SqlError, Scope.Scope> =>
    Effect.acquireRelease(
      Effect.suspend(() => {
        const name = `${prefix}_${++made}`
        return admin
          .unsafe(`create database ${name}${template === undefined ? "" : ` template ${template}`}`)
          .pipe(Effect.as(name))
      }),
      // One of our own goes away as a whole.
      (name) =>
        options.databaseUrl === undefined
          ? Effect.void
          : Effect.orDie(admin.unsafe(`drop database ${name} with (force)`))
    )
  const template = yield* create()
  yield* Effect.scoped(Effect.flatMap(clientOf(named(server.direct, template), 1), migrate))
  const opened = (name: string) =>
    Effect.map(clientOf(named(server.direct, name), 4), (sql): Database => ({ url: named(server.url, name), sql }))

  return {
    seed: options.seed,
    version: yield* Effect.map(
      admin<{ version: string }>`select current_setting('server_version') as version`,
      ([row]) => row?.version ?? ""
    ),
    power: server.power,
    /** A database with tables and no rows. */
    empty: Effect.provide(Effect.flatMap(create(template), opened), Reactivity.layer)
  }
}, Effect.provide(Reactivity.layer))

export type Ground = Effect.Success<ReturnType<typeof make>>
