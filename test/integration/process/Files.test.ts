/** A lock on a file. A process that is killed frees it: see `system/database/Embedded`. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { takeLock } from "../../../src/process/Files.ts"
import { temporaryFolder } from "../../support/Process.ts"

it.live("A file is taken by one of several that want it at once, until its scope closes", () =>
  Effect.gen(function* () {
    const file = join(yield* temporaryFolder, "lock")
    const takeAtOnce = Effect.forEach([file, file, file], takeLock, { concurrency: 3 })
    for (let times = 0; times < 2; times++) {
      const taken = yield* Effect.scoped(
        Effect.map(Effect.all([takeAtOnce, takeAtOnce]), (all) => all.flat().filter((isTaken) => isTaken))
      )
      assert.lengthOf(taken, 1)
    }
  }).pipe(Effect.scoped)
)
