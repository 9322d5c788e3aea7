/** Parquet files have the copy as it was when all resources were in step. */
import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { paymentIntents } from "../../../../src/api/records/PaymentIntents.ts"
import { pets } from "../../../../src/api/records/Pets.ts"
import { rowsOf } from "../../../../src/records/Rows.ts"
import * as ParquetTarget from "../../../../src/cli/sync/ParquetTarget.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import { resources } from "../../records/stores.ts"
import * as Arbitraries from "../../../support/arbitraries.ts"
import { tries } from "../../../support/tries.ts"
import { beginning, charge, charges, decodeRecords, opening, page, tableOf } from "./fixture.ts"
import { inParquet } from "./readers.ts"

const stand = Effect.gen(function* () {
  const folder = join(yield* temporaryFolder, "copy")
  const target = yield* ParquetTarget.make(folder)
  return { folder, target, read: (resource: string) => Effect.promise(() => inParquet(folder, resource)) }
}).pipe(Effect.provide(NodeServices.layer))

for (const { often, options } of tries({ few: 2, many: 5, size: 24, maxShrinks: 100 }))
  // They have a field of every type.
  for (const resource of options.tags.length > 0 ? resources : [paymentIntents, pets])
    it.effect.prop(
      `a file has ${resource.name} exactly as they came${often}`,
      { records: Arbitraries.recordsOf(resource, { maxLength: 24 }) },
      ({ records }) =>
        Effect.gen(function* () {
          const table = tableOf(resource.name)
          const { read, target } = yield* stand
          const copy = yield* target.open(opening({ tables: [table] }))
          const came = yield* decodeRecords((yield* rowsOf(resource, records)).map(({ json }) => json))
          yield* copy.apply(table, beginning, page(came))
          yield* copy.finish
          assert.deepStrictEqual(
            Object.fromEntries(yield* read(resource.name)),
            Object.fromEntries(came.map((record) => [record.id, JSON.stringify(record)]))
          )
        }).pipe(Effect.scoped),
      options
    )

it.effect("a file is written anew when its resource has changed, and when it is gone", () =>
  Effect.gen(function* () {
    const { folder, read, target } = yield* stand
    const file = join(folder, "charges.parquet")
    const ids = Effect.map(read("charges"), (rows) => [...rows.keys()])
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
    // Half of what is read anew is nothing to look at.
    state = yield* copy.restart(charges, state)
    state = yield* copy.apply(charges, state, page([charge("d", "1")], { complete: false }))
    yield* copy.finish
    assert.deepStrictEqual(yield* ids, ["b", "c"])
    yield* copy.apply(charges, state, page([]))
    yield* copy.finish
    assert.deepStrictEqual(yield* ids, ["d"])
  }).pipe(Effect.scoped)
)

it.effect("a folder with files of somebody else is refused", () =>
  Effect.gen(function* () {
    const { folder, target } = yield* stand
    mkdirSync(folder)
    writeFileSync(join(folder, "charges.parquet"), "mine")
    const { message } = yield* Effect.flip(Effect.scoped(target.open(opening())))
    assert.include(message, "that practice-data did not create, such as charges.parquet")
  }).pipe(Effect.scoped)
)
