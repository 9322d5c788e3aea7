/**
 * Random histories of writers and readers, after each of which every copy must equal its table. Ends with code 1 when
 * a reader lost anything.
 *
 *     npm run faults -- sync --histories 10000 --seed 7
 *     npm run faults -- sync --seed 7 --only 4711 --reduce
 */
import { Array, Clock, Console, Data, DateTime, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { circumstances } from "../circumstances.ts"
import * as InProcessStand from "./InProcessStand.ts"
import * as PostgresStand from "./PostgresStand.ts"
import { run } from "./run.ts"

/** Something was lost. */
class Lost extends Data.TaggedError("Lost")<{ readonly message: string }> {}

const positive = (name: string) =>
  Flag.Int(name).pipe(
    Flag.filter(
      (n) => n > 0,
      (n) => `Expected more than 0, not ${n}`
    )
  )

const flags = {
  histories: positive("histories").pipe(Flag.withDescription("How many"), Flag.withDefault(1000)),
  seed: positive("seed").pipe(Flag.withDescription("What everything random follows"), Flag.optional),
  only: positive("only").pipe(
    Flag.withDescription("The number of a history, to play it alone; may be repeated"),
    Flag.atLeast(0)
  ),
  stands: positive("stands").pipe(
    Flag.withDescription("How many Postgres servers to play on at once"),
    Flag.withDefault(2)
  ),
  reduce: Flag.Boolean("reduce").pipe(
    Flag.withDescription("Find out which steps of a history that fails are needed for that"),
    Flag.withDefault(false)
  ),
  events: Flag.Int("events").pipe(
    Flag.withDescription("In how many percent of the histories servers crash, fail over, and are restored"),
    Flag.withDefault(10)
  ),
  database: Flag.String("database").pipe(
    Flag.withDescription("A Postgres to use, as its superuser, with prepared transactions; without a replica"),
    Flag.optional
  )
}

/** How many failing histories to name. */
const named = 50

export const sync = Command.make(
  "sync",
  flags,
  Effect.fn(function* (options) {
    const now = yield* Clock.currentTimeMillis
    const seed = Option.getOrElse(options.seed, () => now % 1_000_000)
    const numbers = options.only.length > 0 ? options.only : Array.range(1, options.histories)
    const database = Option.getOrUndefined(options.database)
    // On one server, the transactions of one history would hold back all others.
    const count = database === undefined ? Math.min(options.stands, numbers.length) : 1
    const stands = yield* Effect.forEach(Array.range(1, count), () => PostgresStand.make(database))
    const where = circumstances(DateTime.formatIsoDateUtc(yield* DateTime.now), stands[0]?.version ?? "", seed)
    yield* Console.log(where)
    const embedded = yield* InProcessStand.embedded
    const { failed, seconds, tally } = yield* run({
      seed,
      numbers,
      stands,
      embedded,
      events: options.events / 100,
      isReduced: options.reduce
    })
    yield* Console.log(`\n${numbers.length} histories in ${seconds.toFixed(0)} s: ${tally}; ${where}`)
    if (failed.length > 0) {
      const list = failed.slice(0, named).join(", ")
      return yield* new Lost({
        message: `${failed.length} histories failed: ${list}. Play one again with --seed ${seed} --only NUMBER`
      })
    }
  }, Effect.scoped)
).pipe(Command.withDescription("Random writers and readers: after each history, every copy must equal its table"))
