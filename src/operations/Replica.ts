/**
 * The state of a replica that records are read from. They may also be read from another database, such as one that is
 * filled by logical replication: only a database that is or was a replica of this primary is checked.
 */
import { Data, Duration, Effect, Predicate, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Database } from "../database/Database.ts"
import { first } from "./doctor/Check.ts"

/** Seconds. */
const maximumLag = 60

/** A replica that is this far behind, in seconds, is looked at once more. */
const suspectLag = 1

/** The time of a replica to catch up with the last write of its primary. */
const catchUp = Duration.millis(100)

const Primary = Schema.Struct({
  system: Schema.String,
  started: Schema.String,
  written: Schema.NullOr(Schema.String)
})

const Replica = Schema.Struct({
  is_following: Schema.Boolean,
  system: Schema.String,
  started: Schema.String,
  has_all: Schema.NullOr(Schema.Boolean),
  age: Schema.NullOr(Schema.Finite)
})

/** Runs a statement of a check, in time. Fails with the reason. */
export type Ask = <A>(database: Database, statement: Effect.Effect<A, SqlError>) => Effect.Effect<A, string>

/** The relation of a database to a primary. */
export type Standing = Data.TaggedEnum<{
  /** It was never a replica of this primary. */
  Unrelated: {}
  /** It was one. */
  Parted: {}
  /** It is one, so many seconds behind. */
  Following: { readonly behind: number }
}>
export const Standing = Data.taggedEnum<Standing>()

const behindOf = ({ age, has_all }: typeof Replica.Type) => (has_all === true ? 0 : (age ?? 0))

/** The relation of the database that is read to the primary. Fails with the problem of one that does not answer. */
export const standing = (primary: Database, replica: Database, ask: Ask): Effect.Effect<Standing, string> =>
  Effect.gen(function* () {
    const { started, system, written } = yield* first(
      Primary,
      ask(
        primary,
        primary`
          select system_identifier::text as system, pg_postmaster_start_time()::text as started,
            case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end::text as written
          from pg_control_system()`
      )
    )
    const look = first(
      Replica,
      ask(
        replica,
        replica`
          select pg_is_in_recovery() as is_following, system_identifier::text as system,
            pg_postmaster_start_time()::text as started,
            pg_last_wal_replay_lsn() >= ${written ?? "0/0"}::pg_lsn as has_all,
            extract(epoch from now() - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time()))::float8 as age
          from pg_control_system()`
      )
    )
    const found = yield* look
    if (found.system !== system) return Standing.Unrelated()
    if (!found.is_following) return found.started === started ? Standing.Unrelated() : Standing.Parted()
    if (behindOf(found) <= suspectLag) return Standing.Following({ behind: behindOf(found) })
    // After a quiet hour the first change makes a replica look an hour old until it has arrived.
    yield* Effect.sleep(catchUp)
    return Standing.Following({ behind: behindOf(yield* look) })
  }).pipe(Effect.mapError((error) => (Predicate.isString(error) ? error : "It does not tell its state")))

/** The problem of a replica; undefined if it follows its primary, or was never meant to. */
export const check = (primary: Database, replica: Database, ask: Ask): Effect.Effect<string | undefined, string> =>
  Effect.map(
    standing(primary, replica, ask),
    Standing.$match({
      Unrelated: () => undefined,
      Parted: () => "Does not follow its primary any more",
      Following: ({ behind }) =>
        behind > maximumLag ? `Is ${Math.round(behind)} seconds behind its primary` : undefined
    })
  )
