/** Every statement for a distributed database, on a Postgres that is not distributed. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { explainBy, judgeAll } from "../../../scripts/scale/citus/judge.ts"
import { recordAll } from "../../../scripts/scale/citus/operations.ts"
import * as Recorder from "../../../scripts/scale/citus/Recorder.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { long } from "../../support/tries.ts"

layer(TestDatabase.layerDatabases, { excludeTestServices: true })((it) => {
  it.effect(
    "each statement for a distributed database can be planned and run, and is found not to go to a shard",
    () =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        const found = yield* judgeAll(yield* recordAll(yield* Recorder.database), explainBy(sql))
        assert.isAbove(found.length, 300)
        assert.deepStrictEqual(
          found.filter(({ problem }) => problem?.startsWith("does not go to a shard") !== true),
          []
        )
      }).pipe(Effect.scoped),
    long
  )
})
