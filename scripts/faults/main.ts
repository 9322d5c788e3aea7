/**
 * Kills the service and its Postgres at random under deliveries, and plays random histories of writers and readers. Exits
 * with code 1 when a promise is broken.
 *
 *     npm run faults -- --deliveries 20000 --seed 7
 *     npm run faults -- --database postgres://postgres:postgres@127.0.0.1:5432/postgres
 *     npm run faults -- sync --histories 10000 --seed 7
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Clock, Console, Data, DateTime, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { circumstances } from "./circumstances.ts"
import { kills } from "./kills.ts"
import * as Ground from "./Ground.ts"
import { sync } from "./sync/command.ts"

/** Promises were not kept. */
class Broken extends Data.TaggedError("Broken")<{ readonly message: string }> {}

const flags = {
  deliveries: Flag.Int("deliveries").pipe(Flag.withDescription("The number of deliveries"), Flag.withDefault(1000)),
  seed: Flag.Int("seed").pipe(Flag.withDescription("Reproduces a run"), Flag.optional),
  database: Flag.String("database").pipe(
    Flag.withDescription("A Postgres to use, as its superuser; connections to it are cut, it is not stopped"),
    Flag.optional
  )
}

const command = Command.make(
  "faults",
  flags,
  Effect.fn(function* ({ database, deliveries, seed: given }) {
    const now = yield* Clock.currentTimeMillis
    const seed = Option.getOrElse(given, () => now % 1_000_000)
    const ground = yield* Ground.make(Option.getOrUndefined(database))
    yield* Console.log(circumstances(DateTime.formatIsoDateUtc(yield* DateTime.now), ground.version, seed))
    const { broken, figures } = yield* kills(ground, deliveries, seed)
    yield* Console.log(figures.join("\n"))
    if (broken.length > 0) return yield* new Broken({ message: broken.join("; ") })
  }, Effect.scoped)
).pipe(
  Command.withDescription("Kill the service and its Postgres under deliveries: each must run once"),
  Command.withSubcommands([sync])
)

Command.run(command, { version: "1" }).pipe(Effect.provide(NodeServices.layer), NodeRuntime.runMain)
