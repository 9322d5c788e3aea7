/**
 * The seed of all that tests draw at random. It is printed, so that a run can be repeated: SEED gives it, CI has always
 * the same one, and otherwise it is another one in each run.
 */
import { randomInt } from "node:crypto"
import { Config, Effect, Option } from "effect"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  interface ProvidedContext {
    readonly seed: string
  }
}

const given = Effect.gen(function* () {
  const isCi = Option.isSome(yield* Config.option(Config.NonEmptyString("CI")))
  const another = Config.succeed(isCi ? "1" : String(randomInt(1_000_000)))
  return yield* Config.NonEmptyString("SEED").pipe(Config.orElse(() => another))
})

export default (project: TestProject) =>
  Effect.gen(function* () {
    const seed = yield* given
    project.provide("seed", seed)
    yield* Effect.sync(() => process.stdout.write(`Seed: ${seed}. SEED=${seed} draws the same values again.\n`))
  }).pipe(Effect.runPromise)
