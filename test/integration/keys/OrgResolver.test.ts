/** Resolving API keys: the rules that the store in Postgres and the fake share, then those of the store alone. */
import { hash } from "node:crypto"
import type { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Logger, Redacted, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import { connect, CredentialDatabase, type Database } from "../../../src/database/Database.ts"
import { loadDemoData } from "../../../src/demo/Load.ts"
import { organizations } from "../../../src/demo/DemoData.ts"
import { Unauthorized } from "../../../src/api/Errors.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const known = { pda_live_of_a: "org_a", pda_live_of_b: "org_b" }

const resolve = (key: string) => Effect.flatMap(OrgResolver, (resolver) => resolver.resolve(Redacted.make(key)))

/** A client of one connection, which answers in the order of asking. */
const client = (url: string) =>
  connect({ url: Redacted.make(url), applicationName: "test", maxConnections: 1, statementTimeout: "5 seconds" }).pipe(
    Effect.provide(Reactivity.layer)
  )

const insertKey = (sql: PgClient.PgClient, organization: string, key: string) =>
  sql`insert into api_keys ${sql.insert({
    organization_id: organization,
    id: `id of ${key}`,
    name: "Test",
    prefix: "pda_live_",
    key_hash: hash("sha256", key, "buffer")
  })}`

/** Keys in a database of the test's own. */
class Store extends Context.Service<Store, Database>()("practice-data/test/Organization/OrgResolver") {
  static readonly layer = Layer.effect(
    Store,
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const sql = yield* client(url)
      yield* Effect.forEach(Object.entries(known), ([key, organization]) => insertKey(sql, organization, key))
      return sql
    })
  )
}

const layerPostgres = OrgResolver.layer.pipe(
  Layer.provide(Layer.effect(CredentialDatabase, Store)),
  Layer.provideMerge(Store.layer),
  Layer.provideMerge(TestDatabase.layer)
)

const suites = [
  ["OrgResolver.layerMemory", OrgResolver.layerMemory(known)],
  ["OrgResolver.layer", layerPostgres]
] as const

for (const [name, resolver] of suites) {
  layer<OrgResolver, unknown>(resolver, { excludeTestServices: true })(name, (it) => {
    it.effect.each(Object.entries(known))("resolves %s to its organization, %s", ([key, organization]) =>
      Effect.gen(function* () {
        assert.strictEqual(yield* resolve(key), organization)
      })
    )

    it.effect.each(["", "pda_live_of_c", "PDA_LIVE_OF_A", "pda_live_of_a ", "pda_live_of", "constructor", "__proto__"])(
      "does not know '%s'",
      (key) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* Effect.flip(resolve(key)), new Unauthorized())
        })
    )

    it.effect("does not take the hash of a key for the key", () =>
      Effect.gen(function* () {
        for (const encoding of ["hex", "base64", "base64url"] as const)
          assert.deepStrictEqual(
            yield* Effect.flip(resolve(hash("sha256", "pda_live_of_a", encoding))),
            new Unauthorized()
          )
      })
    )
  })
}

const polling = { schedule: Schedule.spaced("20 millis"), times: 100 }

const lastUsed = Effect.fnUntraced(function* (key: string) {
  const sql = yield* Store
  const rows = yield* sql<{ used: string | null; today: boolean | null; version: string }>`
    select last_used_on::text as used, last_used_on = (now() at time zone 'UTC')::date as today, xmin::text as version
    from api_keys where id = ${`id of ${key}`}`
  return rows[0]
})

const usedToday = (key: string) =>
  lastUsed(key).pipe(
    Effect.filterOrFail((row) => row?.today === true),
    Effect.retry(polling)
  )

const newKey = Effect.fnUntraced(function* (key: string) {
  yield* insertKey(yield* Store, "org_a", key)
  return key
})

layer(layerPostgres, { excludeTestServices: true })("the store in Postgres", (it) => {
  it.effect("refuses a key at once when it is revoked, and takes it again when that is undone", () =>
    Effect.gen(function* () {
      const sql = yield* Store
      const key = yield* newKey("to be revoked")
      assert.strictEqual(yield* resolve(key), "org_a")
      yield* sql`update api_keys set revoked_at = now() where id = ${`id of ${key}`}`
      assert.deepStrictEqual(yield* Effect.flip(resolve(key)), new Unauthorized())
      yield* sql`update api_keys set revoked_at = null where id = ${`id of ${key}`}`
      assert.strictEqual(yield* resolve(key), "org_a")
    })
  )

  it.effect("writes down the day of a key's use once a day", () =>
    Effect.gen(function* () {
      const sql = yield* Store
      const key = yield* newKey("in use")
      yield* resolve(key)
      const first = yield* usedToday(key)
      yield* Effect.repeat(resolve(key), { times: 5 })
      assert.deepStrictEqual(yield* lastUsed(key), first)
      yield* sql`update api_keys set last_used_on = last_used_on - 1 where id = ${`id of ${key}`}`
      yield* resolve(key)
      assert.strictEqual((yield* usedToday(key))?.used, first?.used)
    })
  )

  it.effect("writes nothing down about a key that is not in use, or that is revoked", () =>
    Effect.gen(function* () {
      const sql = yield* Store
      const [idle, revoked, used] = [yield* newKey("idle"), yield* newKey("revoked"), yield* newKey("used")]
      yield* sql`update api_keys set revoked_at = now() where id = ${`id of ${revoked}`}`
      yield* Effect.flip(resolve(revoked))
      yield* resolve(used)
      yield* usedToday(used)
      assert.deepInclude(yield* lastUsed(idle), { used: null })
      assert.deepInclude(yield* lastUsed(revoked), { used: null })
    })
  )

  it.effect("resolves a key whose use cannot be written down", () =>
    Effect.gen(function* () {
      const sql = yield* Store
      const key = yield* newKey("unwritten")
      const lines: Array<string> = []
      const logging = Logger.layer([Logger.map(Logger.formatJson, (line) => lines.push(line))])
      yield* sql`alter function touch_api_key rename to untouchable`
      assert.strictEqual(yield* Effect.provide(resolve(key), logging), "org_a")
      const logged = Effect.sync(() => lines.join()).pipe(
        Effect.filterOrFail((text) => text.includes("The use of an API key was not recorded")),
        Effect.retry(polling)
      )
      assert.notInclude(yield* logged, key)
      yield* sql`alter function untouchable rename to touch_api_key`
    })
  )

  it.effect("does not take what is stored for a key", () =>
    Effect.gen(function* () {
      const sql = yield* Store
      yield* sql`insert into api_keys ${sql.insert({
        organization_id: "org_a",
        id: "plain",
        name: "Plain",
        prefix: "pda_live_",
        key_hash: new TextEncoder().encode("stored as it is")
      })}`
      assert.deepStrictEqual(yield* Effect.flip(resolve("stored as it is")), new Unauthorized())
    })
  )

  it.effect("holds only the SHA-256 of a key, of those that come with the demo data too", () =>
    Effect.gen(function* () {
      const sql = yield* Store
      yield* loadDemoData(sql)
      for (const { key, slug } of organizations) {
        assert.strictEqual(yield* resolve(key), `org_${slug}`)
        assert.deepStrictEqual(yield* sql`select id from api_keys k where to_jsonb(k)::text like ${`%${key}%`}`, [])
      }
    })
  )
})
