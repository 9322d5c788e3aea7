/** The feed of changes over both stores: pages, the owners of cursors, and forged ones. */
import { hash } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { CursorInvalid } from "../../../src/api/Errors.ts"
import { searchable } from "../../../src/api/records/index.ts"
import { pets } from "../../../src/api/records/Pets.ts"
import type { Resource, Stored } from "../../../src/api/records/Resource.ts"
import { organizations, recordsOf } from "../../../src/app/demo/DemoData.ts"
import { memoryFeed } from "../../../src/changes/FeedStores.ts"
import { LongPolls } from "../../../src/changes/Feed.ts"
import { toText } from "../../../src/database/Columns.ts"
import * as Cursor from "../../../src/changes/Cursor.ts"
import { feedOf, readerOf, settled } from "../../support/changes.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { tagsOf } from "../../support/tries.ts"
import { asKnown, dataset, fill } from "../records/stores.ts"

const [owner, another] = ["org_oakridge", "org_harbor"] as const

const demo: ReadonlyArray<Partial<Readonly<Record<string, ReadonlyArray<Stored>>>>> = organizations.map(recordsOf)

/** Some demo records of both organizations in each store, and the feed of each. */
const demoOf = Effect.fnUntraced(function* (resource: Resource) {
  const { sql } = yield* TestDatabase
  const records = demo.flatMap((each) => (each[resource.name] ?? []).slice(0, 8))
  const rows = yield* fill(dataset(resource, records))
  yield* settled(sql)
  const memory = memoryFeed(searchable, new Map([[resource.name, rows]]), yield* LongPolls.make)
  const feeds = { memory, Postgres: yield* feedOf(sql) }
  return { own: rows.filter((row) => row.organization === owner), feeds: Object.entries(feeds) }
})

const decodeRecord = Schema.decodeEffect(Schema.fromJsonString(Schema.Unknown))

layer(TestDatabase.layerDatabases, { excludeTestServices: true })("the changes", (it) => {
  for (const resource of searchable)
    it.effect(
      `of ${resource.name} begin with every record of the organization, once, page by page`,
      () =>
        Effect.gen(function* () {
          const { feeds, own } = yield* demoOf(resource)
          const expected = yield* Effect.forEach(own, ({ record }) => decodeRecord(toText(record)))
          for (const [store, feed] of feeds) {
            const { read } = readerOf(feed, owner, [resource.name])
            const seen: Array<unknown> = []
            for (let page = yield* read(3); page.records.length > 0; page = yield* read(3)) {
              seen.push(...page.records)
              assert.isAtMost(page.records.length, 3, store)
              assert.deepStrictEqual([page.removed, page.has_more], [[], seen.length < own.length], store)
            }
            assert.sameDeepMembers(seen, expected, store)
          }
        }),
      { tags: tagsOf(resource.name) }
    )

  it.effect("have a cursor that is refused if it is damaged, or of another organization", () =>
    Effect.gen(function* () {
      for (const [store, feed] of (yield* demoOf(pets)).feeds) {
        const { cursor } = yield* asKnown(owner)(feed({ limit: 2, resources: ["pets"] }))
        assert.isAtMost(cursor.length, 300)
        for (const [wrong, of] of [
          [cursor.slice(1), owner],
          [`${cursor}A`, owner],
          [cursor, another]
        ] as const) {
          const error = yield* Effect.flip(asKnown(of)(feed({ cursor: wrong, limit: 2 })))
          assert.deepStrictEqual(error, new CursorInvalid(), `${store}: ${wrong}`)
        }
      }
    })
  )
})

const toJson = Schema.encodeEffect(Schema.fromJsonString(Schema.Unknown))

const forged = (text: string) => {
  const checksum = hash("sha256", JSON.stringify([owner, text]), "base64url")
  return Buffer.from(text).toString("base64url") + checksum.slice(0, 8)
}

layer(TestDatabase.layer, { excludeTestServices: true })("a cursor", (it) => {
  it.effect.each([0, -1, 2 ** 53 - 1, 2 ** 53, 1e300, -2, 0.5, "0", null])(
    "that is forged is refused, expired or resumed, and never a store that is down: %j",
    (odd) =>
      Effect.gen(function* () {
        const feed = yield* feedOf((yield* TestDatabase).sql)
        const readFrom = (cursor?: string) => asKnown(owner)(feed({ cursor, limit: 2, resources: ["pets"] }))
        const given = yield* Effect.fromNullishOr(Cursor.decode((yield* readFrom()).cursor))
        const walk = { feeds: {}, place: { position: odd, id: "a'\uFFFD", branch: "'" }, running: [odd], floor: odd }
        for (const but of [{ ceiling: odd }, { wal: odd }, { walks: [walk] }, { walks: [walk, walk] }, { walks: [] }]) {
          const cursor = forged(yield* toJson({ ...given, ...but }))
          const refused = Effect.catchTag(readFrom(cursor), ["CursorInvalid", "CursorExpired"], () => Effect.void)
          yield* Effect.orDie(refused)
        }
      })
  )
})
