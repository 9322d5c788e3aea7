/**
 * Clients that keep a copy as the documentation says, over HTTP, against the program on a Postgres that others write at
 * the same time. They are killed now and then, and go on from what they saved. Nothing may be lost.
 */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Array, Clock, Effect, Random } from "effect"
import { searchable } from "../../contract/Contract.ts"
import { eventually } from "../../blackbox/support/eventually.ts"
import { options } from "../../blackbox/support/Service.ts"
import type { Ask } from "./ask.ts"
import { documented } from "./documented.ts"
import { byChanges, bySearch, Copied, inStep, isWhole, organization } from "./service.ts"

const resourceOf = (name: string) => documented.find((resource) => resource.name === name) ?? assert.fail(name)

const tableOf = (name: string) => name.replaceAll("-", "_")

/** A client of each kind. */
const clientsOf = (ask: Ask, name: string, limit?: number) =>
  [byChanges(ask, name, limit), bySearch(ask, resourceOf(name), limit)].map(
    (client) => [tableOf(name), client] as const
  )

const areWhole = Effect.forEach(([table, client]: ReturnType<typeof clientsOf>[number]) => isWhole(client, table))

describe("the table of the documentation", () => {
  test.each(searchable)("says how $name is read by search alone", ({ fields, filters, name, orderedBy }) => {
    const { hasDeleted, since, time } = resourceOf(name)
    assert.strictEqual(time, orderedBy in fields ? orderedBy : undefined)
    assert.strictEqual(hasDeleted, "include_deleted" in filters)
    if (time === undefined) return assert.isUndefined(since)
    assert.deepInclude(filters[since ?? ""], { compares: "since", fields: [time] })
  })

  test("has every resource that can be searched", () => {
    assert.sameMembers(
      documented.map(({ name }) => name),
      searchable.map(({ name }) => name)
    )
  })
})

layer(Copied.layer, options)("a copy", (it) => {
  it.effect.each(documented)("of $name is whole", ({ name }) =>
    Effect.gen(function* () {
      const { ask, sql } = yield* Copied
      const table = tableOf(name)
      const clients = clientsOf(ask, name, 2)
      const insert = (first: number, last: number) =>
        sql`insert into ${sql(table)} (organization_id, id)
          select ${organization}, 'few_' || n from generate_series(${first}::integer, ${last}::integer) n`
      yield* insert(1, 5)
      for (const [, client] of clients) yield* isWhole(client, table)
      yield* insert(6, 8)
      for (const [, client] of clients) yield* isWhole(client, table)
    })
  )
})
