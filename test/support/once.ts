/** What the test files of a run share: whoever needs it first makes it. */
import { existsSync, mkdirSync, renameSync } from "node:fs"
import { join } from "node:path"
import { Effect, Result } from "effect"
import { inject } from "vitest"
import { eventually } from "./eventually.ts"

/** A folder of the run, whose content is made once, by `make` in another folder. */
export const once = Effect.fnUntraced(function* <E, R>(
  name: string,
  make: (folder: string) => Effect.Effect<unknown, E, R>
) {
  const made = join(inject("runFolder"), name)
  const making = `${made}-making`
  if (Result.isSuccess(Result.try(() => mkdirSync(making)))) {
    yield* make(join(making, "content"))
    renameSync(join(making, "content"), made)
  }
  yield* eventually(name, () => existsSync(made))
  return made
})
