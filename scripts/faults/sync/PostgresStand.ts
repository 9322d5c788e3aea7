/** A stand on real Postgres: services that are started and asked over HTTP, and a streaming replica where it is our own. */
import { Effect, Redacted, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import { connect } from "../../../src/database/Database.ts"
import { migrate } from "../../../src/database/Migrations.ts"
import * as Cluster from "../../../test/support/Cluster.ts"
import * as HttpService from "./HttpService.ts"
import type { Stand } from "./Stand.ts"
import * as Session from "./Session.ts"
import { sequence } from "./statements.ts"

// A process that is killed loses nothing that the system was given to write. What commits asynchronously is soon written.
const settings = {
  fsync: "off",
  full_page_writes: "off",
  max_connections: 200,
  max_prepared_transactions: 50,
  wal_writer_delay: "10ms"
} as const

// Behind enough for readers to meet it.
const ofReplica = { recovery_min_apply_delay: "10ms" } as const

const own = Effect.gen(function* () {
  const primary = yield* Cluster.empty({ settings })
  const replica = yield* Cluster.standbyOf(primary, { ...settings, ...ofReplica })
  return { url: primary.url, replicaUrl: replica.url }
})

const ready = Effect.fnUntraced(function* (url: string) {
  const sql = yield* connect({
    url: Redacted.make(url),
    applicationName: "practice-data-sync",
    maxConnections: 1,
    statementTimeout: "1 minute"
  })
  yield* migrate(sql)
  yield* sql.unsafe(`create sequence if not exists ${sequence}`)
  const [row] = yield* sql<{ version: string }>`select current_setting('server_version') as version`
  return row?.version ?? ""
}, Effect.scoped)

const until = (session: Session.Session, text: string, params: ReadonlyArray<unknown>) =>
  Effect.repeat(
    Effect.map(session.run(text, params), (rows) => rows.length > 0),
    { until: (isSo) => isSo, schedule: Schedule.spaced("1 millis") }
  )

/**
 * Waits until no transaction is open that was open when this was called: then all that was committed lies below the
 * horizon. A commit that is not asynchronous brings all before it to the disk, and so to the replica.
 */
export const caughtUp = (observer: Session.Session, replica?: Session.Session) =>
  Effect.gen(function* () {
    const [now]: ReadonlyArray<{ readonly id?: string }> = yield* observer.run(
      "select pg_current_xact_id()::text as id"
    )
    yield* until(observer, "select where pg_snapshot_xmin(pg_current_snapshot()) > $1::xid8", [now?.id])
    if (replica === undefined) return
    const [written]: ReadonlyArray<{ readonly lsn?: string }> = yield* observer.run(
      "select pg_current_wal_insert_lsn()::text as lsn"
    )
    yield* until(replica, "select where pg_last_wal_replay_lsn() >= $1::pg_lsn", [written?.lsn])
  })

/** Makes a stand, which is gone when the scope closes. */
export const make = Effect.fnUntraced(function* (databaseUrl: string | undefined) {
  const { replicaUrl, url } = yield* databaseUrl === undefined
    ? own
    : Effect.succeed({ url: databaseUrl, replicaUrl: undefined })
  const version = yield* ready(url)
  const environment = { DATABASE_URL: url, DATABASE_POOL_SIZE: "8", DELETION_DELAY: "10ms" }
  const observer = yield* Session.open(url)
  const sessions = yield* Effect.all(Array.from({ length: 5 }, () => Session.open(url)))
  const primary = yield* HttpService.start(environment)
  const stand: Stand = {
    observer,
    sessions,
    primary: primary.ask,
    deliver: primary.deliver,
    caughtUp: caughtUp(observer),
    isSingle: false
  }
  if (replicaUrl === undefined) return { ...stand, version }
  const standby = yield* Session.open(replicaUrl)
  const [here]: ReadonlyArray<{ readonly lsn?: string }> = yield* observer.run(
    "select pg_current_wal_lsn()::text as lsn"
  )
  yield* until(standby, "select where pg_last_wal_replay_lsn() >= $1::pg_lsn", [here?.lsn])
  const replica = yield* HttpService.start({ ...environment, ROLES: "data-api", READ_DATABASE_URL: replicaUrl })
  return { ...stand, version, replica: replica.ask, caughtUp: caughtUp(observer, standby) }
}, Effect.provide(Reactivity.layer))
