/**
 * Clusters of Postgres that are made from one another: standbys, promoted ones, backups and what is recovered from them.
 * They need no more than `initdb` and `postgres`.
 */
import { execFileSync } from "node:child_process"
import { appendFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Result } from "effect"
import { migrate } from "../../../src/database/Migrations.ts"
import { eventually } from "../../support/eventually.ts"
import { once } from "../../support/once.ts"
import * as LocalPostgres from "../../support/LocalPostgres.ts"
import { childrenOf } from "../../support/Process.ts"
import { clientOf } from "../../support/TestDatabase.ts"
import * as Tools from "../../support/Tools.ts"

type Settings = NonNullable<LocalPostgres.Options["settings"]>

const common = {
  // A process that is killed loses nothing that the system was given to write.
  fsync: "off",
  max_prepared_transactions: 20,
  wal_level: "logical",
  // Enough for a standby that was stopped for the length of a test.
  wal_keep_size: "256MB",
  wal_retrieve_retry_interval: "100ms",
  autovacuum: "off"
} as const

// One that has ended by itself takes no signal.
const signal = (name: NodeJS.Signals) => (pid: number) => Result.try(() => process.kill(pid, name))

const copyFiles = (from: string, to: string) => {
  rmSync(to, { recursive: true, force: true })
  execFileSync("cp", ["-a", "--", from, to])
  rmSync(join(to, "postmaster.pid"), { force: true })
}

interface Options extends Pick<LocalPostgres.Options, "settings"> {
  readonly binaries?: string | undefined
}

/** A folder for the files of a server, which is not made yet. */
const newFolder = Effect.map(LocalPostgres.enterableFolder, (folder) => join(folder, "data"))

const open = Effect.fnUntraced(function* (folder: string, { binaries = Tools.given, settings }: Options) {
  const postgres = yield* LocalPostgres.make({
    folder,
    settings: { ...common, ...settings },
    ...(binaries === undefined ? {} : { binaries })
  })
  // Copying files keeps this process busy.
  const sql = yield* clientOf(postgres.url, { maxConnections: 8, connectTimeout: "20 seconds" })
  return {
    ...postgres,
    folder,
    sql,
    /** Shuts the server down, as an operator does. */
    stop: Effect.suspend(() => {
      const pid = postgres.pid()
      if (pid !== undefined) signal("SIGINT")(pid)
      return eventually("a server that is shut down", () => postgres.pid() === undefined)
    }),
    /** Copies the files as they are at one moment, as a volume's snapshot has them; returns their folder. */
    snapshot: Effect.gen(function* () {
      const copy = yield* newFolder
      const pid = postgres.pid()
      const all = pid === undefined ? [] : [pid, ...childrenOf(pid)]
      all.forEach(signal("SIGSTOP"))
      copyFiles(folder, copy)
      all.toReversed().forEach(signal("SIGCONT"))
      return copy
    }),
    /** Puts the files of a snapshot in the place of the server's, which does not run. */
    putBack: (copy: string) => Effect.sync(() => copyFiles(copy, folder))
  }
})

export type Cluster = Effect.Success<ReturnType<typeof open>>

/** Starts a cluster without any tables of the service. */
export const empty = (options: Options = {}) => Effect.flatMap(newFolder, (folder) => open(folder, options))

/** The files of a migrated cluster, made once for each folder of binaries. */
const template = ({ binaries = "" }: Options) =>
  once(`cluster${binaries.replaceAll("/", "-")}`, (folder) =>
    Effect.gen(function* () {
      const cluster = yield* empty(binaries === "" ? {} : { binaries })
      yield* migrate(cluster.sql)
      yield* cluster.stop
      copyFiles(cluster.folder, folder)
    }).pipe(Effect.scoped)
  )

/** Starts a cluster that is migrated. `isNew`: with an identifier of its own; others share one. */
export const make = Effect.fnUntraced(function* ({ isNew = false, ...options }: Options & { isNew?: boolean } = {}) {
  if (isNew) {
    const cluster = yield* empty(options)
    yield* migrate(cluster.sql)
    return cluster
  }
  const [from, folder] = yield* Effect.all([template(options), newFolder])
  copyFiles(from, folder)
  return yield* open(folder, options)
})

/** How a cluster is connected to, as libpq reads it. */
export const connectionTo = ({ url }: Cluster) => {
  const { hostname, password, port, username } = new URL(url)
  return `host=${hostname} port=${port} user=${username} password=${password}`
}

/** The files of a standby that streams from another cluster. */
const standbyFiles = Effect.fnUntraced(function* (primary: Cluster) {
  const folder = yield* primary.snapshot
  writeFileSync(join(folder, "standby.signal"), "")
  appendFileSync(join(folder, "postgresql.auto.conf"), `primary_conninfo = '${connectionTo(primary)}'\n`)
  return folder
})

/** Starts a standby that streams from another cluster. */
export const standbyOf = Effect.fnUntraced(function* (primary: Cluster, settings: Settings = {}) {
  return yield* open(yield* standbyFiles(primary), { settings })
})

/** Makes a server that does not run a standby of another cluster, on the port that it had. */
export const rebuild = Effect.fnUntraced(function* (server: Cluster, primary: Cluster) {
  yield* server.putBack(yield* standbyFiles(primary))
  yield* server.start
}, Effect.scoped)

/** Has a standby stream from another cluster, or from none. */
export const follow = Effect.fnUntraced(function* ({ sql }: Cluster, primary: Cluster | undefined) {
  const connection = primary === undefined ? "" : connectionTo(primary)
  yield* sql.unsafe(`alter system set primary_conninfo = '${connection}'`).unprepared
  yield* sql`select pg_reload_conf()`
  const status = sql<{ status: string }>`select status from pg_stat_wal_receiver`
  const isStreaming = Effect.map(status, (rows) => rows[0]?.status === "streaming")
  yield* eventually("a standby that follows", isStreaming, (is) => is === (primary !== undefined))
})

export const untilWritable = ({ sql }: Cluster) =>
  eventually(
    "a server that has recovered",
    sql<{ is: boolean }>`select pg_is_in_recovery() as is`,
    (rows) => rows[0]?.is === false
  )

export const promote = (standby: Cluster) => Effect.andThen(standby.sql`select pg_promote()`, untilWritable(standby))

export const useIds = ({ sql }: Cluster, count: number) =>
  sql.unsafe(`do $$ begin
    create temp table used (n int);
    for n in 1..${count} loop
      begin insert into used values (n); exception when others then null; end;
    end loop;
    drop table used;
  end $$`)
