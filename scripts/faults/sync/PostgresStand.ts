/** A stand on real Postgres: services that are started and asked over HTTP, and a streaming replica where it is our own. */
import { Effect, Redacted, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import { connect } from "../../../src/database/Database.ts"
import { migrate } from "../../../src/database/Migrations.ts"
import * as HttpService from "./HttpService.ts"
import * as Servers from "./Servers.ts"
import type { Stand } from "./Stand.ts"
import * as Session from "./Session.ts"
import { sequence } from "./statements.ts"

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
 * horizon.
 */
export const settled = (observer: Session.Session) =>
  Effect.gen(function* () {
    const [now]: ReadonlyArray<{ readonly id?: string }> = yield* observer.run(
      "select pg_current_xact_id()::text as id"
    )
    yield* until(observer, "select where pg_snapshot_xmin(pg_current_snapshot()) > $1::xid8", [now?.id])
  })

/** Waits until a replica has all that was committed. A commit brings all before it to the disk, and so to the replica. */
const replayed = Effect.fnUntraced(function* (observer: Session.Session, replicaUrl: string) {
  const replica = yield* Session.open(replicaUrl)
  // Otherwise a reader brings the mark of a new run to the replica before it is there.
  yield* observer.run("select change_mark()")
  // Otherwise a standby learns only after a while which transactions a crash has ended.
  yield* observer.run("checkpoint")
  yield* observer.run("select pg_logical_emit_message(true, 'sync', '')::text")
  const [written]: ReadonlyArray<{ readonly lsn?: string }> = yield* observer.run(
    "select pg_current_wal_flush_lsn()::text as lsn"
  )
  yield* until(replica, "select where pg_last_wal_replay_lsn() >= $1::pg_lsn", [written?.lsn])
}, Effect.scoped)

const common = { DATABASE_POOL_SIZE: "8", ROLES: "data-api" }

/** A stand on a given Postgres, without a replica. */
const given = Effect.fnUntraced(function* (url: string) {
  const version = yield* ready(url)
  const observer = yield* Session.open(url)
  const sessions = yield* Effect.all(Array.from({ length: 5 }, () => Session.open(url)))
  const primary = yield* HttpService.start({ ...common, DATABASE_URL: url })
  const stand: Stand = {
    observer,
    sessions,
    primary,
    reopen: Effect.void,
    caughtUp: settled(observer),
    isSingle: false
  }
  return { ...stand, version }
})

/** A stand on servers of our own. */
const own = Effect.gen(function* () {
  const servers = yield* Servers.make
  const version = yield* ready(servers.primaryUrl)
  const openPrimary = Session.openAgain(() => servers.primary().url)
  const observer = yield* openPrimary
  const sessions = yield* Effect.all(Array.from({ length: 5 }, () => openPrimary))
  const environment = { ...common, DATABASE_URL: servers.primaryUrl }
  const primary = yield* HttpService.start(environment)
  const caughtUp = Effect.suspend(() => replayed(observer.session, servers.standby().url))
  yield* caughtUp
  const replica = yield* HttpService.start({
    ...environment,
    READ_DATABASE_URL: servers.standbyUrl
  })
  const stand: Stand = {
    observer: observer.session,
    sessions: sessions.map(({ session }) => session),
    primary,
    replica,
    servers,
    reopen: Effect.forEach([observer, ...sessions], ({ again }) => again, { discard: true }),
    caughtUp: settled(observer.session).pipe(Effect.andThen(Effect.orDie(servers.mend)), Effect.andThen(caughtUp)),
    isSingle: false
  }
  return { ...stand, version }
})

/** Makes a stand, which is gone when the scope closes. */
export const make = Effect.fnUntraced(function* (databaseUrl: string | undefined) {
  return databaseUrl === undefined ? yield* own : yield* given(databaseUrl)
}, Effect.provide(Reactivity.layer))
