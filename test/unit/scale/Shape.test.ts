/**
 * On a distributed database each statement goes to one server: the organization is a parameter in the condition of every
 * table. Held here by the texts of all statements, since there is no Citus to run them.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { recordAll } from "../../../scripts/scale/citus/operations.ts"
import * as Recorder from "../../../scripts/scale/citus/Recorder.ts"
import { tablesOf, unowned } from "../../../scripts/scale/citus/Shape.ts"
import { resources } from "../../../src/api/records/index.ts"
import { byOrganization } from "../../../src/database/Distribution.ts"

/** What an UPDATE of a distributed table must not call: with a column nothing but what is immutable, and nothing volatile. */
const mutableIn = (sql: string) =>
  [...sql.matchAll(/\bupdate\s+\w+(?:\s+\w+)?\s+set\b(.*?)\b(?:from|where)\b/gis)].flatMap(([, set = ""]) =>
    [...set.matchAll(/\b(?:interval|jsonb_build_object|clock_timestamp|random|gen_random_uuid)\b/g)].map(String)
  )

describe("the statements for a distributed database", () => {
  it.effect("name the organization in the condition of each table, but for those that may ask all servers", () =>
    Effect.gen(function* () {
      const all = yield* recordAll(yield* Recorder.database)
      const seen = new Set<string>()
      for (const { operation, statements } of all) {
        assert.isAtLeast(statements.length, operation.statements, `${operation.name} makes its statements`)
        const wrong = statements.filter(({ sql }) => unowned(sql).length > 0)
        for (const { sql } of statements) assert.deepStrictEqual(mutableIn(sql), [], operation.name)
        for (const { sql } of statements) tablesOf(sql).forEach((table) => seen.add(table))
        if (operation.reason === undefined) assert.deepStrictEqual(wrong, [], operation.name)
        else {
          assert.isNotEmpty(wrong, `${operation.name} needs no exception`)
          // What changes or locks rows is of one organization in any case.
          for (const { sql } of wrong) assert.notMatch(sql, /\bupdate\b|\binsert\b|\bdelete from\b/i, operation.name)
        }
      }
      assert.sameMembers([...seen], [...byOrganization(resources.map(({ table }) => table))])
    }).pipe(Effect.scoped)
  )
})
