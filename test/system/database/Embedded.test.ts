/**
 * The embedded database: the access to its folder, whose pages and logs have signing secrets, and its thread.
 *
 * @module-tag long
 */
import { chmodSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Duration, Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import * as Embedded from "../../../src/database/Embedded.ts"
import { temporaryFolder } from "../../support/Process.ts"
import { usedFolder } from "../../support/Program.ts"

const modeOf = (...path: ReadonlyArray<string>) => statSync(join(...path)).mode & 0o777

it.live("The data folder is its owner's alone, and the cluster in it also where it was open", () =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, ".data")
    const open = Effect.scoped(Embedded.connect(folder))
    yield* open
    assert.strictEqual(modeOf(folder), 0o700)
    yield* Effect.sync(() => chmodSync(join(folder, "postgres"), 0o755))
    yield* open
    assert.strictEqual(modeOf(folder, "postgres"), 0o700)
  }).pipe(Effect.provide([NodeServices.layer, Reactivity.layer]))
)

it.live("A statement leaves the event loop free: for requests, and for a stop signal", () =>
  Effect.gen(function* () {
    const sql = yield* Embedded.connect(join(yield* usedFolder, ".data"))
    const statement = yield* Effect.forkChild(sql`select pg_sleep(3)`, { startImmediately: true })
    const [took] = yield* Effect.timed(Effect.sleep("200 millis"))
    assert.isBelow(Duration.toSeconds(took), 3)
    assert.isUndefined(statement.pollUnsafe())
  }).pipe(Effect.scoped, Effect.provide([NodeServices.layer, Reactivity.layer]))
)
