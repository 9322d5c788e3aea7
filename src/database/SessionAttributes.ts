/** What a server is, and whether a URL takes it: `target_session_attrs`. */
import type { PgConnection } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SessionAttributes } from "./ConnectionUrl.ts"

export interface Server {
  readonly isStandby: boolean
  readonly isReadOnly: boolean
  /** When it was started, which tells servers apart. */
  readonly started: string
}

type Test = (server: Server) => boolean

/** What servers are taken, in the order of preference. */
const accepted: Readonly<Record<SessionAttributes, ReadonlyArray<Test>>> = {
  any: [() => true],
  "read-write": [(server) => !server.isStandby && !server.isReadOnly],
  "read-only": [(server) => server.isStandby || server.isReadOnly],
  primary: [(server) => !server.isStandby],
  standby: [(server) => server.isStandby],
  "prefer-standby": [(server) => server.isStandby, () => true]
}

export const acceptedBy = (wanted: SessionAttributes) => accepted[wanted]

/** Whether some server is not taken. */
export const isStrict = (wanted: SessionAttributes) => wanted !== "any" && wanted !== "prefer-standby"

/** For people. */
export const describe = ({ isReadOnly, isStandby }: Server) =>
  isStandby ? "is a standby" : isReadOnly ? "is read-only" : "is a primary"

/** Asks the server of a connection what it is. */
export const look = (connection: PgConnection.PgConnection) =>
  Effect.map(
    connection.query(
      "select pg_is_in_recovery() as standby, current_setting('transaction_read_only')::bool as read_only, pg_postmaster_start_time()::text as started",
      [],
      false
    ),
    ({ rows: [row] }): Server => ({
      isStandby: row?.["standby"] === true,
      isReadOnly: row?.["read_only"] === true,
      started: String(row?.["started"])
    })
  )
