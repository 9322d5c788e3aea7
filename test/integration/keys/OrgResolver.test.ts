/** API keys in their table: how they are resolved, recorded, made, listed and revoked, and a store of them that cannot tell. */
import { hash } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Layer, Option, Redacted } from "effect"
import { CredentialStoreDown, Unauthorized } from "../../../src/api/Errors.ts"
import * as ApiKeys from "../../../src/keys/ApiKeys.ts"
import { keyHash, OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { CredentialDatabase } from "../../../src/database/Database.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"
import { eventually } from "../../support/eventually.ts"
import { inTime } from "../../support/inTime.ts"
import { insertKey } from "../../support/keys.ts"
import { Recorded } from "../../support/Recorded.ts"
import { live } from "../../support/tries.ts"

const known = { pda_live_of_a: "org_a", pda_live_of_b: "org_b" }

const resolve = (key: string) => Effect.flatMap(OrgResolver, (resolver) => resolver.resolve(Redacted.make(key)))

const isUnknown = (key: string) =>
  Effect.map(Effect.flip(resolve(key)), (error) => assert.deepStrictEqual(error, new Unauthorized()))

const store = OrgResolver.layer.pipe(Layer.provideMerge(TestDatabase.layerDatabases))

const inserted = Effect.forEach(Object.entries(known), ([key, organization]) => insertKey(key, organization))

const suites = {
  "in memory": OrgResolver.layerMemory(known),
  "in the table": Layer.provideMerge(Layer.effectDiscard(inserted), store)
}

for (const [where, resolver] of Object.entries(suites)) {
  layer<OrgResolver, unknown>(resolver, live)(`an API key ${where}`, (it) => {
    it.effect.each(Object.entries(known))("resolves to its organization: %s, %s", ([key, organization]) =>
      Effect.map(resolve(key), (resolved) => assert.strictEqual(resolved, organization))
    )

    const others = ["", "pda_live_of_c", "PDA_LIVE_OF_A", "pda_live_of_a ", "__proto__"]
    it.effect.each([...others, hash("sha256", "pda_live_of_a")])("is unknown: '%s'", isUnknown)
  })
}

layer(Layer.merge(store, Recorded.layer), live)("an API key", (it) => {
  it.effect("has the day of its last use, written once a day", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* Effect.forEach(["in use", "idle"], (key) => insertKey(key, "org_a"))
      const used = sql`
        select id, xmin::text as version from api_keys where last_used_on = (now() at time zone 'UTC')::date`
      const isUsed = eventually("a use today", used, ({ length }) => length > 0)
      yield* Effect.andThen(resolve("in use"), isUsed)
      const [first, ...others] = yield* used
      assert.deepStrictEqual([first?.["id"], others], ["id of in use", []])
      yield* Effect.repeat(resolve("in use"), { times: 5 })
      assert.deepStrictEqual<unknown>(yield* used, [first])
      yield* sql`update api_keys set last_used_on = last_used_on - 1`
      yield* Effect.andThen(resolve("in use"), isUsed)
    })
  )

  it.effect("resolves though its use cannot be written, which is logged without the key", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* insertKey("unwritten", "org_a")
      const { logs } = yield* Recorded
      yield* sql`alter function touch_api_key rename to untouchable`
      assert.strictEqual(yield* Effect.provide(resolve("unwritten"), Recorded.recording), "org_a")
      yield* eventually("a log line", () => logs.join().includes("The use of an API key was not recorded"))
      assert.notInclude(logs.join(), "unwritten")
      yield* sql`alter function untouchable rename to touch_api_key`
    })
  )

  it.effect("is pda_live_, 32 random base62 characters and their checksum", () =>
    Effect.gen(function* () {
      const texts = (yield* Effect.replicateEffect(ApiKeys.generate, 100)).map((key) => Redacted.value(key))
      for (const text of texts) {
        assert.match(text, /^pda_live_[0-9A-Za-z]{38}$/)
        assert.strictEqual(text.slice(-6), ApiKeys.keyChecksum(text.slice(0, -6)))
      }
      assert.strictEqual(new Set(texts).size, texts.length)
      assert.strictEqual(ApiKeys.keyChecksum(`pda_live_${"0".repeat(32)}`), "40bZgA")
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
      assert.deepStrictEqual(Buffer.from(row?.key_hash ?? []), Buffer.from(keyHash(key)))
      const start = "pda_live_".length + 4
      assert.notInclude(row?.shown, text.slice(start))
      const [listed, ...others] = yield* ApiKeys.list("org_listed")
      assert.deepInclude(listed, { id, name: "Listed", prefix: text.slice(0, start), revoked_at: null })
      assert.isEmpty(others)
      assert.isTrue((yield* ApiKeys.list(undefined)).some((each) => each.id === id))
    })
  )
})

const key = "pda_live_whose_store_is_down"

/** Resolves keys from the store at a URL, as the service does: with one connection, so that the next in line waits. */
const resolverAt = (url: string) =>
  OrgResolver.layer.pipe(
    Layer.provide(Layer.effect(CredentialDatabase, clientOf(url, { statementTimeout: "5 seconds" })))
  )

const unreachable = new CredentialStoreDown()
const refuses = new CredentialStoreDown({ detail: "The credential store refuses the service" })

const stores = [
  ["refuses connections", { port: "1" }, unreachable],
  ["refuses the service's own password", { password: "wrong" }, unreachable],
  ["lacks the table", { pathname: "postgres" }, refuses]
] as const

layer(Layer.merge(TestDatabase.layer, Recorded.layer), live)("a credential store that", (it) => {
  it.effect.each(stores)("%s is down, within 2 seconds, for each of many; no key is logged", ([, otherwise, error]) =>
    Effect.gen(function* () {
      const { logs } = yield* Recorded
      const keys = [key, "pda_live_unknown", "", "k".repeat(10_000)]
      const { href } = Object.assign(new URL((yield* TestDatabase).url), otherwise)
      const errorOf = (given: string) => Effect.flip(resolve(given))
      const [took, errors] = yield* Effect.forEach(keys, errorOf, { concurrency: "unbounded" }).pipe(
        Effect.timed,
        Effect.provide([resolverAt(href), Recorded.recording])
      )
      assert.deepStrictEqual(errors, [error, error, error, error])
      assert.isBelow(Duration.toSeconds(took), inTime(2))
      assert.notInclude(logs.join(), key)
    })
  )
})
