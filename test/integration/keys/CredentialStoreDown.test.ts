/** A store of API keys that cannot tell: whatever the reason, that is `CredentialStoreDown`, within two seconds. */
import { hash } from "node:crypto"
import { createServer } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Context, Duration, Effect, Layer, Logger, Redacted, References, Schedule } from "effect"
import { CredentialDatabase } from "../../../src/database/Database.ts"
import { CredentialStoreDown, type Unauthorized } from "../../../src/api/Errors.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { inTime } from "../../support/inTime.ts"
import * as Listening from "../../support/Listening.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"

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

const insertKey = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  yield* sql`insert into api_keys ${sql.insert({
    organization_id: "org_a",
    id: key,
    name: "Test",
    prefix: "pda_live_",
    key_hash: hash("sha256", key, "buffer")
  })}`
})

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
      const resolve = yield* resolverAt(yield* storeUrl)
      const keys = [key, "pda_live_unknown", "", "k".repeat(10_000)]
      yield* Effect.forEach(keys, (given) => isDown(resolve(given), error), { concurrency: "unbounded" })
    })
  )

  it.effect("holds its table locked is down, within 2 seconds, and up again when the lock is gone", () =>
    Effect.gen(function* () {
      yield* insertKey
      const { sql, url } = yield* TestDatabase
      const resolve = yield* resolverAt(url)
      assert.strictEqual(yield* resolve(key), "org_a")
      const locked = Effect.gen(function* () {
        yield* sql`lock table api_keys in access exclusive mode`
        yield* Effect.forEach(
          [key, key, "pda_live_unknown"],
          (given) => isDown(resolve(given), new CredentialStoreDown({ detail: "The credential store is busy" })),
          {
            concurrency: "unbounded"
          }
        )
      })
      yield* sql.withTransaction(locked)
      const again = resolve(key).pipe(Effect.retry({ schedule: Schedule.spaced("50 millis"), times: 100 }))
      assert.strictEqual(yield* again, "org_a")
    })
  )
})
