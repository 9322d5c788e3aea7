/**
 * Kills the service and its Postgres at random under deliveries, and plays random histories of writers and readers, after
 * each of which every copy must equal its table. Exits with code 1 when a promise is broken.
 *
 *     npm run faults -- --deliveries 20000 --seed 7
 *     npm run faults -- sync --histories 10000 --seed 7
 *     npm run faults -- sync --seed 7 --only 4711 --reduce
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Array, Console, Data, Effect, Random } from "effect"
import { Command, Flag } from "effect/cli"
import { migrate } from "../../src/database/Migrations.ts"
import * as Cluster from "../../test/system/database/Cluster.ts"
import { caption } from "../machine.ts"
import { kills } from "./kills.ts"
import * as InProcessStand from "./sync/InProcessStand.ts"
import * as PostgresStand from "./sync/PostgresStand.ts"
import { run } from "./sync/run.ts"

/** Promises were not kept. */
class Broken extends Data.TaggedError("Broken")<{ readonly message: string }> {}

const positive = (name: string, description: string) =>
  Flag.Int(name).pipe(
    Flag.withDescription(description),
    Flag.filter(
      (n) => n > 0,
      (n) => `Expected more than 0, not ${n}`
    )
  )

const seed = positive("seed", "Reproduces a run").pipe(Flag.withDefault(Random.nextIntBetween(1, 999_999)))

const sync = Command.make(
  "sync",
  {
    seed,
    histories: positive("histories", "The number of histories").pipe(Flag.withDefault(1000)),
    only: positive("only", "The number of a history, to play it alone; may be repeated").pipe(Flag.atLeast(0)),
    stands: positive("stands", "How many Postgres servers to play on at once").pipe(Flag.withDefault(2)),
    reduce: Flag.Boolean("reduce").pipe(
      Flag.withDescription("Find out which steps of a history that fails are needed for that"),
      Flag.withDefault(false)
    ),
    events: Flag.Int("events").pipe(
      Flag.withDescription("In how many percent of the histories servers crash, fail over, and are restored"),
      Flag.withDefault(10)
    )
  },
  Effect.fn(function* ({ events, histories, only, reduce, seed: of, stands: most }) {
    const numbers = only.length > 0 ? only : Array.range(1, histories)
    // On one server, the transactions of one history would hold back all others.
    const stands = yield* Effect.replicateEffect(PostgresStand.make, Math.min(most, numbers.length))
    const where = caption(`seed ${of}`)
    yield* Console.log(where)
    const embedded = yield* InProcessStand.embedded
    const played = { seed: of, numbers, stands, embedded, events: events / 100, isReduced: reduce }
    const { failed, seconds, tally } = yield* run(played)
    yield* Console.log(`\n${numbers.length} histories in ${seconds.toFixed(0)} s: ${tally}; ${where}`)
    if (failed.length === 0) return
    const list = failed.slice(0, 50).join(", ")
    return yield* new Broken({
      message: `${failed.length} histories failed: ${list}. Play one again with --seed ${of} --only NUMBER`
    })
  }, Effect.scoped)
).pipe(Command.withDescription("Random writers and readers: after each history, every copy must equal its table"))

const faults = Command.make(
  "faults",
  { seed, deliveries: positive("deliveries", "The number of deliveries").pipe(Flag.withDefault(1000)) },
  Effect.fn(function* ({ deliveries, seed: of }) {
    const postgres = yield* Cluster.empty({ settings: { max_connections: 200 } })
    yield* migrate(postgres.sql)
    yield* Console.log(caption(`seed ${of}`))
    const { broken, figures } = yield* kills(postgres, deliveries, of)
    yield* Console.log(figures.join("\n"))
    if (broken.length > 0) return yield* new Broken({ message: broken.join("; ") })
  }, Effect.scoped)
).pipe(
  Command.withDescription("Kill the service and its Postgres under deliveries: each must run once"),
  Command.withSubcommands([sync])
)

Command.run(faults, { version: "1" }).pipe(Effect.provide(NodeServices.layer), NodeRuntime.runMain)
