/** The page on scale has what its program prints, and the program adds up. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { read } from "../../scripts/operations/tables.ts"
import { divide, fewestGroups, needs, pressure, sizes } from "../../scripts/scale/model/model.ts"
import { tables } from "../../scripts/scale/model/tables.ts"

const page = readFileSync(new URL("../../scripts/scale/README.md", import.meta.url), "utf8")

// The formatter aligns tables.
const plain = (table: string | undefined) => table?.replaceAll(/:?-{3,}:?/g, "---").replaceAll(/ +/g, " ")

describe("The page on scale", () => {
  it.each(Object.entries(tables()))("has the table %s that is printed", (name, text) => {
    assert.strictEqual(plain(read(page, name)), plain(text), "run `node scripts/scale/simulate.ts --write`")
  })
})

const sum = (values: ReadonlyArray<number>) => values.reduce((total, value) => total + value, 0)

const tightest = (groups: ReturnType<typeof divide>) =>
  Math.max(...groups.map((group) => pressure(group)[0]?.share ?? 0))

describe("The simulation", () => {
  it("gives each organization its records, and each to one group", () => {
    const all = sizes(1000)
    assert.closeTo(sum(all), 1000 * 100_000, 1)
    const groups = divide(all, 7)
    assert.strictEqual(sum(groups.map(({ organizations }) => organizations)), 1000)
    assert.closeTo(sum(groups.map(({ records }) => records)), sum(all), 1)
    const records = groups.map((group) => group.records)
    assert.isAtMost(Math.max(...records), Math.max(all[0] ?? 0, 1.01 * (sum(all) / 7)))
  })

  it("finds the fewest groups that keep the limits, and none for an organization that breaks one alone", () => {
    const all = sizes(20_000)
    const found = fewestGroups(all)
    assert.isDefined(found)
    assert.isAbove(found.length, 1)
    assert.isAtMost(tightest(found), 1)
    assert.isAbove(tightest(divide(all, found.length - 1)), 1)
    assert.isUndefined(fewestGroups([1e12, ...all]))
  })

  it("needs more of everything for more records and for more organizations", () => {
    const few = needs({ organizations: 100, records: 1e7 })
    for (const more of [needs({ organizations: 100, records: 2e7 }), needs({ organizations: 10_000, records: 1e7 })])
      for (const [name, need] of Object.entries(few))
        assert.isAtLeast(Object.entries(more).find(([other]) => other === name)?.[1] ?? 0, need, name)
  })
})
