/**
 * The state of a replica that records are read from. They may also be read from another database, such as one that is
 * filled by logical replication: only a database that is or was a replica of this primary is checked.
 */
import { Effect, Schema } from "effect"
import { rowsOf } from "../database/Columns.ts"
import type { Database } from "../database/Database.ts"
import type { Request } from "../database/Store.ts"

/** Seconds. */
const maximumLag = 60

const Server = Schema.Struct({
  system: Schema.String,
  started: Schema.String,
  is_standby: Schema.Boolean,
  position: Schema.NullOr(Schema.String),
  has_all: Schema.NullOr(Schema.Boolean),
  age: Schema.Finite
})

/** The relation of a database to a primary: never its replica, no longer, or so many seconds behind. */
export type Standing = "unrelated" | "parted" | number

export const standing = Effect.fnUntraced(function* <E>(primary: Database, replica: Database, request: Request<E>) {
  const stateOf = (database: Database, after: string) =>
    rowsOf(Server)(
      database.run(
        request,
        database`
          select system_identifier::text as system, pg_postmaster_start_time()::text as started,
            pg_is_in_recovery() as is_standby, pg_last_wal_replay_lsn() >= ${after}::pg_lsn as has_all,
            case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end::text as position,
            extract(epoch from now() - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time()))::float8 as age
          from pg_control_system()`
      )
    )
  const [above] = yield* stateOf(primary, "0/0")
  const [found] = yield* stateOf(replica, above?.position ?? "0/0")
  if (above === undefined || found?.system !== above.system) return "unrelated"
  if (!found.is_standby) return found.started === above.started ? "unrelated" : "parted"
  return found.has_all === true ? 0 : found.age
})

/** The problem of a replica; undefined if it follows its primary, or was never meant to. */
export const problemOf = (found: Standing): string | undefined => {
  if (found === "parted") return "Does not follow its primary any more"
  return typeof found === "number" && found > maximumLag
    ? `Is ${Math.round(found)} seconds behind its primary`
    : undefined
}
