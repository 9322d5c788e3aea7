/**
 * Every repository against the contract: the fake and Postgres return the same bytes, whether the organization is known or
 * the statement that reads looks up its key, and whether pages skip in the index.
 */
import { assert, layer } from "@effect/vitest"
import { Arbitrary, Effect, Formatter } from "effect"
import { RecordNotFound } from "../../../src/api/Errors.ts"
import { toText } from "../../../src/database/Columns.ts"
import type { Page } from "../../../src/api/records/Requests.ts"
import type { FilterValues } from "../../../src/records/Repository.ts"
import type { Row } from "../../../src/records/Rows.ts"
import { integer, owners, recordsOf } from "../../support/arbitraries.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { tagsOf, tries } from "../../support/tries.ts"
import { candidates, filters, found, pageOf } from "./expected.ts"
import { asKnown, resources, type Stores, storesOf } from "./stores.ts"

const readers = ({ memory, postgres, skipping }: Stores) =>
  [
    ["memory", memory],
    ["Postgres", postgres],
    ["Postgres, skipping in the index", skipping]
  ] as const

/** Every reader returns exactly the rows of the page. */
const checkSearch = Effect.fnUntraced(function* (stores: Stores, owner: string, criteria: FilterValues, page: Page) {
  const resource = stores.resource.name
  const rows = found(resource, stores.rows, owner, criteria).slice(page.offset, page.offset + page.limit)
  const search = Formatter.format({ resource, owner, criteria, page })
  yield* Effect.forEach(
    readers(stores),
    ([reader, repository]) =>
      Effect.map(asKnown(owner)(repository.search(criteria, page)), (answer) =>
        assert.strictEqual(toText(answer), pageOf(rows), `${reader}: ${search}`)
      ),
    { concurrency: "unbounded", discard: true }
  )
})

/** Pages of this length, one after the other, and one beyond the last. */
const checkWalk = Effect.fnUntraced(function* (stores: Stores, owner: string, criteria: FilterValues, limit: number) {
  const { length } = found(stores.resource.name, stores.rows, owner, criteria)
  for (let offset = 0; offset < length + limit; offset += limit)
    yield* checkSearch(stores, owner, criteria, { limit, offset })
})

/** A record is found by its own organization alone. */
const checkGets = Effect.fnUntraced(function* (stores: Stores, owner: string) {
  const owned = stores.rows.filter((row) => row.organization === owner)
  const own = new Map(owned.map(({ id, record }) => [id, toText(record)]))
  const ids = [...new Set(stores.rows.map(({ id }) => id)), "nowhere", ""]
  for (const [reader, repository] of readers(stores)) {
    for (const id of ids) {
      const answer = yield* asKnown(owner)(Effect.match(repository.get(id), { onSuccess: toText, onFailure: String }))
      assert.strictEqual(answer, own.get(id) ?? String(new RecordNotFound()), `${reader}: ${id}`)
    }
  }
})

/** For each filter, its candidate; out of range: the request leaves the filter out. */
const choices = Arbitrary.array(integer(-12, 9), { minLength: 12, maxLength: 12 })

const criteriaOf = (resource: string, rows: ReadonlyArray<Row>, chosen: ReadonlyArray<number>): FilterValues =>
  Object.fromEntries(
    Object.keys(filters[resource] ?? {}).flatMap((filter, index) => {
      const value = candidates(resource, filter, rows)[chosen[index] ?? -1]
      return value === undefined ? [] : [[filter, value] as const]
    })
  )

layer(TestDatabase.layerDatabases, { excludeTestServices: true })((it) => {
  for (const resource of resources) {
    const { name } = resource
    for (const { often, options } of tries({ few: 1, many: 3, size: 24, maxShrinks: 100 }))
      it.effect.prop(
        `${name}: each store returns the contract's records, page by page and by id${often}`,
        {
          records: recordsOf(resource, { minLength: 12, maxLength: 24 }),
          requests: Arbitrary.array(choices, { minLength: 3, maxLength: 3 }),
          limit: integer(1, 5)
        },
        ({ limit, records, requests }) =>
          Effect.gen(function* () {
            const stores = yield* storesOf({ resource, records })
            const [owner] = owners
            for (const filter of Object.keys(filters[name] ?? {})) {
              for (const value of candidates(name, filter, stores.rows))
                yield* checkSearch(stores, owner, { [filter]: value }, { limit: 1000, offset: 0 })
            }
            yield* checkSearch(stores, owner, {}, { limit: 1, offset: 2147483647 })
            for (const each of owners) {
              yield* checkGets(stores, each)
              yield* checkWalk(stores, each, { include_deleted: true }, limit)
              for (const chosen of requests)
                yield* checkWalk(stores, each, criteriaOf(name, stores.rows, chosen), limit)
            }
          }),
        { ...options, tags: often === "" ? tagsOf(name) : options.tags }
      )
  }
})
