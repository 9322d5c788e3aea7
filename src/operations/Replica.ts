/**
 * Whether a replica follows its primary. Records may also be read from another database, such as one that is filled by
 * logical replication: only a database that is or was a replica of this primary is checked.
 */
import { Data, Duration, Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Database } from "../database/Database.ts"

/** How far a replica may be behind, in seconds. */
const maximumLag = 60

/** A replica that is this far behind, in seconds, is looked at once more. */
const suspectLag = 1

/** How long a replica has to catch up with what its primary has just written. */
const catchUp = Duration.millis(100)

interface Primary {
  readonly system: string
  readonly started: string
  readonly written: string
}

interface Replica {
  readonly is_following: boolean
  readonly system: string
  readonly started: string
  readonly has_all: boolean | null
  readonly age: number | null
}

/** Runs a statement of a check, in time. */
export type Ask = <A>(database: Database, statement: Effect.Effect<A, SqlError>) => Effect.Effect<A, string>

/** How a database stands to a primary. */
export type Standing = Data.TaggedEnum<{
  /** It was never a replica of this primary. */
  Unrelated: {}
  /** It was one. */
  Parted: {}
  /** It is one, so many seconds behind. */
  Following: { readonly behind: number }
}>
export const Standing = Data.taggedEnum<Standing>()

const isBehind = ({ age, has_all }: Replica) => has_all !== true && age !== null && age > suspectLag

const following = ({ age, has_all }: Replica) => Standing.Following({ behind: has_all === true ? 0 : (age ?? 0) })

/** How the database that is read stands to the primary. Fails with what is wrong with one that does not answer. */
export const standing = (primary: Database, replica: Database, ask: Ask): Effect.Effect<Standing, string> =>
  Effect.gen(function* () {
    const [known] = yield* ask(
      primary,
      primary<Primary>`
        select system_identifier::text as system, pg_postmaster_start_time()::text as started,
          case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end::text as written
        from pg_control_system()`
    )
    const look = Effect.map(
      ask(
        replica,
        replica<Replica>`
          select pg_is_in_recovery() as is_following, system_identifier::text as system,
            pg_postmaster_start_time()::text as started,
            pg_last_wal_replay_lsn() >= ${known?.written ?? "0/0"}::pg_lsn as has_all,
            extract(epoch from now() - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time()))::float8 as age
          from pg_control_system()`
      ),
      ([found]) => found
    )
    const found = yield* look
    if (found === undefined || known === undefined || found.system !== known.system) return Standing.Unrelated()
    if (!found.is_following) {
      return found.started === known.started ? Standing.Unrelated() : Standing.Parted()
    }
    if (!isBehind(found)) return following(found)
    // After a quiet hour the first change makes a replica look an hour old until it has arrived.
    yield* Effect.sleep(catchUp)
    return following((yield* look) ?? found)
  })

/** What is wrong with a replica; undefined if it follows its primary, or was never meant to. */
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
