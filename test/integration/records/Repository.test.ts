/**
 * What every repository of records does, over both of its stores: the fake in memory and Postgres return the same
 * bytes, whether the organization is known or the statement that reads looks up its key. Contract: section 4.1, "Common list request fields", "List endpoints and their filters".
 */
import { hash } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Arbitrary, Effect, Formatter, Layer } from "effect"
import { RecordNotFound } from "../../../src/api/Errors.ts"
import { organizations } from "../../../src/demo/DemoData.ts"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import type { Criteria, Page } from "../../../src/records/Repository.ts"
import type { Row } from "../../../src/records/Rows.ts"
import { integer, owners, recordsOf } from "../../support/arbitraries.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { long, tries } from "../../support/tries.ts"
import { candidates, filters, found, pageOf } from "./expected.ts"
import { demoOf, resources, type Stores, storesOf } from "./stores.ts"
import { UnresolvedKey } from "../../../src/keys/OrganizationReads.ts"
import * as Pages from "../../../src/records/Pages.ts"

const everything: Page = { limit: 1000, offset: 0 }

const demoOwners = organizations.map(({ slug }) => `org_${slug}`)

const as = (id: string) => Effect.provideService(CurrentOrganization, CurrentOrganization.known(id))

const keyHashOf = (organization: string) => hash("sha256", organization, "buffer")

const asHolderOfKey = (id: string) =>
  Effect.provideService(CurrentOrganization, new UnresolvedKey(keyHashOf(id), () => Effect.never))

const keys = Layer.effectDiscard(
  Effect.gen(function* () {
    const { sql } = yield* TestDatabase
    for (const organization_id of [...demoOwners, ...owners, "org_nowhere"]) {
      const key = { organization_id, id: "key", name: "Test", prefix: "test", key_hash: keyHashOf(organization_id) }
      yield* sql`insert into api_keys ${sql.insert(key)}`
    }
  })
)

/** Each store, and each form in which a request can say whose records it reads. */
const readers = ({ memory, postgres, skipping }: Stores) =>
  [
    ["memory", memory, as],
    ["Postgres", postgres, as],
    ["Postgres, by key", postgres, asHolderOfKey],
    ["Postgres, skipping in the index", skipping, as],
    ["Postgres, skipping in the index, by key", skipping, asHolderOfKey]
  ] as const

/** Both stores return exactly the rows that the request means. */
const checkSearch = Effect.fnUntraced(function* (
  stores: Stores,
  organization: string,
  criteria: Criteria,
  page: Page = everything
) {
  const resource = stores.resource.name
  const expected = pageOf(
    found(resource, stores.rows, organization, criteria).slice(page.offset, page.offset + page.limit)
  )
  const asked = Formatter.format({ resource, organization, criteria, page })
  yield* Effect.forEach(
    readers(stores),
    ([reader, repository, of]) =>
      Effect.map(of(organization)(repository.search(criteria, page)), (answer) =>
        assert.strictEqual(Pages.toText(answer), expected, `${reader}: ${asked}`)
      ),
    { concurrency: "unbounded", discard: true }
  )
})

/** Pages of this length, one after the other, hold each row that the request means once and in order. */
const checkWalk = Effect.fnUntraced(function* (
  stores: Stores,
  organization: string,
  criteria: Criteria,
  limit: number
) {
  const count = found(stores.resource.name, stores.rows, organization, criteria).length
  for (let offset = 0; offset < count + limit; offset += limit) {
    yield* checkSearch(stores, organization, criteria, { limit, offset })
  }
})

/** Which values of each filter are tried, in which organizations. The last value is null. */
const extents = [
  {
    extent: "",
    tried: <A>(values: ReadonlyArray<A>) => [...values.slice(0, 2), ...values.slice(-1)],
    asking: demoOwners.slice(0, 1),
    options: {}
  },
  {
    extent: " (every value)",
    tried: <A>(values: ReadonlyArray<A>) => values,
    asking: [...demoOwners, "org_nowhere"],
    options: long
  }
]

/** How many records are got one by one. */
const most = 50

/** A record is got by its id by its own organization, and not found by another. */
const checkGets = Effect.fnUntraced(function* (stores: Stores, organization: string) {
  const { rows } = stores
  const own = new Map(rows.filter((row) => row.organization === organization).map((row) => [row.id, row.json]))
  const all = [...new Set(rows.map((row) => row.id))]
  const ids = [...all.filter((_, index) => index % Math.ceil(all.length / most) === 0), "nowhere", ""]
  for (const [, repository, of] of readers(stores)) {
    // Whether pages skip in the index makes no difference to a record.
    if (repository === stores.skipping) continue
    yield* Effect.forEach(
      ids,
      (id) =>
        Effect.map(of(organization)(Effect.result(repository.get(id))), (answer) => {
          const expected = own.get(id)
          if (expected === undefined) {
            assert.deepStrictEqual(answer._tag === "Failure" && answer.failure, new RecordNotFound())
          } else {
            assert.strictEqual(answer._tag === "Success" && Pages.toText(answer.success), expected)
          }
        }),
      { concurrency: 4, discard: true }
    )
  }
})

/** Which candidate of each filter a generated request takes; out of range: the request leaves the filter out. */
const choices = Arbitrary.array(integer(-12, 9), { minLength: 12, maxLength: 12 })

const criteriaOf = (resource: string, rows: ReadonlyArray<Row>, chosen: ReadonlyArray<number>): Criteria =>
  Object.fromEntries(
    Object.keys(filters[resource] ?? {}).flatMap((filter, index) => {
      const value = candidates(resource, filter, rows)[chosen[index] ?? -1]
      return value === undefined ? [] : [[filter, value] as const]
    })
  )

layer(Layer.provideMerge(keys, TestDatabase.layerDatabases), { excludeTestServices: true })((it) => {
  for (const resource of resources) {
    const { name } = resource

    it.effect(`${name}: the filters are the contract's, in its order`, () =>
      Effect.sync(() => assert.deepStrictEqual(Object.keys(resource.filters), Object.keys(filters[name] ?? {})))
    )

    for (const { asking, extent, options, tried } of extents)
      it.effect(
        `${name}: on the demo data each filter, alone and null, means the same in memory and in Postgres${extent}`,
        () =>
          Effect.gen(function* () {
            const stores = yield* storesOf(demoOf(resource))
            for (const organization of asking) {
              yield* checkSearch(stores, organization, {})
              for (const filter of Object.keys(resource.filters)) {
                for (const value of tried(candidates(name, filter, stores.rows))) {
                  yield* checkSearch(stores, organization, { [filter]: value })
                }
              }
            }
          }),
        options
      )

    it.effect(`${name}: on the demo data pages of any length hold each record once, in order`, () =>
      Effect.gen(function* () {
        const stores = yield* storesOf(demoOf(resource))
        const own = stores.rows.filter(({ organization }) => organization === "org_oakridge")
        for (const limit of [29, 100]) yield* checkWalk(stores, "org_oakridge", { include_deleted: true }, limit)
        for (const filter of Object.keys(resource.filters)) {
          const [value] = candidates(name, filter, own)
          yield* checkWalk(stores, "org_oakridge", { [filter]: value }, 23)
        }
        yield* checkSearch(stores, "org_oakridge", {}, { limit: 1, offset: 2147483647 })
      })
    )

    it.effect(`${name}: on the demo data a record is got by its own organization and unknown to the other`, () =>
      Effect.gen(function* () {
        const stores = yield* storesOf(demoOf(resource))
        for (const organization of demoOwners) yield* checkGets(stores, organization)
      })
    )

    for (const { often, options } of tries({ few: 1, many: 6, size: 24, maxShrinks: 100 }))
      it.effect.prop(
        `${name}: any records, any filters together, any page: both stores return the same bytes${often}`,
        {
          records: recordsOf(resource, { maxLength: 24 }),
          requests: Arbitrary.array(choices, { minLength: 8, maxLength: 8 }),
          limit: integer(1, 5)
        },
        ({ records, requests, limit }) =>
          Effect.gen(function* () {
            const stores = yield* storesOf({ resource, records })
            for (const organization of owners) {
              yield* checkGets(stores, organization)
              yield* checkWalk(stores, organization, { include_deleted: true }, limit)
              for (const chosen of requests) {
                yield* checkWalk(stores, organization, criteriaOf(name, stores.rows, chosen), limit)
              }
            }
          }),
        options
      )
  }
})
