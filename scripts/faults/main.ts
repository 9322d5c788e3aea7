/**
 * Tries to take the service down, in every way that once did, and says of each what was promised and what was seen. Ends
 * with code 1 when a promise is not kept.
 *
 *     npm run faults
 *     npm run faults -- --quick
 *     npm run faults -- --only takeover --only kills --deliveries 100000 --seed 7
 *     npm run faults -- --database postgres://postgres:postgres@127.0.0.1:5432/postgres
 *     npm run faults -- sync --histories 10000 --seed 7
 *     npm run faults -- watched
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Clock, Console, Data, DateTime, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { type Row, row } from "./Scenario.ts"
import { scenarios } from "./scenarios.ts"
import * as Ground from "./support/Ground.ts"
import { sync } from "./sync/command.ts"
import { watched } from "./watched/command.ts"
import { circumstances, markdown, paragraph, summary } from "./table.ts"

/** Promises were not kept. */
class Broken extends Data.TaggedError("Broken")<{ readonly message: string }> {}

/** The names that were asked for fit no scenario. */
class NoSuchScenario extends Data.TaggedError("NoSuchScenario")<{ readonly message: string }> {}

const positive = (name: string) =>
  Flag.Int(name).pipe(
    Flag.filter(
      (n) => n > 0,
      (n) => `Expected more than 0, not ${n}`
    )
  )

const flags = {
  quick: Flag.Boolean("quick").pipe(
    Flag.withDescription("All of them in 5 minutes: short timeouts, few deliveries"),
    Flag.withDefault(false)
  ),
  only: Flag.String("only").pipe(
    Flag.withDescription("A scenario, or the beginning of the names of several; may be repeated"),
    Flag.atLeast(0)
  ),
  seed: positive("seed").pipe(Flag.withDescription("What everything random follows"), Flag.optional),
  deliveries: positive("deliveries").pipe(Flag.withDescription("How many, for the scenario kills"), Flag.optional),
  database: Flag.String("database").pipe(
    Flag.withDescription("A Postgres to use, as its superuser; it is not stopped, but the way to it is cut"),
    Flag.optional
  ),
  markdown: Flag.Boolean("markdown").pipe(
    Flag.withDescription("Print the table as Markdown too"),
    Flag.withDefault(false)
  )
}

const command = Command.make(
  "faults",
  flags,
  Effect.fn(function* (options) {
    const now = yield* Clock.currentTimeMillis
    const seed = Option.getOrElse(options.seed, () => now % 1_000_000)
    const deliveries = Option.getOrElse(options.deliveries, () => (options.quick ? 1000 : 20_000))
    const all = scenarios({ isQuick: options.quick, deliveries })
    const chosen = all.filter(
      ({ name }) => options.only.length === 0 || options.only.some((one) => name.startsWith(one))
    )
    if (chosen.length === 0) {
      return yield* new NoSuchScenario({ message: `There are: ${all.map(({ name }) => name).join(", ")}` })
    }
    const rows: Array<Row> = []
    const ground = yield* Ground.make({ databaseUrl: Option.getOrUndefined(options.database), seed })
    const where = circumstances(DateTime.formatIsoDateUtc(yield* DateTime.now), ground.version, seed)
    yield* Console.log(`${where}\n`)
    for (const scenario of chosen) {
      const made = yield* row(scenario, ground, scenario.name === "kills" ? "2 hours" : "2 minutes")
      rows.push(made)
      yield* Console.log(`${paragraph(made)}\n`)
    }
    yield* Console.log(summary(rows))
    if (options.markdown) yield* Console.log(`\n${where}\n\n${markdown(rows)}`)
    const broken = rows.filter(({ result }) => result === "fail")
    if (broken.length > 0) {
      return yield* new Broken({ message: `Not kept: ${broken.map(({ name }) => name).join(", ")}` })
    }
  }, Effect.scoped)
).pipe(
  Command.withDescription("Try to take the service down, and see whether it keeps its promises"),
  Command.withSubcommands([sync, watched])
)

Command.run(command, { version: "1" }).pipe(Effect.provide(NodeServices.layer), NodeRuntime.runMain)
