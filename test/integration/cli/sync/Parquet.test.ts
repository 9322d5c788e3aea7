/** Parquet files have the copy as it was when all resources were in step. */
import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as ParquetTarget from "../../../../src/cli/sync/ParquetTarget.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import { beginning, charge, charges, exactly, opening, page } from "./fixture.ts"
import { inParquet } from "./readers.ts"

const stand = Effect.gen(function* () {
  const folder = join(yield* temporaryFolder, "copy")
  const target = yield* ParquetTarget.make(folder)
  return { folder, target, rowsOf: (resource: string) => Effect.promise(() => inParquet(folder, resource)) }
}).pipe(Effect.provide(NodeServices.layer))

exactly("Parquet", it, stand)

it.effect("a file is written anew when its resource has changed, and when it is gone", () =>
  Effect.gen(function* () {
    const { folder, rowsOf, target } = yield* stand
    const file = join(folder, "charges.parquet")
    const ids = Effect.map(rowsOf("charges"), (rows) => [...rows.keys()])
    const modified = () => statSync(file, { bigint: true }).mtimeNs
    const first = yield* Effect.scoped(
      Effect.gen(function* () {
        const copy = yield* target.open(opening())
        const state = yield* copy.apply(charges, beginning, page([charge("a", "1"), charge("b", "1")]))
        assert.notInclude(readdirSync(folder), "charges.parquet")
        yield* copy.finish
        assert.deepStrictEqual(yield* ids, ["a", "b"])
        return state
      })
    )
    const copy = yield* target.open(opening())
    const before = modified()
    yield* copy.finish
    assert.strictEqual(modified(), before)
    let state = yield* copy.apply(charges, first, page([charge("c", "1")], { removed: ["a"] }))
    yield* copy.finish
    assert.deepStrictEqual(yield* ids, ["b", "c"])
    // Half of what is read anew is not shown.
    state = yield* copy.restart(charges, state)
    state = yield* copy.apply(charges, state, page([charge("d", "1")], { complete: false }))
    yield* copy.finish
    assert.deepStrictEqual(yield* ids, ["b", "c"])
    yield* copy.apply(charges, state, page([]))
    yield* copy.finish
    assert.deepStrictEqual(yield* ids, ["d"])
  }).pipe(Effect.scoped)
)
