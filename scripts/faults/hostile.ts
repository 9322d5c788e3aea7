/**
 * Sends every kind of hostile body, 15 senders at once, five of whom do not read the answers, and says of each how long a
 * neighbour waited for a health check or a small search, and what the refusal cost. Ends with code 1 when a promise is
 * not kept.
 *
 *     npm run bench:hostile
 *     npm run bench:hostile -- --embedded --only items --seed 7
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Clock, Console, Data, DateTime, Duration, Effect, Exit, Option, Scope } from "effect"
import { Command, Flag } from "effect/cli"
import { attack, bounds, measureBaseline, type Result } from "./hostile/attack.ts"
import { kinds } from "./hostile/bodies.ts"
import { head, line } from "./hostile/table.ts"
import * as Ground from "./support/Ground.ts"
import * as Service from "./support/Service.ts"
import { circumstances } from "./circumstances.ts"

/** Promises were not kept. */
class Broken extends Data.TaggedError("Broken")<{ readonly message: string }> {}

/** After this long no other kind is begun. */
const longest = Duration.seconds(160)

/** A service that can be had anew. */
const standing = Effect.fnUntraced(function* (environment: Readonly<Record<string, string>>) {
  const start = Effect.gen(function* () {
    const scope = yield* Scope.make()
    const service = yield* Scope.provide(Service.start(environment), scope)
    return { service, stop: Scope.close(scope, Exit.void) }
  })
  let current = yield* start
  yield* Effect.addFinalizer(() => current.stop)
  const renew = Effect.gen(function* () {
    yield* current.stop
    current = yield* start
  })
  return { service: Effect.sync(() => current.service), renew }
})

const flags = {
  only: Flag.String("only").pipe(Flag.withDescription("A part of the names of kinds"), Flag.withDefault("")),
  seed: Flag.Int("seed").pipe(Flag.withDescription("What the bodies are made of"), Flag.optional),
  embedded: Flag.Boolean("embedded").pipe(
    Flag.withDescription("On the embedded database instead of a Postgres"),
    Flag.withDefault(false)
  ),
  database: Flag.String("database").pipe(
    Flag.withDescription("A Postgres to use, as its superuser, instead of one of our own"),
    Flag.optional
  )
}

const command = Command.make(
  "hostile",
  flags,
  Effect.fn(function* (options) {
    const begun = yield* Clock.currentTimeMillis
    const seed = Option.getOrElse(options.seed, () => begun % 1_000_000)
    const chosen = kinds.filter(({ name }) => name.includes(options.only))
    const database = Effect.gen(function* () {
      const ground = yield* Ground.make({ databaseUrl: Option.getOrUndefined(options.database), seed })
      return { version: ground.version, environment: { DATABASE_URL: (yield* ground.demo).url } }
    })
    const { environment, version } = options.embedded
      ? { environment: { DATA_DIR: "memory" }, version: "embedded" }
      : yield* database
    const { renew, service } = yield* standing({ ...environment, DELETION_DELAY: "1 day" })
    yield* Console.log(circumstances(DateTime.formatIsoDateUtc(yield* DateTime.now), version, seed))
    // The first measure warms the service up.
    yield* measureBaseline(yield* service)
    const baseline = yield* measureBaseline(yield* service)
    yield* Console.log(`A neighbour alone waits ${baseline.longest.toFixed(0)} ms at most.\n\n${head}`)

    const results: Array<Result> = []
    for (const kind of chosen) {
      if ((yield* Clock.currentTimeMillis) - begun > Duration.toMillis(longest)) break
      const result = yield* attack(yield* service, kind, seed, baseline)
      results.push(result)
      yield* Console.log(line(result))
      // The next kind shall not pay for this one.
      if (result.broken.length > 0) yield* Effect.andThen(renew, Effect.flatMap(service, measureBaseline))
    }
    const broken = results.filter((result) => result.broken.length > 0)
    yield* Console.log(
      `\n${results.length} of ${chosen.length} kinds; the longest wait of a neighbour was ${Math.max(0, ...results.map((result) => result.longest)).toFixed(0)} ms (at most ${bounds.wait}), the largest answer ${Math.max(0, ...results.map(({ answerBytes }) => answerBytes))} bytes`
    )
    if (broken.length > 0 || results.length < chosen.length) {
      return yield* new Broken({
        message: `Not kept by ${broken.length} kinds, not tried ${chosen.length - results.length}`
      })
    }
  }, Effect.scoped)
).pipe(Command.withDescription("Send hostile bodies, and see what a neighbour has of them"))

Command.run(command, { version: "1" }).pipe(Effect.provide(NodeServices.layer), NodeRuntime.runMain)
