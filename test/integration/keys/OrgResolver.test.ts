/** API keys in their table: how they are resolved, recorded, made, listed and revoked, and a store of them that cannot tell. */
import { hash } from "node:crypto"
import { createServer } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Context, Duration, Effect, Fiber, Layer, Logger, Option, Redacted, References, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { CredentialStoreDown, Unauthorized } from "../../../src/api/Errors.ts"
import { organizations } from "../../../src/demo/DemoData.ts"
import { loadDemoData } from "../../../src/demo/Load.ts"
import * as ApiKeys from "../../../src/keys/ApiKeys.ts"
import { hashOf } from "../../../src/keys/KeyLookup.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { CredentialDatabase } from "../../../src/database/Database.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"
import { inTime } from "../../support/inTime.ts"
import { elsewhere, openTransaction, untilDoneOrBlocked } from "../../support/deletions/sessions.ts"
import { inItsOwnTime } from "../../support/deletions/support.ts"
import * as Listening from "../../support/Listening.ts"

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

const key = "pda_live_whose_store_is_down"

/** Resolves keys from the store at a URL, as the service does: with one connection, so that the next in line waits. */
const resolverAt = (url: string) =>
  OrgResolver.layer.pipe(
    Layer.provide(Layer.effect(CredentialDatabase, clientOf(url, { statementTimeout: "5 seconds" }))),
    Layer.build,
    Effect.map((context) => (given: string) => Context.get(context, OrgResolver).resolve(Redacted.make(given)))
  )

/** The URL of a server that accepts connections and never responds. */
const silentServer = Effect.suspend(() =>
  Effect.map(Listening.on(createServer()), ({ port }) => `postgres://postgres:postgres@127.0.0.1:${port}/postgres`)
)

/** The URL of the test's database with a part of it replaced. */
const changed = (change: (url: URL) => void) =>
  Effect.map(TestDatabase, (database) => {
    const url = new URL(database.url)
    change(url)
    return url.href
  })

const unreachable = new CredentialStoreDown()
const refuses = new CredentialStoreDown({ detail: "The credential store refuses the service" })

const stores = [
  ["refuses connections", changed((url) => (url.port = "1")), unreachable],
  ["has no such host", changed((url) => (url.hostname = "credentials.invalid")), unreachable],
  ["takes connections and does not answer", silentServer, unreachable],
  ["refuses the service's own password", changed((url) => (url.password = "wrong")), unreachable],
  ["has no such database", changed((url) => (url.pathname = "no_such_database")), unreachable],
  ["lacks the table", changed((url) => (url.pathname = "postgres")), refuses]
] as const

/** Checks the rule, and that what was logged on the way does not hold the key. */
const isDown = <R>(
  resolved: Effect.Effect<string, Unauthorized | CredentialStoreDown, R>,
  as = new CredentialStoreDown()
) =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const logger = Logger.map(Logger.formatJson, (line) => lines.push(line))
    const [took, error] = yield* Effect.timed(Effect.flip(resolved)).pipe(
      Effect.provide(Logger.layer([logger])),
      Effect.provideService(References.MinimumLogLevel, "All")
    )
    assert.deepStrictEqual(error, as)
    assert.isBelow(Duration.toSeconds(took), inTime(2))
    assert.notInclude(lines.join(), key)
    return lines
  })

layer(TestDatabase.layer, { excludeTestServices: true })("a credential store that", (it) => {
  it.effect.each(stores)("%s is down, within 2 seconds, for each of many at once", ([, storeUrl, error]) =>
    Effect.gen(function* () {
      const look = yield* resolverAt(yield* storeUrl)
      const keys = [key, "pda_live_unknown", "", "k".repeat(10_000)]
      yield* Effect.forEach(keys, (given) => isDown(look(given), error), { concurrency: "unbounded" })
    })
  )

  it.effect("holds its table locked is busy after two seconds at most", () =>
    Effect.gen(function* () {
      const look = yield* resolverAt((yield* TestDatabase).url)
      const other = yield* elsewhere
      const { commit } = yield* openTransaction(other, other`lock table api_keys in access exclusive mode`)
      const looking = yield* Effect.forkScoped(Effect.flip(look(key)), { startImmediately: true })
      assert.strictEqual(yield* untilDoneOrBlocked(other, looking), "blocked")
      yield* TestClock.adjust("2 seconds")
      const error = yield* Fiber.join(looking).pipe(Effect.timeout("20 seconds"), TestClock.withLive)
      assert.deepStrictEqual(error, new CredentialStoreDown({ detail: "The credential store is busy" }))
      yield* commit
    }).pipe(inItsOwnTime)
  )
})
