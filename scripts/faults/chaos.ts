/** Processes that are started again whenever they end, and what befalls them and their Postgres. */
import { type Array, Effect, Random } from "effect"
import type * as Process from "../../test/support/Process.ts"
import * as Ledger from "../../test/system/deletions/Ledger.ts"
import type * as Program from "../../test/support/Program.ts"
import type * as Cluster from "../../test/system/database/Cluster.ts"

/** A role that is always there, or about to be. */
interface Standing {
  program: Program.Program | undefined
}

/** Keeps a role running until the scope closes. */
export const keep = Effect.fnUntraced(function* (
  role: "intake" | "worker",
  databaseUrl: string,
  environment: Process.Environment
) {
  const standing: Standing = { program: undefined }
  const life = Effect.gen(function* () {
    standing.program = yield* Ledger.start(role, databaseUrl, environment)
    yield* standing.program.ended
  })
  yield* Effect.scoped(life).pipe(Effect.ignore, Effect.forever, Effect.forkScoped)
  return standing
})

/** Stops the Postgres at once, and starts it again. */
type Postgres = Pick<Cluster.Cluster, "stopImmediately" | "start">

/** All that runs. */
interface Fleet {
  readonly postgres: Postgres
  readonly intakes: Array.NonEmptyReadonlyArray<Standing>
  readonly workers: Array.NonEmptyReadonlyArray<Standing>
}

const signal = Effect.fnUntraced(function* (
  which: Array.NonEmptyReadonlyArray<Standing>,
  first: NodeJS.Signals,
  then?: NodeJS.Signals
) {
  const { program } = yield* Random.choice(which)
  if (program === undefined) return
  yield* program.kill(first)
  if (then === undefined) return
  yield* Effect.sleep("2500 millis")
  yield* program.kill(then)
})

const outage = Effect.fnUntraced(function* ({ start, stopImmediately }: Postgres) {
  yield* stopImmediately
  yield* Effect.sleep(yield* Random.nextBetween(0, 1500))
  yield* start
}, Effect.orDie)

const kinds = {
  "an intake killed with -9": ({ intakes }: Fleet) => signal(intakes, "SIGKILL"),
  "a worker killed with -9": ({ workers }: Fleet) => signal(workers, "SIGKILL"),
  "a worker told to stop": ({ workers }: Fleet) => signal(workers, "SIGTERM"),
  "a worker paused past its grace": ({ workers }: Fleet) => signal(workers, "SIGSTOP", "SIGCONT"),
  "Postgres stopped immediately": ({ postgres }: Fleet) => outage(postgres)
}
export type Kind = keyof typeof kinds

const frequent = ["an intake killed with -9", "a worker killed with -9", "Postgres stopped immediately"] as const
const rare = ["a worker told to stop", "a worker paused past its grace"] as const

/** Lets one thing after another happen, without end, and keeps count. What has begun to happen is not interrupted. */
export const reign = (fleet: Fleet, count: (kind: Kind) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    yield* Effect.sleep(yield* Random.nextBetween(300, 1500))
    const kind: Kind = yield* Random.choice([...frequent, ...frequent, ...rare])
    yield* Effect.uninterruptible(Effect.andThen(kinds[kind](fleet), count(kind)))
  }).pipe(Effect.forever)
