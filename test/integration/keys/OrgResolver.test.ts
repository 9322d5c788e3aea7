/** API keys in their table: how they are resolved, recorded, made, listed and revoked. */
import { hash } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Logger, Option, Redacted, Schedule } from "effect"
import { Unauthorized } from "../../../src/api/Errors.ts"
import { organizations } from "../../../src/demo/DemoData.ts"
import { loadDemoData } from "../../../src/demo/Load.ts"
import * as ApiKeys from "../../../src/keys/ApiKeys.ts"
import { hashOf } from "../../../src/keys/KeyLookup.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const known = { pda_live_of_a: "org_a", pda_live_of_b: "org_b" }

const resolve = (key: string) => Effect.flatMap(OrgResolver, (resolver) => resolver.resolve(Redacted.make(key)))

const isUnknown = (key: string) =>
  Effect.map(Effect.flip(resolve(key)), (error) => assert.deepStrictEqual(error, new Unauthorized()))

/** Stores a key, whose id it gives. */
const insertKey = Effect.fnUntraced(function* (key: string, organization = "org_a") {
  const { sql } = yield* TestDatabase
  const id = `id of ${key}`
  const key_hash = hash("sha256", key, "buffer")
  yield* sql`insert into api_keys ${sql.insert({ organization_id: organization, id, name: "Test", prefix: "t", key_hash })}`
  return id
})

const store = OrgResolver.layer.pipe(Layer.provideMerge(TestDatabase.layerDatabases))

const filled = Layer.effectDiscard(
  Effect.forEach(Object.entries(known), ([key, organization]) => insertKey(key, organization))
).pipe(Layer.provideMerge(store))

const suites = [
  ["in memory", OrgResolver.layerMemory(known)],
  ["in the table", filled]
] as const

for (const [where, resolver] of suites) {
  layer<OrgResolver, unknown>(resolver, { excludeTestServices: true })(`an API key ${where}`, (it) => {
    it.effect.each(Object.entries(known))("resolves to its organization: %s, %s", ([key, organization]) =>
      Effect.gen(function* () {
        assert.strictEqual(yield* resolve(key), organization)
      })
    )

    it.effect.each([
      "",
      "pda_live_of_c",
      "PDA_LIVE_OF_A",
      "pda_live_of_a ",
      "pda_live_of",
      "constructor",
      "__proto__",
      hash("sha256", "pda_live_of_a", "hex"),
      hash("sha256", "pda_live_of_a", "base64")
    ])("is unknown: '%s'", isUnknown)
  })
}

const lastUsed = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* TestDatabase
  const [row] = yield* sql<{ used: string | null; today: boolean | null; version: string }>`
    select last_used_on::text as used, last_used_on = (now() at time zone 'UTC')::date as today, xmin::text as version
    from api_keys where id = ${id}`
  return row
})

const polling = { schedule: Schedule.spaced("20 millis"), times: 100 }

const usedToday = (id: string) =>
  lastUsed(id).pipe(
    Effect.filterOrFail((row) => row?.today === true),
    Effect.retry(polling)
  )

layer(store, { excludeTestServices: true })("an API key", (it) => {
  it.effect("has the day of its last use, written once a day", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const id = yield* insertKey("in use")
      const idle = yield* insertKey("idle")
      yield* resolve("in use")
      const first = yield* usedToday(id)
      yield* Effect.repeat(resolve("in use"), { times: 5 })
      assert.deepStrictEqual(yield* lastUsed(id), first)
      yield* sql`update api_keys set last_used_on = last_used_on - 1 where id = ${id}`
      yield* resolve("in use")
      assert.strictEqual((yield* usedToday(id))?.used, first?.used)
      assert.deepInclude(yield* lastUsed(idle), { used: null })
    })
  )

  it.effect("resolves though its use cannot be written, which is logged without the key", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* insertKey("unwritten")
      const lines: Array<string> = []
      const logging = Logger.layer([Logger.map(Logger.formatJson, (line) => lines.push(line))])
      yield* sql`alter function touch_api_key rename to untouchable`
      assert.strictEqual(yield* Effect.provide(resolve("unwritten"), logging), "org_a")
      const logged = Effect.sync(() => lines.join()).pipe(
        Effect.filterOrFail((text) => text.includes("The use of an API key was not recorded")),
        Effect.retry(polling)
      )
      assert.notInclude(yield* logged, "unwritten")
      yield* sql`alter function untouchable rename to touch_api_key`
    })
  )

  it.effect("is no text that is stored, and only its SHA-256 is, of demo keys too", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const key_hash = new TextEncoder().encode("stored as it is")
      const row = { organization_id: "org_a", id: "plain", name: "Plain", prefix: "t", key_hash }
      yield* sql`insert into api_keys ${sql.insert(row)}`
      yield* isUnknown("stored as it is")
      yield* loadDemoData(sql)
      for (const { key, slug } of organizations) {
        assert.strictEqual(yield* resolve(key), `org_${slug}`)
        assert.isEmpty(yield* sql`select id from api_keys k where to_jsonb(k)::text like ${`%${key}%`}`)
      }
    })
  )

  it.effect("is pda_live_, 32 random base62 characters and their checksum", () =>
    Effect.gen(function* () {
      const texts = (yield* Effect.replicateEffect(ApiKeys.generate, 100)).map((key) => Redacted.value(key))
      for (const text of texts) {
        assert.match(text, /^pda_live_[0-9A-Za-z]{38}$/)
        assert.strictEqual(text.slice(-6), ApiKeys.checksumOf(text.slice(0, -6)))
      }
      assert.strictEqual(new Set(texts).size, texts.length)
    })
  )

  it.effect("works until it is revoked, once, and other keys stay", () =>
    Effect.gen(function* () {
      const [one, other] = yield* Effect.replicateEffect(ApiKeys.create({ organization: "org_a", name: "Twin" }), 2)
      if (one === undefined || other === undefined) return assert.fail("There are two keys")
      assert.strictEqual(yield* resolve(Redacted.value(one.key)), "org_a")
      assert.deepStrictEqual(yield* ApiKeys.revoke(one.id), Option.some("org_a"))
      yield* isUnknown(Redacted.value(one.key))
      assert.deepStrictEqual(yield* ApiKeys.revoke(one.id), Option.none())
      assert.strictEqual(yield* resolve(Redacted.value(other.key)), "org_a")
    })
  )

  it.effect("is listed and stored by its SHA-256 and its first 4 random characters", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const { id, key } = yield* ApiKeys.create({ organization: "org_listed", name: "Listed" })
      const text = Redacted.value(key)
      const [row] = yield* sql<{ key_hash: Uint8Array; shown: string }>`
        select key_hash, to_jsonb(k)::text as shown from api_keys k where id = ${id}`
      assert.deepStrictEqual(Buffer.from(row?.key_hash ?? []), Buffer.from(hashOf(key)))
      const start = "pda_live_".length + 4
      assert.notInclude(row?.shown, text.slice(start))
      const [listed, ...others] = yield* ApiKeys.list("org_listed")
      assert.deepInclude(listed, { id, name: "Listed", prefix: text.slice(0, start), revoked_at: null })
      assert.isEmpty(others)
      assert.includeMembers(
        (yield* ApiKeys.list(undefined)).map((each) => each.id),
        [id]
      )
    })
  )
})
