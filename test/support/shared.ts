/**
 * What the test files of one run share: a folder, and the seed of all that they draw at random. The seed is printed, so that a
 * run can be repeated: SEED gives it, CI has always the same one, and otherwise it is another one in each run.
 */
import { randomInt } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Config, Effect, Option } from "effect"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  interface ProvidedContext {
    readonly runFolder: string
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
    const folder = mkdtempSync(join(tmpdir(), "practice-data-run-"))
    project.provide("runFolder", folder)
    return () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }).pipe(Effect.runPromise)
