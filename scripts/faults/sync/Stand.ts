/** What histories are played on. */
import type { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Servers } from "./Servers.ts"
import type { Ask } from "./Service.ts"
import type { Session } from "./Session.ts"

export interface Stand {
  /** A session for what the history does not know of. */
  readonly observer: Session
  readonly sessions: ReadonlyArray<Session>
  readonly primary: Ask
  /** The servers, where they are our own. */
  readonly servers?: Servers
  /** Waits until everything that is committed is there for every reader. */
  readonly caughtUp: Effect.Effect<void, SqlError>
  /** True if there is one session in all, so that nobody can read while a transaction is open. */
  readonly isSingle: boolean
}
