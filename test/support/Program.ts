/** The program, listening, with a client of it: what most tests start. */
import { cpSync, mkdirSync } from "node:fs"
import { Duration, Effect } from "effect"
import * as Client from "./Client.ts"
import { once } from "./once.ts"
import * as Process from "./Process.ts"

/** Starts the program and waits until it listens. */
export const start = Effect.fnUntraced(function* (
  environment: Process.Environment,
  { connections, folder }: { readonly connections?: number; readonly folder?: string } = {}
) {
  const process = yield* Process.start(environment, folder)
  const url = yield* process.address
  return { ...process, url, client: yield* Client.make(url, connections) }
})

export type Program = Effect.Success<ReturnType<typeof start>>

/** Kills it with -9, and waits until it is gone. */
export const kill = ({ ended, kill: send }: Process.Process) => Effect.andThen(send("SIGKILL"), ended)

/** Stops it by a signal. Returns its end and the seconds until then. */
export const stop = ({ ended, kill: send }: Process.Process, signal: NodeJS.Signals = "SIGTERM") =>
  Effect.map(Effect.timed(Effect.andThen(send(signal), ended)), ([took, end]) => ({
    end,
    seconds: Duration.toSeconds(took)
  }))

/** The end of a program that has stopped in good order. */
export const inOrder: Process.End = { code: 0, signal: null }

/** A folder in which the program was started and stopped. */
const original = once("used", (folder) =>
  Effect.suspend(() => {
    mkdirSync(folder)
    return Effect.scoped(Effect.flatMap(start({}, { folder }), stop))
  })
)

/** A copy of that folder, whose data is in `.data`. It is removed with the scope. */
export const usedFolder = Effect.gen(function* () {
  const [from, folder] = yield* Effect.all([original, Process.temporaryFolder])
  cpSync(from, folder, { recursive: true })
  return folder
})

/** Starts the program on an embedded database that exists: in a quarter of the time that a first start takes. */
export const startUsed = (environment: Process.Environment) =>
  Effect.flatMap(usedFolder, (folder) => start(environment, { folder }))
