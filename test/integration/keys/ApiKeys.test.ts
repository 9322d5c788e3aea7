/** Making, listing and revoking API keys. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Option, Redacted } from "effect"
import { Unauthorized } from "../../../src/api/Errors.ts"
import * as ApiKeys from "../../../src/keys/ApiKeys.ts"
import { hashOf } from "../../../src/keys/KeyLookup.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { compact } from "../../http/inProcess.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const services = OrgResolver.layer.pipe(Layer.provideMerge(TestDatabase.layerDatabases))

const resolve = (key: Redacted.Redacted) => Effect.flatMap(OrgResolver, (resolver) => resolver.resolve(key))

layer(services, { excludeTestServices: true })("ApiKeys", (it) => {
  it.effect("makes keys of 32 random base62 characters between pda_live_ and their checksum", () =>
    Effect.gen(function* () {
      const keys = yield* Effect.replicateEffect(ApiKeys.generate, 100)
      const texts = keys.map((key) => Redacted.value(key))
      for (const text of texts) {
        assert.match(text, /^pda_live_[0-9A-Za-z]{38}$/)
        assert.strictEqual(text.slice(-6), ApiKeys.checksumOf(text.slice(0, -6)))
      }
      assert.strictEqual(new Set(texts).size, texts.length)
    })
  )

  it.effect("makes a key that resolves to its organization, until it is revoked", () =>
    Effect.gen(function* () {
      const { id, key } = yield* ApiKeys.create({ organization: "org_a", name: "Test" })
      assert.strictEqual(yield* resolve(key), "org_a")
      assert.deepStrictEqual(yield* ApiKeys.revoke(id), Option.some("org_a"))
      assert.deepStrictEqual(yield* Effect.flip(resolve(key)), new Unauthorized())
      assert.deepStrictEqual(yield* ApiKeys.revoke(id), Option.none())
    })
  )

  it.effect("revokes one key and leaves the others", () =>
    Effect.gen(function* () {
      const first = yield* ApiKeys.create({ organization: "org_a", name: "Twin" })
      const second = yield* ApiKeys.create({ organization: "org_a", name: "Twin" })
      yield* ApiKeys.revoke(first.id)
      assert.strictEqual(yield* resolve(second.key), "org_a")
    })
  )

  it.effect("stores the SHA-256 of a key, and of the key itself 4 random characters to know it by", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const { id, key } = yield* ApiKeys.create({ organization: "org_a", name: "Stored" })
      const text = Redacted.value(key)
      const [row] = yield* sql<{ key_hash: Uint8Array; prefix: string; shown: string }>`
        select key_hash, prefix, to_jsonb(k)::text as shown from api_keys k where id = ${id}`
      assert.deepStrictEqual(Buffer.from(row?.key_hash ?? []), Buffer.from(hashOf(key)))
      assert.strictEqual(row?.prefix, text.slice(0, "pda_live_".length + 4))
      assert.notInclude(row?.shown, text.slice("pda_live_".length + 4))
    })
  )

  it.effect("lists the keys of an organization, or of all, without what would open anything", () =>
    Effect.gen(function* () {
      const made = [
        yield* ApiKeys.create({ organization: "org_listed", name: "First" }),
        yield* ApiKeys.create({ organization: "org_listed_too", name: "Second" })
      ]
      assert.deepStrictEqual(
        (yield* ApiKeys.list("org_listed")).map(({ name }) => name),
        ["First"]
      )
      const all = yield* ApiKeys.list(undefined)
      assert.includeMembers(
        all.map(({ id }) => id),
        made.map(({ id }) => id)
      )
      for (const { key } of made) assert.notInclude(yield* compact(all), Redacted.value(key))
    })
  )
})
