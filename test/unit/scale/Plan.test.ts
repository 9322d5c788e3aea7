/** What the plans of Citus are taken for, by plans as its documentation shows them, and what is made of all of them. */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Effect } from "effect"
import { explainBy } from "../../../scripts/scale/citus/explain.ts"
import { judgeAll } from "../../../scripts/scale/citus/judge.ts"
import { type Asked, recordAll } from "../../../scripts/scale/citus/operations.ts"
import { verdictOf } from "../../../scripts/scale/citus/Plan.ts"
import * as Recorder from "../../../scripts/scale/citus/Recorder.ts"
import { onDatabase } from "../../support/deletions/support.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { long } from "../../support/tries.ts"

const linesOf = (text: string) => text.split("\n")

const router = linesOf(`Custom Scan (Citus Adaptive)  (cost=0.00..0.00 rows=0 width=0)
  Task Count: 1
  Tasks Shown: All
  ->  Task
        Node: host=localhost port=9701 dbname=postgres
        ->  Index Scan using invoices_pkey_102008 on invoices_102008 t  (cost=0.14..8.16 rows=1 width=32)
              Index Cond: ((organization_id = 'org_a'::text) AND (id = 'x'::text))`)

const all = linesOf(`Limit  (cost=0.00..0.00 rows=0 width=0)
  ->  Custom Scan (Citus Adaptive)  (cost=0.00..0.00 rows=100000 width=32)
        Task Count: 32
        Tasks Shown: One of 32
        ->  Task
              Node: host=localhost port=9701 dbname=postgres
              ->  Seq Scan on invoices_102008 t  (cost=0.00..8.16 rows=1 width=32)`)

const subplan = linesOf(`Custom Scan (Citus Adaptive)  (cost=0.00..0.00 rows=0 width=0)
  ->  Distributed Subplan 6_1
        ->  Custom Scan (Citus Adaptive)  (cost=0.00..0.00 rows=0 width=0)
              Task Count: 1
              Tasks Shown: All
  Task Count: 1
  Tasks Shown: All`)

const plain = linesOf(`Index Scan using invoices_pkey on invoices t  (cost=0.14..8.16 rows=1 width=32)
  Index Cond: ((organization_id = 'org_a'::text) AND (id = 'x'::text))`)

const one = { sql: "select 1 from invoices t where t.organization_id = $1", params: ["org_a"] }
const every = { sql: "select 1 from invoices t", params: [] }
const keys = { sql: "select 1 from api_keys", params: [] }

const asked = (statements: Asked["statements"], reason?: string): Asked => ({
  operation: { name: "it", statements: 1, run: Effect.void, ...(reason === undefined ? {} : { reason }) },
  statements
})

const judged = (given: Asked, lines: ReadonlyArray<string>) =>
  Effect.map(
    judgeAll([given], () => Effect.succeed(lines)),
    (found) => found.map(({ problem }) => problem)
  )

describe("a plan of Citus", () => {
  test("goes to one shard, or to several, or to none", () => {
    assert.deepStrictEqual(verdictOf(router), { _tag: "Single" })
    assert.deepStrictEqual(verdictOf(all), { _tag: "Several", tasks: 32, subplans: 0 })
    assert.deepStrictEqual(verdictOf(subplan), { _tag: "Several", tasks: 2, subplans: 1 })
    assert.deepStrictEqual(verdictOf(plain), { _tag: "Local" })
  })

  test.effect("is a problem unless it goes to one shard, or the statement may ask all servers", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* judged(asked([one]), router), [undefined])
      assert.match((yield* judged(asked([one]), all))[0] ?? "", /goes to 32 shards/)
      assert.match((yield* judged(asked([one]), subplan))[0] ?? "", /1 subplans/)
      assert.match((yield* judged(asked([one]), plain))[0] ?? "", /is each of invoices distributed/)
      assert.deepStrictEqual(yield* judged(asked([keys]), plain), [undefined])
      assert.deepStrictEqual(yield* judged(asked([every], "for a reason"), all), [undefined])
      // The reason is of those statements of the operation that name no organization.
      assert.match((yield* judged(asked([one], "for a reason"), all))[0] ?? "", /goes to 32 shards/)
      assert.match((yield* judged(asked([]), router))[0] ?? "", /too few statements/)
    })
  )
})

layer(TestDatabase.layerDatabases, onDatabase)("each statement for a distributed database", (it) => {
  it.effect(
    "can be planned and run by Postgres, with its parameters, and is noticed not to be distributed",
    () =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        const statements = yield* recordAll(yield* Recorder.database)
        const found = yield* judgeAll(statements, explainBy(sql))
        assert.isAbove(found.length, 300)
        assert.deepStrictEqual(
          found.filter(({ problem }) => problem?.startsWith("does not go to a shard") !== true),
          []
        )
      }).pipe(Effect.scoped),
    long
  )
})
