/**
 * The feeds of changes over both stores, whether the organization is known or the statement that reads looks up its key:
 * pages, cursors and whose they are.
 */
import { hash } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import { CursorInvalid } from "../../../src/api/Errors.ts"
import { pets } from "../../../src/api/records/Pets.ts"
import { products } from "../../../src/api/records/Products.ts"
import { searchable } from "../../../src/api/records/index.ts"
import type { Resource } from "../../../src/api/records/Resource.ts"
import * as ChangeClock from "../../../src/records/ChangeClock.ts"
import * as Postgres from "../../../src/records/Postgres.ts"
import type { Repository } from "../../../src/records/Repository.ts"
import { settled } from "../../support/settled.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { demoOf, storesOf } from "./stores.ts"
import { UnresolvedKey } from "../../../src/keys/OrganizationReads.ts"
import * as Pages from "../../../src/records/Pages.ts"

const [organization, another] = ["org_oakridge", "org_harbor"] as const

const keyHashOf = (owner: string) => hash("sha256", owner, "buffer")

const as = (id: string) => Effect.provideService(CurrentOrganization, CurrentOrganization.known(id))

const asHolderOfKey = (id: string) =>
  Effect.provideService(CurrentOrganization, new UnresolvedKey(keyHashOf(id), () => Effect.never))

/** Each store of a resource's demo records, and each form in which a request can say whose records it reads. */
const readersOf = Effect.fnUntraced(function* (resource: Resource) {
  const { sql } = yield* TestDatabase
  for (const organization_id of [organization, another]) {
    const key = { organization_id, id: "key", name: "Test", prefix: "test", key_hash: keyHashOf(organization_id) }
    yield* sql`insert into api_keys ${sql.insert(key)} on conflict do nothing`
  }
  const { memory, postgres, rows } = yield* storesOf(demoOf(resource))
  yield* settled(sql)
  const readers = [
    ["memory", memory, as],
    ["Postgres", postgres, as],
    ["Postgres, by key", postgres, asHolderOfKey]
  ] as const
  return { rows, readers }
})

const Page = Schema.Struct({
  body: Schema.Array(Schema.Unknown),
  removed: Schema.Array(Schema.String),
  cursor: Schema.String,
  has_more: Schema.Boolean
})

const decodePage = Schema.decodeEffect(Schema.fromJsonString(Page))

const decodeRecord = Schema.decodeEffect(Schema.fromJsonString(Schema.Unknown))

const pageOf = Effect.fnUntraced(function* (repository: Repository, cursor: string | undefined, limit: number) {
  const { json } = yield* repository.changes({ cursor, limit })
  return yield* decodePage(Pages.toText(json))
})

const damaged = (cursor: string) => [
  ...cursor.split("").map((letter, at) => cursor.slice(0, at) + (letter === "x" ? "y" : "x") + cursor.slice(at + 1)),
  ...Array.from(cursor, (_, at) => cursor.slice(0, at)),
  `${cursor}A`,
  `${cursor}=`,
  ` ${cursor}`,
  cursor.toUpperCase(),
  "x".repeat(10_000)
]

layer(TestDatabase.layerDatabases, { excludeTestServices: true })("the changes", (it) => {
  it.effect.each(searchable.map((resource: Resource) => [resource.name, resource] as const))(
    "of %s begin with every record of the organization, once, in pages of at most the limit",
    ([, resource]) =>
      Effect.gen(function* () {
        const { readers, rows } = yield* readersOf(resource)
        const own = rows.filter((row) => row.organization === organization)
        for (const [reader, repository, of] of readers) {
          for (const limit of [1, 3, 1000]) {
            const seen: Array<unknown> = []
            let cursor: string | undefined = undefined
            let hasMore = true
            while (hasMore) {
              const page: typeof Page.Type = yield* of(organization)(pageOf(repository, cursor, limit))
              assert.isAtMost(page.body.length, limit, reader)
              assert.deepStrictEqual(page.removed, [])
              assert.strictEqual(page.has_more, seen.length + page.body.length < own.length, reader)
              seen.push(...page.body)
              cursor = page.cursor
              hasMore = page.has_more
            }
            assert.sameDeepMembers(seen, yield* Effect.forEach(own, ({ json }) => decodeRecord(json)), reader)
            const after = yield* of(organization)(pageOf(repository, cursor, limit))
            assert.deepStrictEqual(after, { body: [], removed: [], cursor: after.cursor, has_more: false }, reader)
          }
        }
      })
  )

  it.effect("have a cursor that is refused when it is damaged in any place", () =>
    Effect.gen(function* () {
      const { readers } = yield* readersOf(pets)
      for (const [reader, repository, of] of readers) {
        const { cursor } = yield* of(organization)(pageOf(repository, undefined, 2))
        assert.isAtMost(cursor.length, 120)
        for (const wrong of damaged(cursor)) {
          if (wrong === cursor) continue
          const refused = yield* Effect.flip(of(organization)(repository.changes({ cursor: wrong, limit: 2 })))
          assert.deepStrictEqual(refused, new CursorInvalid(), `${reader}: ${wrong}`)
        }
      }
    })
  )

  it.effect("have a cursor that is of one organization and one resource", () =>
    Effect.gen(function* () {
      const ofPets = yield* readersOf(pets)
      const ofProducts = yield* readersOf(products)
      for (const [index, [reader, repository, of]] of ofPets.readers.entries()) {
        const { cursor } = yield* of(organization)(pageOf(repository, undefined, 2))
        const byAnother = yield* Effect.flip(of(another)(repository.changes({ cursor, limit: 2 })))
        assert.deepStrictEqual(byAnother, new CursorInvalid(), reader)
        const elsewhere = ofProducts.readers[index]?.[1]
        assert.isDefined(elsewhere)
        const ofAnother = yield* Effect.flip(
          of(organization)(elsewhere?.changes({ cursor, limit: 2 }) ?? Effect.die(reader))
        )
        assert.deepStrictEqual(ofAnother, new CursorInvalid(), reader)
      }
    })
  )

  it.effect("are none for one short statement, whatever the limit, and a large page has a connection of its own", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* storesOf(demoOf(pets))
      yield* settled(sql)
      const asked: Array<PropertyKey> = []
      const watched = new Proxy(sql, {
        get: (target, name) => {
          if (name === "run" || name === "runShort") asked.push(name)
          return Reflect.get(target, name)
        }
      })
      const repository = Postgres.make(watched, pets, { clock: ChangeClock.make(sql, sql) })
      const poll = Effect.fnUntraced(function* (cursor: string | undefined, limit: number) {
        asked.length = 0
        const page = yield* as(organization)(pageOf(repository, cursor, limit))
        return { ...page, asked: [...asked] }
      })
      const { cursor } = yield* poll(undefined, 1000)
      for (const limit of [1, 250, 251, 1000]) {
        const none = yield* poll(cursor, limit)
        assert.deepStrictEqual([none.body, none.cursor, none.has_more], [[], cursor, false])
        assert.deepStrictEqual(none.asked, ["runShort"])
      }
      yield* sql`insert into pets (organization_id, id) values (${organization}, 'pet_new')`
      yield* settled(sql)
      const few = yield* poll(cursor, 250)
      const many = yield* poll(cursor, 251)
      assert.deepStrictEqual([few.body.length, few.asked], [1, ["runShort"]])
      assert.deepStrictEqual([many.body, many.asked], [few.body, ["runShort", "run"]])
      // What exists again is decided in the statement of the page: another one may reach another server.
      yield* sql`delete from pets where id = 'pet_new'`
      yield* settled(sql)
      const removed = yield* poll(cursor, 250)
      assert.deepStrictEqual([removed.removed, removed.asked], [["pet_new"], ["runShort"]])
    })
  )
})
