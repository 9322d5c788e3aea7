/** The program in parts: each role in a process of its own, over one database. */
import { Duration, Effect } from "effect"
import * as Process from "./Process.ts"

/** Starts a role and waits until it is up. */
export const start = Effect.fnUntraced(function* (
  role: "intake" | "worker" | "data-api",
  databaseUrl: string,
  environment: Process.Environment = {}
) {
  const process = yield* Process.start({
    ROLES: role,
    DATABASE_URL: databaseUrl,
    DELETION_DELAY: "100 millis",
    ...environment
  })
  return { ...process, url: yield* process.address }
})

export type Program = Effect.Success<ReturnType<typeof start>>

/** Kills with -9, and waits until the process is gone. */
export const kill = ({ kill: send, ended }: Program) => Effect.andThen(send("SIGKILL"), ended)

/** How long something took, in seconds. */
export const secondsOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.timed(effect), ([took]) => Duration.toSeconds(took))
