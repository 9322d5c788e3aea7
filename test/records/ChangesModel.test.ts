/**
 * Every history of the model of changes: nothing is lost, and no older state comes after a newer one. Without any one
 * of its rules, something is.
 */
import { assert, describe, it } from "@effect/vitest"
import { long } from "../support/tries.ts"
import { type Bounds, explore, rules } from "./changesModel.ts"

const pages = [1, 2]
const small: Bounds = { records: 2, transactions: 2, writes: 2, open: 2, pages }
const lagging: Bounds = { records: 2, transactions: 3, writes: 1, open: 2, pages, replica: "is read" }
const failover: Bounds = { ...lagging, replica: "takes over" }

const one = [1]

const histories = [
  ["two writers", small, {}],
  ["two writers at once, then a third", { ...small, transactions: 3, pages: one }, {}],
  ["three writers at once, of three records", { records: 3, transactions: 3, writes: 1, open: 3, pages: one }, {}],
  ["a replica that is read and lags", { ...lagging, pages: one }, {}],
  ["a replica that takes over, and lacks the last commits", { ...failover, pages: one }, {}],
  ["three writers at once, of two writes each", { ...small, transactions: 3, open: 3 }, long],
  ["two writes each, and a replica that is read and lags", { ...lagging, writes: 2, pages: one }, long],
  ["four transactions, and a replica that takes over", { ...failover, transactions: 4, pages: one }, long]
] as const

describe("a reader of changes", () => {
  for (const [name, bounds, options] of histories)
    it(`misses nothing in any history of ${name}`, options, () => {
      const { fault, history, states } = explore(bounds)
      assert.isUndefined(fault, history.join("; "))
      assert.isAbove(states, 1000)
    })

  it("would lose a record without the horizon", () => {
    const { fault, history } = explore(small, { ...rules, horizon: false })
    assert.strictEqual(fault, "record 0 is lost", history.join("; "))
  })

  it("would lose a record that a page cuts apart from its removal in the same transaction", () => {
    const { fault, history } = explore(small, { ...rules, removals: "before" })
    assert.strictEqual(fault, "record 0 is lost", history.join("; "))
  })

  it("would take a removal for newer than the record that an earlier id wrote after it", () => {
    const { fault, history } = explore(small, { ...rules, removals: "after" })
    assert.strictEqual(fault, "an older state of 0 came after a newer one", history.join("; "))
  })

  it("would lose a record if any cursor were accepted after a failover", () => {
    const { fault, history } = explore(failover, { ...rules, proves: "nothing" })
    assert.strictEqual(fault, "record 0 is lost", history.join("; "))
  })

  it("would lose a record if a mark had to prove only what was told, and not what was seen", long, () => {
    const { fault, history } = explore({ ...failover, transactions: 4, pages: one }, { ...rules, proves: "all told" })
    assert.strictEqual(fault, "record 0 is lost", history.join("; "))
  })
})
