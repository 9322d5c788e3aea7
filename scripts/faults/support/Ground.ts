/**
 * What the scenarios stand on: a Postgres that may be taken away, and databases in it. It is one of our own, or one that
 * is given: then it stays up, and only the way to it is taken away.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect, Redacted, Scope } from "effect"
import { Reactivity } from "effect/reactivity"
import type { SqlError } from "effect/sql/SqlError"
import { connect } from "../../../src/database/Database.ts"
import { migrate } from "../../../src/database/Migrations.ts"
import { loadDemoData } from "../../../src/demo/Load.ts"
import * as TcpProxy from "../../../test/blackbox/support/TcpProxy.ts"
import * as OwnPostgres from "../../../test/faults/support/OwnPostgres.ts"
import * as Proc from "./Proc.ts"

/** A database: its address for the service, and a client that reaches it even when the service does not. */
export interface Database {
  readonly url: string
  readonly sql: PgClient.PgClient
}

/** Taking the Postgres away and giving it back. */
export interface Power {
  /** Connections are refused, and those that there were are broken. */
  readonly stopImmediately: Effect.Effect<void>
  /** It answers again when this returns. */
  readonly start: Effect.Effect<void>
  /** It takes everything and answers nothing. */
  readonly pause: Effect.Effect<void>
  readonly resume: Effect.Effect<void>
}

const clientOf = (url: string, maxConnections: number) =>
  connect({
    url: Redacted.make(url),
    applicationName: "practice-data-faults",
    maxConnections,
    statementTimeout: "2 minutes"
  })

const named = (url: string, database: string) => Object.assign(new URL(url), { pathname: `/${database}` }).href

/** One of our own. */
const own = Effect.gen(function* () {
  const postgres = yield* OwnPostgres.make
  const [file] = yield* postgres.sql<{ pid: string }>`
    select split_part(pg_read_file('postmaster.pid'), chr(10), 1) as pid`
  let postmaster = Number(file?.pid)
  const signalAll = (name: NodeJS.Signals) =>
    Effect.gen(function* () {
      const others = yield* Proc.children(postmaster)
      yield* Effect.forEach([postmaster, ...others], (pid) => Proc.signal(pid, name))
    })
  const start = Effect.gen(function* () {
    yield* postgres.start
    const [again] = yield* postgres.sql<{ pid: string }>`
      select split_part(pg_read_file('postmaster.pid'), chr(10), 1) as pid`.pipe(Effect.retry({ times: 20 }))
    postmaster = Number(again?.pid)
  }).pipe(Effect.orDie)
  const power: Power = {
    stopImmediately: Effect.orDie(postgres.stopImmediately),
    start,
    pause: signalAll("SIGSTOP"),
    resume: signalAll("SIGCONT")
  }
  // A server that is paused could not be stopped.
  yield* Effect.addFinalizer(() => power.resume)
  return { url: postgres.url, direct: postgres.url, power }
})

/** One that is given, behind a proxy. */
const given = Effect.fnUntraced(function* (url: string) {
  const { hostname, port } = new URL(url)
  const proxy = yield* TcpProxy.make({ host: hostname, port: Number(port === "" ? 5432 : port) })
  const power: Power = {
    stopImmediately: proxy.cut("refuse"),
    start: proxy.mend,
    pause: proxy.cut("swallow"),
    resume: proxy.mend
  }
  const proxied = Object.assign(new URL(url), { hostname: proxy.host, port: String(proxy.port) }).href
  return { url: proxied, direct: url, power }
})

/** How many consumption logs the organization oakridge has in the large database. */
export const largeCount = 40_000

const fill = (sql: PgClient.PgClient) => sql`
  insert into consumption_logs (
    organization_id, id, home_clinic, servicing_clinic, invoice_pims_id, invoice_line, invoice_line_pims_id, pet,
    pet_benefit, product_code, product_name, subscription, created_at, updated_at
  )
  select 'org_oakridge', 'large_' || n, 'clinic_' || n % 7, 'clinic_' || n % 5, 'pims_' || n, 'line_' || n,
    'line_pims_' || n, 'pet_' || n % 1000, 'benefit_' || n % 3000, 'CODE-' || n % 100,
    'Product of a wellness plan, number ' || n % 100, 'subscription_' || n % 1000,
    timestamptz '2026-01-01T00:00:00Z' + n * interval '1 second', timestamptz '2026-02-01T00:00:00Z' + n * interval '1 second'
  from generate_series(1, ${largeCount}::integer) n`

const withReactivity = <A, E, R>(effect: Effect.Effect<A, E, R | Reactivity.Reactivity>) =>
  Effect.provide(effect, Reactivity.layer)

/** Makes the ground, which is gone when the scope closes. */
export const make = Effect.fnUntraced(function* (options: {
  readonly databaseUrl: string | undefined
  readonly seed: number
}) {
  const scope = yield* Effect.scope
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
      (name) => Effect.orDie(admin.unsafe(`drop database ${name} with (force)`))
    )
  const template = yield* create()
  yield* Effect.scoped(Effect.flatMap(clientOf(named(server.direct, template), 1), migrate))
  const opened = (name: string) =>
    Effect.map(clientOf(named(server.direct, name), 4), (sql): Database => ({ url: named(server.url, name), sql }))

  const empty = Effect.flatMap(create(template), opened)
  const demo = Effect.tap(empty, ({ sql }) => loadDemoData(sql))
  const large = yield* Effect.cached(
    demo.pipe(
      Effect.tap(({ sql }) => fill(sql)),
      Effect.tap(({ sql }) => sql`vacuum analyze consumption_logs`),
      withReactivity,
      Effect.provideService(Scope.Scope, scope)
    )
  )

  return {
    seed: options.seed,
    /** Whether the Postgres is one of our own, which really ends when it is stopped. */
    isOwn: options.databaseUrl === undefined,
    version: yield* Effect.map(
      admin<{ version: string }>`select current_setting('server_version') as version`,
      ([row]) => row?.version ?? ""
    ),
    power: server.power,
    /** A database that has the tables and no rows. */
    empty: withReactivity(empty),
    /** A database with the demo data. */
    demo: withReactivity(demo),
    /** The database with the demo data and many consumption logs of oakridge, which all scenarios share. */
    large
  }
}, Effect.provide(Reactivity.layer))

export type Ground = Effect.Success<ReturnType<typeof make>>
