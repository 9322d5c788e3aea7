/** What histories are played on. */
import type { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Ask, Refused } from "./Service.ts"
import type { Session } from "./Session.ts"

export interface Stand {
  /** A session for what the history does not know of. */
  readonly observer: Session
  readonly sessions: ReadonlyArray<Session>
  readonly primary: Ask
  /** A second service, which reads a replica. */
  readonly replica?: Ask
  /** Sends a delivery of an organization. */
  readonly deliver?: (organization: string, key: string, body: object) => Effect.Effect<void, Refused>
  /** Waits until everything that is committed is there for every reader. */
  readonly caughtUp: Effect.Effect<void, SqlError>
  /** Whether there is one session in all, so that nobody can read while a transaction is open. */
  readonly isSingle: boolean
}
