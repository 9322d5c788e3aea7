/**
 * Reads and look-ups on a database that never answers: their timeouts, and one large page at a time for an organization.
 * A distributed database looks keys up before it reads.
 */
import { Duplex } from "node:stream"
import { assert, it } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Exit, Layer, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { TestClock } from "effect/testing"
import { CurrentOrganization } from "../../../src/api/Authorization.ts"
import { CredentialStoreDown, RecordStoreDown } from "../../../src/api/Errors.ts"
import { guarded, layerShared } from "../../../src/database/Database.ts"
import * as Distribution from "../../../src/database/Distribution.ts"
import { make } from "../../../src/keys/OrganizationReads.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { ClinicAccounts } from "../../../src/psp/ClinicAccounts.ts"

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
