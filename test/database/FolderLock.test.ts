/** The lock of a data folder. */
import { createServer } from "node:net"
import { renameSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import * as FolderLock from "../../src/database/FolderLock.ts"
import { temporaryFolder } from "../blackbox/support/Process.ts"

/** Leaves a socket behind that nobody answers, as a process that is killed does. */
const killed = (folder: string) =>
  Effect.callback<void>((resume) => {
    const server = createServer()
    const elsewhere = join(folder, "elsewhere.sock")
    server.listen(elsewhere, () => {
      renameSync(elsewhere, join(folder, "lock.sock"))
      server.close(() => resume(Effect.void))
    })
  })

const tags = (takings: ReadonlyArray<FolderLock.Taking>) => takings.map(({ _tag }) => _tag).toSorted()

const takeAtOnce = (folder: string) => Effect.forEach([folder, folder, folder], FolderLock.take, { concurrency: 3 })

it.live("A folder is taken by one of several that want it at once, also after one was killed", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    yield* Effect.scoped(
      Effect.gen(function* () {
        assert.deepStrictEqual(tags(yield* takeAtOnce(folder)), ["Busy", "Busy", "Taken"])
        assert.deepStrictEqual(tags(yield* takeAtOnce(folder)), ["Busy", "Busy", "Busy"])
      })
    )
    yield* killed(folder)
    assert.deepStrictEqual(tags(yield* takeAtOnce(folder)), ["Busy", "Busy", "Taken"])
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)
