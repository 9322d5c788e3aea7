/** A Postgres of our own with a streaming replica. */
import { execFile } from "node:child_process"
import { existsSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import * as LocalPostgres from "./LocalPostgres.ts"

const copy = (from: string, to: string) =>
  Effect.callback<void, LocalPostgres.PostgresError>((resume) => {
    execFile("cp", ["-a", from, to], (cause, _stdout, stderr) =>
      resume(
        cause === null
          ? Effect.void
          : Effect.fail(new LocalPostgres.PostgresError({ message: `The data cannot be copied: ${stderr}` }))
      )
    )
  })

type Settings = NonNullable<LocalPostgres.Options["settings"]>

/** Starts both, which are gone when the scope closes. */
export const make = Effect.fnUntraced(function* (settings: Settings = {}, ofReplica: Settings = {}) {
  const folder = yield* LocalPostgres.enterableFolder
  const data = join(folder, "primary")
  const copied = join(folder, "replica")
  const common = { wal_level: "replica", max_wal_senders: 10, wal_keep_size: "256MB", hot_standby: "on", ...settings }
  const primary = yield* LocalPostgres.make({ folder: data, settings: common })
  yield* primary.stopImmediately
  yield* copy(data, copied)
  yield* primary.start
  yield* Effect.sync(() => {
    for (const file of ["postmaster.pid", "postmaster.opts"].map((name) => join(copied, name))) {
      if (existsSync(file)) rmSync(file)
    }
    writeFileSync(join(copied, "standby.signal"), "")
  })
  const { hostname, password, port, username } = new URL(primary.url)
  const replica = yield* LocalPostgres.make({
    folder: copied,
    settings: {
      ...common,
      ...ofReplica,
      primary_conninfo: `host=${hostname} port=${port} user=${username} password=${password}`
    }
  })
  return { primary, replica, folderOfPrimary: data }
})
