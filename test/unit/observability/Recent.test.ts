/** The counts of recent requests, by endpoint, organization and reason, within bounds. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as Recent from "../../../src/observability/Recent.ts"

const minute = 60_000
const noon = Date.UTC(2026, 0, 31, 12)

const observed = (some: Partial<Recent.Observed> = {}): Recent.Observed => ({
  endpoint: "/api/v3/charges/search",
  organization: "org_a",
  isKnown: true,
  status: 200,
  duration: 1,
  refusal: undefined,
  ...some
})

const requestsIn = (rows: Recent.Rows) => Recent.total(rows).requests

const of = (rows: Recent.Rows, name: string) => rows.find(([each]) => each === name)?.[1]

describe("Recent", () => {
  it("counts requests, errors and refusals by endpoint, organization and reason", () => {
    const counter = Recent.make()
    counter.record(noon - minute, observed({ status: 422 }))
    counter.record(noon, observed())
    counter.record(noon, observed({ status: 503, refusal: "load" }))
    counter.record(noon, observed({ endpoint: "other", organization: undefined, status: 404 }))
    counter.record(noon, observed({ endpoint: "other", organization: undefined, status: 499 }))
    const { day, hour } = counter.snapshot(noon)
    assert.strictEqual(of(hour.slots, String(noon - minute))?.requests, 1)
    assert.strictEqual(of(hour.slots, String(noon))?.requests, 4)
    for (const window of [hour, day]) {
      assert.deepInclude(of(window.slots, String(noon)), { requests: 4, clientErrors: 2, serverErrors: 1 })
      assert.deepInclude(of(window.endpoints, "other"), { requests: 2, clientErrors: 2, serverErrors: 0 })
      assert.deepInclude(of(window.organizations, "org_a"), { requests: 3, clientErrors: 1, serverErrors: 1 })
      // 404 is an answer.
      const refusals = window.refusals.map(([reason, { requests }]) => [reason, requests] as const)
      assert.deepStrictEqual(Object.fromEntries(refusals), { invalid: 1, load: 1 })
    }
  })

  it("keeps minutes for an hour and slots of five minutes for a day", () => {
    const counter = Recent.make()
    for (let index = 0; index < 25 * 60; index++) counter.record(noon + index * minute, observed())
    const last = noon + (25 * 60 - 1) * minute
    const { day, hour } = counter.snapshot(last)
    assert.strictEqual(hour.slots.length, 60)
    assert.strictEqual(requestsIn(hour.slots), 60)
    assert.strictEqual(hour.slots[0]?.[0], String(last - 59 * minute))
    assert.strictEqual(day.slots.length, 288)
    assert.strictEqual(requestsIn(day.slots), 24 * 60)
    assert.strictEqual(requestsIn(day.organizations), 24 * 60)
    const later = counter.snapshot(last + 2 * 60 * minute)
    assert.deepStrictEqual(later.hour.slots, [])
    assert.strictEqual(requestsIn(later.day.slots), 22 * 60)
  })

  it.effect("continues when the wall clock is set back, and shows all times by the new one", () =>
    Effect.gen(function* () {
      const { observe, snapshot } = yield* Recent.Recent
      yield* TestClock.adjust("30 minutes")
      observe(observed())
      yield* TestClock.setTime(20 * minute)
      observe(observed())
      yield* TestClock.adjust("1 minute")
      observe(observed())
      const counted = (yield* snapshot).hour.slots.map(([start, { requests }]) => [Number(start) / minute, requests])
      assert.deepStrictEqual(counted, [
        [20, 2],
        [21, 1]
      ])
    }).pipe(Effect.provide(Recent.Recent.layer))
  )

  it("keeps the most active organizations of a slot, and counts the rest together", () => {
    const counter = Recent.make()
    for (let index = 0; index < 3000; index++) counter.record(noon, observed({ organization: `made_up_${index}` }))
    for (let index = 0; index < 5; index++) counter.record(noon, observed({ organization: "made_up_3" }))
    // Too late to be counted by itself.
    for (let index = 0; index < 5; index++) counter.record(noon, observed({ organization: "made_up_2999" }))
    const { hour } = counter.snapshot(noon + minute)
    assert.isAtMost(hour.organizations.length, 201)
    assert.strictEqual(of(hour.organizations, "made_up_3")?.requests, 6)
    assert.isUndefined(of(hour.organizations, "made_up_2999"))
    assert.isAbove(of(hour.organizations, "others")?.requests ?? 0, 2000)
    assert.strictEqual(requestsIn(hour.organizations), 3010)
    assert.strictEqual(requestsIn(hour.slots), 3010)
  })

  it("lists known organizations, whatever others deliveries name", () => {
    const counter = Recent.make()
    for (let index = 0; index < 5000; index++)
      counter.record(noon, observed({ organization: `made_up_${index % 1040}`, isKnown: false }))
    counter.record(noon, observed())
    for (const at of [noon, noon + minute]) {
      const { organizations, unknown } = counter.snapshot(at).hour
      assert.deepStrictEqual(
        organizations.map(([name]) => name),
        ["org_a"]
      )
      assert.isAtMost(unknown.length, 21)
      assert.strictEqual(requestsIn(unknown), 5000)
      counter.record(at + minute, observed())
    }
  })

  it("takes any name", () => {
    const counter = Recent.make()
    const names = ["__proto__", "constructor", "toString", "", "<b>", "others"]
    for (const organization of names) counter.record(noon, observed({ organization }))
    const { hour } = counter.snapshot(noon)
    assert.lengthOf(hour.organizations, names.length)
    for (const name of names) assert.strictEqual(of(hour.organizations, name)?.requests, 1, name)
  })

  it("reads quantiles off the buckets", () => {
    const counter = Recent.make()
    const quantile = (share: number) => Recent.quantile(Recent.total(counter.snapshot(noon).hour.slots).latency, share)
    assert.isUndefined(quantile(0.5))
    for (let index = 0; index < 90; index++) counter.record(noon, observed({ duration: 1 }))
    assert.strictEqual(quantile(1), 1)
    for (let index = 0; index < 10; index++) counter.record(noon, observed({ duration: 150 }))
    assert.isAtMost(quantile(0.5) ?? 0, 1)
    assert.strictEqual(quantile(0.95), 150)
    counter.record(noon, observed({ duration: 60_000 }))
    assert.strictEqual(quantile(1), Infinity)
  })
})
