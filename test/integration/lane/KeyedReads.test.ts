/** Reads whose statement looks the key up: the records that others read, and nothing for another key. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { CurrentOrganization } from "../../../src/api/Authorization.ts"
import { searchable } from "../../../src/api/records/index.ts"
import type { Resource } from "../../../src/api/records/Resource.ts"
import { LongPolls } from "../../../src/changes/Feed.ts"
import { toText } from "../../../src/database/Columns.ts"
import { layerShared } from "../../../src/database/Database.ts"
import * as Distribution from "../../../src/database/Distribution.ts"
import { organizations } from "../../../src/app/demo/DemoData.ts"
import * as AuthorizationServer from "../../../src/keys/AuthorizationServer.ts"
import * as OrganizationReads from "../../../src/database/OrganizationReads.ts"
import { keyDigest, OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { keyedText, make, PresentedKey } from "../../../src/lane/KeyedReads.ts"
import * as Reads from "../../../src/lane/Reads.ts"
import * as Repository from "../../../src/records/Repository.ts"
import { searchQuery } from "../../../src/records/SearchQuery.ts"
import { explain, nodesOf, rowsOf } from "../database/plans.ts"
import { insertKey, keyHashOf } from "../../support/keys.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const services = Layer.mergeAll(OrgResolver.layer, LongPolls.layer).pipe(
  Layer.provideMerge(TestDatabase.shared),
  Layer.provideMerge(TestDatabase.layerDemo)
)

const withKey = (key: string, slug: string) =>
  Effect.provideService(PresentedKey, { digest: keyDigest(key), named: null, lookUp: Effect.succeed(`org_${slug}`) })

const search = "/api/v3/charges/search"

/** The database, whose statements say in whose turn they run. */
const recorded = Effect.map(TestDatabase, ({ sql }) => {
  const turns: Array<string> = []
  const run: typeof sql.run = (request, statements) => {
    turns.push(request.key)
    return sql.run(request, statements)
  }
  return { turns, over: (changed: Partial<typeof sql>) => Object.assign(sql.bind(undefined), sql, { run }, changed) }
})

layer(services, { excludeTestServices: true })("a read by key", (it) => {
  it.effect.each(searchable)("of $name has the bytes of a read of the organization", (resource: Resource) =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const keyed = Repository.make(yield* make(sql), resource)
      const plain = Repository.make(OrganizationReads.make(sql), resource)
      for (const { key, slug } of organizations) {
        const known = Effect.provideService(CurrentOrganization, { id: `org_${slug}` })
        for (const [filters, page] of [
          [{}, { limit: 3, offset: 0 }],
          [{ id: "nowhere" }, { limit: 3, offset: 0 }],
          [{ created_at_since: "2020-01-01" }, { limit: 250, offset: 2 }],
          [{}, { limit: 1000, offset: 0 }]
        ] as const) {
          const found = yield* withKey(key, slug)(keyed.search(filters, page))
          assert.strictEqual(toText(found), toText(yield* known(plain.search(filters, page))))
        }
        const [first] = yield* sql.unsafe<{ id: string; owner: string }>(
          `select id, organization_id as owner from ${resource.table} order by id limit 1`
        )
        const shown = Effect.match({ onSuccess: toText, onFailure: String })
        const get = withKey(key, slug)(keyed.get(first?.id ?? ""))
        assert.strictEqual(yield* shown(get), yield* shown(known(plain.get(first?.id ?? ""))))
      }
    })
  )

  it.effect("reads no more than its page, by a plan that is made once", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`analyze`
      for (const resource of searchable) {
        const query = searchQuery(resource, {}, { limit: 10, offset: 0 })
        const [{ key }] = organizations
        const plan = yield* explain(keyedText(query), [keyHashOf(key), ...query.values], true)
        const scans = nodesOf(plan).filter((node) => node["Relation Name"] === resource.table)
        assert.isAtMost(rowsOf(scans), 11, resource.name)
      }
    })
  )

  it.effect("whose statement does not name its organization is never run: it would read the rows of all", () =>
    Effect.sync(() => {
      const named = "select record from pets t where t.organization_id = $1"
      assert.include(keyedText({ text: named, columns: ["record"] }), "t.organization_id = k.organization_id")
      assert.throws(() => keyedText({ text: "select record from pets where $10", columns: ["record"] }))
    })
  )

  const [{ key: own, slug: owner }] = organizations
  const undetermined = { ...Distribution.single, isDistributed: (): boolean | undefined => undefined }

  it.effect.each([
    ["in one statement, of a database that is not distributed", Distribution.single, `key ${keyDigest(own)}`],
    ["first, of one that is distributed", Distribution.distributed, `organization org_${owner}`],
    ["first, of one whose distribution is unknown", undetermined, `organization org_${owner}`]
  ] as const)("looks its key up %s", ([, distribution, expected]) =>
    Effect.gen(function* () {
      const { over, turns } = yield* recorded
      // A shared connection has no turns.
      const read = yield* make(over({ distribution, openPipelined: undefined }))
      yield* withKey(own, owner)(read(searchQuery(searchable[0], {}, { limit: 1, offset: 0 })))
      assert.deepStrictEqual(turns, [expected])
    })
  )

  it.effect("asks where keys are once it is made, so that they are looked up beside the records", () =>
    Effect.gen(function* () {
      const { over } = yield* recorded
      const asked = yield* Deferred.make<void>()
      const distribution = { ...undetermined, refresh: Effect.asVoid(Deferred.succeed(asked, undefined)) }
      yield* make(over({ distribution }))
      yield* Deferred.await(asked)
    })
  )
})

layer(services, { excludeTestServices: true })("The reads of the lane", (it) => {
  const statusOf = (reads: ReadonlyMap<string, Reads.Read>, key: string, payload: unknown = {}) =>
    Effect.map(reads.get(search)?.(payload, key) ?? Effect.die("It is not of the lane"), ({ status }) => status)

  it.effect("leave requests that wait for changes, and invalid ones, to the router", () =>
    Effect.map(Reads.make, (reads) => {
      const isRead = (path: string, payload: unknown) => reads.get(path)?.(payload, "pda_any") !== undefined
      for (const wait of [0, null]) assert.isTrue(isRead("/api/v3/changes", { wait }))
      assert.isFalse(isRead("/api/v3/changes", { wait: 1 }))
      for (const payload of [{}, { limit: 0 }]) assert.isTrue(isRead(search, payload))
      for (const payload of [{ limit: "1" }, { more: 1 }, []]) assert.isFalse(isRead(search, payload))
    })
  )

  it.effect("answer an invalid key with 401, whatever else is wrong", () =>
    Effect.gen(function* () {
      const reads = yield* Reads.make
      const [{ key, slug }] = organizations
      for (const [payload, status] of [
        [{}, 200],
        [{ organization: `org_${slug}` }, 200],
        [{ limit: 0 }, 400],
        [{ organization: "org_another" }, 400]
      ] as const) {
        assert.strictEqual(yield* statusOf(reads, key, payload), status)
        assert.strictEqual(yield* statusOf(reads, "pda_unknown", payload), 401)
      }
    })
  )

  it.effect.each([
    ["a table of records", "charges", [503, 400, 400, 401]],
    ["the table of keys", "api_keys", [503, 503, 503, 503]]
  ] as const)("fail with 503 where %s cannot be read, after what is wrong otherwise", ([, table, expected]) =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const reads = yield* Reads.make
      const [{ key }] = organizations
      const hide = sql`alter table ${sql(table)} rename to hidden`
      const show = Effect.orDie(sql`alter table hidden rename to ${sql(table)}`)
      const statuses = Effect.all([
        statusOf(reads, key),
        statusOf(reads, key, { limit: 0 }),
        statusOf(reads, key, { organization: "org_another" }),
        statusOf(reads, "pda_unknown")
      ])
      assert.deepStrictEqual(yield* Effect.ensuring(Effect.andThen(hide, statuses), show), [...expected])
    })
  )

  it.effect("look a key up before its first read that is counted, and in each later read alone", () =>
    Effect.gen(function* () {
      const { over, turns } = yield* recorded
      // A shared connection has no turns.
      const database = layerShared(over({ openPipelined: undefined }))
      const reads = yield* Effect.provide(Reads.make, Layer.provideMerge(Layer.fresh(OrgResolver.layer), database))
      const [{ key }] = organizations
      const counts: Array<number> = []
      for (const limit of [1, 1, 1000]) {
        assert.strictEqual(yield* statusOf(reads, key, { limit }), 200)
        // The first use of a day is recorded in a turn of its own.
        counts.push(turns.splice(0).filter((turn) => turn === `key ${keyDigest(key)}`).length)
      }
      assert.deepStrictEqual(counts, [2, 1, 1])
    }).pipe(Effect.provide(AuthorizationServer.layerLimit(3)), Effect.scoped)
  )

  it.effect("count requests by organization: 429 beyond the limit, and 401 once the key is revoked", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* Effect.forEach(["pda_one", "pda_two"], (key) => insertKey(key, "org_counted"))
      const reads = yield* Reads.make
      const statuses = (...keys: ReadonlyArray<string>) => Effect.forEach(keys, (key) => statusOf(reads, key))
      assert.deepStrictEqual(yield* statuses("pda_one", "pda_two", "pda_one"), [200, 200, 429])
      yield* sql`update api_keys set revoked_at = now() where key_hash = ${keyHashOf("pda_one")}`
      assert.deepStrictEqual(yield* statuses("pda_one", "pda_two"), [401, 429])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* statuses("pda_one", "pda_two", "pda_two"), [401, 200, 200])
    }).pipe(Effect.provide(AuthorizationServer.layerLimit(2)), Effect.scoped, Effect.provide(TestClock.layer()))
  )
})
