/** The texts of statements are kept: a statement of a kept text is the one that would be made anew. */
import { assert, describe, it } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Arbitrary, Effect, Schema } from "effect"
import * as Statement from "effect/sql/Statement"
import { searchable } from "../../../src/api/records/index.ts"
import type { Resource } from "../../../src/api/records/Resource.ts"
import type { Criteria } from "../../../src/records/Repository.ts"
import { type Make, makeTemplates, ownerOfKey, withKey } from "../../../src/keys/OrganizationReads.ts"
import { askedOf, searchQuery } from "../../../src/records/SearchQuery.ts"

const sql = Statement.make(Effect.never, PgClient.makeCompiler(), [], undefined)

const Given = Schema.Struct({
  chosen: Schema.Array(Schema.Boolean).check(Schema.isMaxLength(12)),
  texts: Schema.Array(Schema.Literals(["a", "a", "12", "2026-01-01T00:00:00Z", "\u0000", "\u00001", "$1", "'"])),
  limit: Schema.Literals([1, 100]),
  offset: Schema.Literals([0, 7, 2000]),
  owner: Schema.Literals(["org_a", "a"]),
  isKeyed: Schema.Boolean
})

/** Filters that are chosen, with these values. */
const criteriaOf = ({ filters }: Resource, { chosen, texts }: typeof Given.Type): Criteria =>
  Object.fromEntries(
    Object.entries(filters).flatMap(([name, { kind }], index) =>
      chosen[index] === true ? [[name, kind === "includeMarked" ? true : (texts[index % texts.length] ?? "")]] : []
    )
  )

describe("statements that read records", () => {
  for (const resource of searchable)
    it.prop(
      `${resource.name}: whatever was asked before, a search is the statement that is made for it alone`,
      { requests: Arbitrary.schema(Schema.Array(Given).check(Schema.isMaxLength(12))) },
      ({ requests }) => {
        const templates = makeTemplates()
        for (const request of requests) {
          const page = { limit: request.limit, offset: request.offset }
          const { conditions, ...shaped } = askedOf(resource, criteriaOf(resource, request), page)
          const make: Make = ([owner = "", ...values]) => {
            const fragment = request.isKeyed ? sql.literal(ownerOfKey) : sql`${owner}`
            const query = searchQuery(sql, fragment, resource, { conditions, values }, page)
            const statement = request.isKeyed ? withKey(sql, owner, query) : query.statement
            return { query: statement.compile(), isPlannedOnce: query.isPlannedOnce }
          }
          const values = [request.owner, ...shaped.values]
          assert.deepStrictEqual(templates(`${request.isKeyed} ${shaped.shape}`, values, make), make(values))
        }
      },
      { arbitrary: { runs: 30 } }
    )

  it("have one text for a shape, until there are too many shapes to keep", () => {
    const templates = makeTemplates()
    let made = 0
    const ask = (shape: string) =>
      templates(shape, ["org_a", "v"], (values) => {
        made += 1
        return { query: ["select $1, $2", values], isPlannedOnce: true }
      })
    for (let n = 0; n < 100; n++) assert.deepStrictEqual(ask("same").query, ["select $1, $2", ["org_a", "v"]])
    assert.strictEqual(made, 1)
    for (let n = 0; n < 499; n++) ask(`other ${n}`)
    ask("same")
    assert.strictEqual(made, 500)
    ask("one more")
    ask("same")
    assert.strictEqual(made, 502)
  })
})
