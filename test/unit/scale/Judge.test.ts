/** The judgement of a statement by its plan on Citus, over plans as its documentation shows them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { judgeAll } from "../../../scripts/scale/citus/judge.ts"

const router = `Custom Scan (Citus Adaptive)  (cost=0.00..0.00 rows=0 width=0)
  Task Count: 1
  Tasks Shown: All
  ->  Task
        ->  Index Scan using invoices_pkey_102008 on invoices_102008 t  (cost=0.14..8.16 rows=1 width=32)`

const all = `Limit  (cost=0.00..0.00 rows=0 width=0)
  ->  Custom Scan (Citus Adaptive)  (cost=0.00..0.00 rows=100000 width=32)
        Task Count: 32
        Tasks Shown: One of 32`

const subplan = `Custom Scan (Citus Adaptive)  (cost=0.00..0.00 rows=0 width=0)
  ->  Distributed Subplan 6_1
        ->  Custom Scan (Citus Adaptive)  (cost=0.00..0.00 rows=0 width=0)
              Task Count: 1
  Task Count: 1`

const plain = `Index Scan using invoices_pkey on invoices t  (cost=0.14..8.16 rows=1 width=32)`

const one = "select 1 from invoices t where t.organization_id = $1"
const every = "select 1 from invoices t"
const keys = "select 1 from api_keys"

describe("a statement on Citus", () => {
  it.effect.each([
    ["goes to one shard", one, router, undefined, undefined],
    ["goes to all", one, all, undefined, /goes to 32 shards/],
    ["goes to all although it names an organization", one, all, "a reason", /goes to 32 shards/],
    ["may go to all", every, all, "a reason", undefined],
    ["has a subplan", one, subplan, undefined, /1 subplans/],
    ["goes to no shard", one, plain, undefined, /is each of invoices distributed/],
    ["reads no distributed table", keys, plain, undefined, undefined],
    ["is missing", undefined, plain, undefined, /too few statements/]
  ] as const)("is judged by its plan: %s", ([, sql, plan, reason, expected]) =>
    Effect.gen(function* () {
      const operation = { name: "it", statements: 1, run: Effect.void, ...(reason !== undefined && { reason }) }
      const statements = sql === undefined ? [] : [{ sql, params: ["org_a"] }]
      const [judged] = yield* judgeAll([{ operation, statements }], () => Effect.succeed(plan.split("\n")))
      if (expected === undefined) assert.isUndefined(judged?.problem)
      else assert.match(judged?.problem ?? "", expected)
    })
  )
})
