/**
 * On a distributed database each statement goes to one server: the organization is a parameter in the condition of every
 * table. Held here by the texts of all statements, since there is no Citus to run them.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Deletion from "../../../src/deletions/Deletion.ts"
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

  it("would be found otherwise", () => {
    assert.deepStrictEqual(unowned(Deletion.one.deletion), [])
    assert.includeMembers([...unowned(Deletion.several.deletion)], ["deletion_tasks", "invoices", "invoice_lines"])
    for (const [sql, tables] of [
      ["select 1 from invoices t where t.organization_id = $1 and t.id = $2", []],
      ["select 1 from invoices t where t.organization_id = k.organization_id", ["invoices"]],
      ["select 1 from invoices t where t.id = $1", ["invoices"]],
      ["select 1 from invoices t where u.organization_id = $1", ["invoices"]],
      ["select 1 from invoices t where t.id in (select id from pets t where t.organization_id = $1)", ["invoices"]],
      ["(select 1 from pets t where t.organization_id = $1) union all (select 1 from pets t)", ["pets"]],
      ["select 1 from pets t where t.organization_id = $1 union all select 1 from pets t", ["pets"]],
      ["select 1 from pets t join invoices i on i.organization_id = $1 and i.pet = t.id", ["pets"]],
      ["update pets set name = 'organization_id = $1' where id = $1", ["pets"]],
      ["insert into audit_log (organization_id, id) values ($1, $2)", []],
      ["insert into audit_log (id, organization_id) values ($1, $2)", ["audit_log"]],
      ["select a, b from audit_log a order by a.at", ["audit_log"]],
      ["select 1 from api_keys where key_hash = $1", []]
    ] as const) {
      assert.deepStrictEqual([...unowned(sql)], [...tables], sql)
    }
  })
})
