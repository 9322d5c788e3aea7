/** A primary and its standby, and what befalls them: crashes, failovers, and restores of earlier states. */
import { appendFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schedule } from "effect"
import * as Cluster from "../../../test/system/database/Cluster.ts"
import * as TcpProxy from "../../../test/support/TcpProxy.ts"
import type { Event } from "./History.ts"

/** What a primary writes, until a failover or a restore takes it back to an earlier place. */
interface Era {
  readonly parent?: Era
  /** The place in the write-ahead log up to which it has what its parent wrote. */
  readonly from: number
}

/** A state of the database. */
export interface Moment {
  readonly era: Era
  /** A place in the write-ahead log behind the state. */
  readonly wal: number
}

const settings = {
  full_page_writes: "off",
  max_connections: 60,
  max_prepared_transactions: 50,
  shared_buffers: "16MB",
  wal_keep_size: "32MB",
  min_wal_size: "32MB",
  // A crash loses what commits asynchronously.
  wal_writer_delay: "10s",
  // Statements of the history go on while the standby replays.
  max_standby_streaming_delay: -1
} as const

const walOf = Effect.fnUntraced(function* ({ sql }: Cluster.Cluster, place: string) {
  const [row] = yield* sql<{ wal: number }>`select (${sql.literal(place)} - '0/0')::float8 as wal`
  return row?.wal ?? 0
})

/** Starts a primary and its standby, which are gone when the scope closes. */
export const make = Effect.gen(function* () {
  let primary = yield* Cluster.empty({ settings })
  // Fewer files to copy.
  yield* primary.sql.unsafe("update pg_database set datistemplate = false").unprepared
  for (const name of [0, 1]) yield* primary.sql.unsafe(`drop database template${name}`).unprepared
  let standby = yield* Cluster.standbyOf(primary, settings)
  // As behind a load balancer: its address stays.
  const proxy = yield* TcpProxy.make(() => new URL(primary.url))
  let era: Era = { from: 0 }
  let copy: (Moment & { readonly folder: string }) | undefined
  let isCutOff = false
  /** Counts the beginnings and ends of events: what spans one may be of either era. */
  let count = 0

  const rebuildStandby = Effect.gen(function* () {
    yield* standby.stopImmediately
    yield* Cluster.rebuild(standby, primary)
    isCutOff = false
  })
  /** The state that a reader has seen at most. */
  const moment = Effect.gen(function* () {
    const wal = yield* walOf(primary, "pg_current_wal_flush_lsn()")
    const now: Moment = { era, wal }
    return now
  })
  const restore = Effect.fnUntraced(function* (isNewTimeline: boolean) {
    if (copy === undefined) return false
    yield* primary.stopImmediately
    yield* primary.putBack(copy.folder)
    if (isNewTimeline) {
      writeFileSync(join(primary.folder, "recovery.signal"), "")
      appendFileSync(join(primary.folder, "postgresql.auto.conf"), "restore_command = 'false'\n")
    }
    yield* primary.start
    yield* Cluster.untilWritable(primary)
    // A recovery proves what a mark proves, which is less.
    era = { parent: copy.era, from: isNewTimeline ? 0 : copy.wal }
    return yield* rebuildStandby
  })

  // A service looks each second, so a run without a mark ends no other way.
  const marked = Effect.retry(
    Effect.suspend(() => primary.sql`select change_mark()`),
    { schedule: Schedule.spaced("20 millis"), times: 1000 }
  )

  /** What each event does. False: it has no meaning now. */
  const events = {
    crash: () => Effect.all([marked, primary.stopImmediately, primary.start]),
    restart: () => Effect.all([marked, primary.stop, primary.start]),
    "cut off the standby": Effect.fnUntraced(function* () {
      if (isCutOff) return false
      yield* Cluster.follow(standby, undefined)
      return (isCutOff = true)
    }),
    failover: Effect.fnUntraced(function* () {
      yield* marked
      yield* primary.stopImmediately
      yield* Cluster.promote(standby)
      ;[primary, standby] = [standby, primary]
      // So does a standby that has received nothing since it was started.
      const end = "case when pg_last_wal_receive_lsn() is null then '0/0' else pg_last_wal_replay_lsn() end"
      era = { parent: era, from: yield* walOf(primary, end) }
      yield* rebuildStandby
    }),
    copy: Effect.fnUntraced(function* () {
      copy = { ...(yield* moment), folder: yield* primary.snapshot }
    }),
    restore: () => restore(false),
    "restore into a new timeline": () => restore(true)
  } satisfies Record<Event, unknown>

  return {
    url: `postgres://postgres:postgres@127.0.0.1:${proxy.port}/postgres`,
    primary: () => primary,
    count: () => count,
    /** Lets an event happen. False where it has no meaning now. Copies go away with the scope. */
    befall: (event: Event) =>
      Effect.gen(function* () {
        count++
        const has: unknown = yield* events[event]()
        count++
        return has !== false
      }),
    /** Forgets the copy, and lets the standby follow. */
    mend: Effect.gen(function* () {
      copy = undefined
      if (isCutOff) yield* Cluster.follow(standby, primary)
      isCutOff = false
    }),
    moment,
    /** True if the primary still has all that a state has. */
    has: (seen: Moment) => {
      let from = Infinity
      for (let at: Era | undefined = era; at !== undefined; at = at.parent) {
        if (at === seen.era) return seen.wal <= from
        from = Math.min(from, at.from)
      }
      return false
    }
  }
})

export type Servers = Effect.Success<typeof make>
