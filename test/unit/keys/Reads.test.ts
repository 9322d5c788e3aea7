/**
 * Reads for an organization: the texts of their statements are kept, and a statement of a kept text is the one that would
 * be made anew. On a database that never answers: the timeouts of reads and look-ups, and one large page at a time for an
 * organization. A distributed database looks keys up before it reads.
 */
import { Duplex } from "node:stream"
import { assert, describe, it } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Arbitrary, Effect, Exit, Layer, Redacted, Schema } from "effect"
import { Reactivity } from "effect/reactivity"
import * as Statement from "effect/sql/Statement"
import { TestClock } from "effect/testing"
import { CurrentOrganization } from "../../../src/api/Authorization.ts"
import { CredentialStoreDown, RecordStoreDown } from "../../../src/api/Errors.ts"
import { searchable } from "../../../src/api/records/index.ts"
import type { Resource } from "../../../src/api/records/Resource.ts"
import { guarded, layerShared } from "../../../src/database/Database.ts"
import * as Distribution from "../../../src/database/Distribution.ts"
import { type Make, make, makeTemplates, ownerOfKey, withKey } from "../../../src/keys/OrganizationReads.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { ClinicAccounts } from "../../../src/psp/ClinicAccounts.ts"
import type { Criteria } from "../../../src/records/Repository.ts"
import { askedOf, searchQuery } from "../../../src/records/SearchQuery.ts"

const silent = () =>
  new Duplex({
    read() {},
    write: (_bytes, _encoding, done) => done()
  })

const databaseOf = (distribution: Distribution.Distribution) =>
  Effect.flatMap(PgClient.make({ stream: silent, username: "nobody", connectTimeout: "1 minute" }), (client) =>
    guarded(client, { name: "store", connections: 8, isCancellable: true, probe: Effect.void }, distribution)
  ).pipe(Effect.provide(Reactivity.layer))

const resolverOf = (distribution: Distribution.Distribution) =>
  Effect.flatMap(databaseOf(distribution), (sql) =>
    Effect.provide(OrgResolver, OrgResolver.layer.pipe(Layer.provide(layerShared(sql))))
  )

/** Starts beside the test. The result is the error. */
const begun = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkScoped(Effect.flip(effect), { startImmediately: true })

const busyKeys = Exit.succeed(new CredentialStoreDown({ detail: "The credential store is busy" }))
const busyRecords = Exit.succeed(new RecordStoreDown({ detail: "The record store is busy" }))

it.effect("the look-up of a key ends after 1.5 seconds, and that of a clinic's account after 2", () =>
  Effect.gen(function* () {
    const { resolve } = yield* resolverOf(Distribution.single)
    const database = layerShared(yield* databaseOf(Distribution.single))
    const { find } = yield* Effect.provide(ClinicAccounts, Layer.provide(ClinicAccounts.layer, database))
    const ofKey = yield* begun(resolve(Redacted.make("pda_live_of_a")))
    const ofAccount = yield* begun(Effect.provideService(find("clinic_1"), CurrentOrganization, { id: "org_1" }))
    yield* TestClock.adjust("1499 millis")
    assert.isUndefined(ofKey.pollUnsafe())
    yield* TestClock.adjust("1 millis")
    assert.deepStrictEqual(ofKey.pollUnsafe(), busyKeys)
    yield* TestClock.adjust("499 millis")
    assert.isUndefined(ofAccount.pollUnsafe())
    yield* TestClock.adjust("1 millis")
    assert.deepStrictEqual(ofAccount.pollUnsafe(), busyRecords)
  })
)

it.effect("the statement that reads looks the key up, unless the database is distributed or has not answered yet", () =>
  Effect.gen(function* () {
    const unknown = { ...Distribution.single, isDistributed: () => undefined }
    const found = yield* Effect.forEach([Distribution.single, Distribution.distributed, unknown], resolverOf)
    assert.deepStrictEqual(
      found.map(({ readsByKey }) => readsByKey?.()),
      [true, false, false]
    )
  })
)

const pagesOf = (limit: number) =>
  Effect.map(databaseOf(Distribution.single), (sql) => {
    const read = make(sql)({
      shape: "of a test",
      values: [],
      limit,
      queryOf: () => ({ statement: sql`select 1`, columns: [], isPlannedOnce: true })
    })
    return (id: string) => begun(Effect.provideService(read, CurrentOrganization, { id }))
  })

it.effect(
  "one page of more than 250 records is read at a time for an organization, and a read ends after 8 seconds",
  () =>
    Effect.gen(function* () {
      const [large, small] = [yield* pagesOf(251), yield* pagesOf(250)]
      const first = yield* large("org_a")
      const second = yield* large("org_a")
      const running = [first, yield* large("org_b"), yield* small("org_a"), yield* small("org_a")]
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(second.pollUnsafe(), busyRecords)
      yield* TestClock.adjust("6999 millis")
      for (const fiber of running) assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      for (const fiber of running) assert.deepStrictEqual(fiber.pollUnsafe(), busyRecords)
    })
)

const sql = Statement.make(Effect.never, PgClient.makeCompiler(), [], undefined)

const Given = Schema.Struct({
  chosen: Schema.Array(Schema.Boolean).check(Schema.isMaxLength(12)),
  texts: Schema.Array(Schema.Literals(["a", "a", "12", "2026-01-01T00:00:00Z", "\u0000", "\u00001", "$1", "'"])),
  limit: Schema.Literals([1, 100]),
  offset: Schema.Literals([0, 7, 2000]),
  owner: Schema.Literals(["org_a", "a"]),
  isKeyed: Schema.Boolean
})

/** Filters that are chosen, with these values. */
const criteriaOf = ({ filters }: Resource, { chosen, texts }: typeof Given.Type): Criteria =>
  Object.fromEntries(
    Object.entries(filters).flatMap(([name, { kind }], index) =>
      chosen[index] === true ? [[name, kind === "includeMarked" ? true : (texts[index % texts.length] ?? "")]] : []
    )
  )

describe("statements that read records", () => {
  for (const resource of searchable)
    it.prop(
      `${resource.name}: whatever was asked before, a search is the statement that is made for it alone`,
      { requests: Arbitrary.schema(Schema.Array(Given).check(Schema.isMaxLength(12))) },
      ({ requests }) => {
        const templates = makeTemplates()
        for (const request of requests) {
          const page = { limit: request.limit, offset: request.offset }
          const { conditions, ...shaped } = askedOf(resource, criteriaOf(resource, request), page)
          const anew: Make = ([owner = "", ...values]) => {
            const fragment = request.isKeyed ? sql.literal(ownerOfKey) : sql`${owner}`
            const query = searchQuery(sql, fragment, resource, { conditions, values }, page)
            const statement = request.isKeyed ? withKey(sql, owner, query) : query.statement
            return { query: statement.compile(), isPlannedOnce: query.isPlannedOnce }
          }
          const values = [request.owner, ...shaped.values]
          assert.deepStrictEqual(templates(`${request.isKeyed} ${shaped.shape}`, values, anew), anew(values))
        }
      },
      { arbitrary: { runs: 30 } }
    )

  it("have one text for a shape, until there are too many shapes to keep", () => {
    const templates = makeTemplates()
    let made = 0
    const ask = (shape: string) =>
      templates(shape, ["org_a", "v"], (values) => {
        made += 1
        return { query: ["select $1, $2", values], isPlannedOnce: true }
      })
    for (let n = 0; n < 100; n++) assert.deepStrictEqual(ask("same").query, ["select $1, $2", ["org_a", "v"]])
    assert.strictEqual(made, 1)
    for (let n = 0; n < 499; n++) ask(`other ${n}`)
    ask("same")
    assert.strictEqual(made, 500)
    ask("one more")
    ask("same")
    assert.strictEqual(made, 502)
  })
})
