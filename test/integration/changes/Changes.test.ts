/** The feed of changes over both stores, by a known organization and by a key: pages, the owners of cursors, and forged ones. */
import { hash } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { CursorInvalid } from "../../../src/api/Errors.ts"
import { searchable } from "../../../src/api/records/index.ts"
import { pets } from "../../../src/api/records/Pets.ts"
import type { Resource, Stored } from "../../../src/api/records/Resource.ts"
import { organizations, recordsOf } from "../../../src/app/demo/DemoData.ts"
import type { Feed } from "../../../src/changes/Feed.ts"
import { memoryFeed } from "../../../src/changes/FeedStores.ts"
import { LongPolls } from "../../../src/changes/LongPolls.ts"
import { RecordDatabase } from "../../../src/database/Database.ts"
import { toText } from "../../../src/database/Columns.ts"
import * as Cursor from "../../../src/changes/Cursor.ts"
import { feedOf, pageOf } from "../../support/Follower.ts"
import { settled } from "../../support/settled.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { tagsOf } from "../../support/tries.ts"
import { asKnown, dataset, fill } from "../records/stores.ts"

const [organization, another] = ["org_oakridge", "org_harbor"] as const

const demo: ReadonlyArray<Partial<Readonly<Record<string, ReadonlyArray<Stored>>>>> = organizations.map(recordsOf)

/** Some demo records of both organizations in each store, and each way to read their changes. */
const demoOf = Effect.fnUntraced(function* (resource: Resource) {
  const { sql } = yield* TestDatabase
  const records = demo.flatMap((each) => (each[resource.name] ?? []).slice(0, 8))
  const rows = yield* fill(dataset(resource, records))
  yield* settled(sql)
  const memory = memoryFeed(searchable, new Map([[resource.name, rows]]), yield* LongPolls.make)
  const postgres = yield* feedOf(yield* RecordDatabase)
  const readers = [
    ["memory", memory],
    ["Postgres", postgres]
  ] as const
  return { own: rows.filter((row) => row.organization === organization), readers }
})

const decodeRecord = Schema.decodeEffect(Schema.fromJsonString(Schema.Unknown))

const read = (feed: Feed, resource: string, cursor: string | undefined, limit: number) =>
  Effect.flatMap(feed({ cursor, limit, resources: [resource] }), ({ json }) => pageOf(json))

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
  for (const resource of searchable)
    it.effect(
      `of ${resource.name} begin with every record of the organization, once, page by page`,
      () =>
        Effect.gen(function* () {
          const { own, readers } = yield* demoOf(resource)
          const expected = yield* Effect.forEach(own, ({ record }) => decodeRecord(toText(record)))
          for (const [reader, feed] of readers) {
            const seen: Array<unknown> = []
            let page = yield* asKnown(organization)(read(feed, resource.name, undefined, 3))
            while (page.body.length > 0) {
              seen.push(...page.body)
              assert.isAtMost(page.body.length, 3, reader)
              assert.deepStrictEqual([page.removed, page.has_more], [[], seen.length < own.length], reader)
              page = yield* asKnown(organization)(read(feed, resource.name, page.cursor, 3))
            }
            assert.sameDeepMembers(seen, expected, reader)
          }
        }),
      { tags: tagsOf(resource.name) }
    )

  it.effect("have a cursor that is refused if it is damaged, or of another organization", () =>
    Effect.gen(function* () {
      const { readers } = yield* demoOf(pets)
      for (const [reader, feed] of readers) {
        const { cursor } = yield* asKnown(organization)(read(feed, "pets", undefined, 2))
        assert.isAtMost(cursor.length, 300)
        const refused = (wrong: string, owner: string = organization) =>
          Effect.map(Effect.flip(asKnown(owner)(feed({ cursor: wrong, limit: 2 }))), (error) =>
            assert.deepStrictEqual(error, new CursorInvalid(), `${reader}: ${wrong}`)
          )
        for (const wrong of damaged(cursor)) if (wrong !== cursor) yield* refused(wrong)
        yield* refused(cursor, another)
      }
    })
  )
})

const owner = "org_1"

const toJson = Schema.encodeEffect(Schema.fromJsonString(Schema.Unknown))

const forged = (text: string) => {
  const checksum = hash("sha256", JSON.stringify([owner, text]), "base64url")
  return Buffer.from(text).toString("base64url") + checksum.slice(0, 8)
}

const reader = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  const feed = yield* feedOf(sql)
  const readFrom = (cursor?: string) => asKnown(owner)(feed({ cursor, limit: 2, resources: ["pets"] }))
  yield* sql`insert into pets (organization_id, id) values (${owner}, 'a') on conflict do nothing`
  yield* settled(sql)
  const { cursor } = yield* readFrom()
  const given = yield* Effect.fromNullishOr(Cursor.decode(cursor))
  return { readFrom, cursor, given }
})

layer(TestDatabase.layer, { excludeTestServices: true })("a cursor", (it) => {
  it.effect.each([0, -1, 2 ** 53 - 1, 2 ** 53, 1e300, -2, 0.5, "0", null])(
    "that is forged is refused, expired or resumed, and never a store that is down: %j",
    (odd) =>
      Effect.gen(function* () {
        const { given, readFrom } = yield* reader
        const walk = {
          feeds: {},
          place: { position: odd, id: "a'\uFFFD", branch: "'" },
          running: [odd],
          floor: odd
        }
        for (const but of [{ ceiling: odd }, { wal: odd }, { walks: [walk] }, { walks: [walk, walk] }, { walks: [] }]) {
          const cursor = forged(yield* toJson({ ...given, ...but }))
          const refused = Effect.catchTag(readFrom(cursor), ["CursorInvalid", "CursorExpired"], () => Effect.void)
          yield* Effect.orDie(refused)
        }
      })
  )

  it.effect.each([
    "a\0",
    '[{"feeds":{"pets":"x"},"place":{"position":1e300,"id":"","branch":""},"running":[]}]',
    '[{"feeds":{"pets":"x"},"place":{"position":1,"id":"\\u0000","branch":""},"running":[]}]',
    '[{"feeds":{"pets":"x"},"place":{"position":1,"id":"\\ud800","branch":""},"running":[]}]',
    '[{"feeds":{"pets":"x"},"place":{"position":1,"id":"","branch":""},"running":[9e15,9e15]}]',
    "[{}]",
    `[${" ".repeat(128 * 1024)}]`
  ])("with odd characters, walks that no feed gave out, or over 128 KiB is refused (%#)", (walks) =>
    Effect.gen(function* () {
      const { given, readFrom } = yield* reader
      const refused = yield* Effect.flip(
        readFrom(forged((yield* toJson({ ...given, walks: "WALKS" })).replace('"WALKS"', walks)))
      )
      assert.deepStrictEqual(refused, new CursorInvalid())
    })
  )
})
