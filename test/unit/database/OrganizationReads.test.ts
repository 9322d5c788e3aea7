/** Reads for an organization: their timeouts on a database that never answers, and their retry on a replica that ends them. */
import { Duplex } from "node:stream"
import { assert, it } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Exit, Layer, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { ConnectionError, SerializationError, SqlError } from "effect/sql/SqlError"
import { TestClock } from "effect/testing"
import { CurrentOrganization } from "../../../src/api/Authorization.ts"
import { CredentialStoreDown, RecordStoreDown } from "../../../src/api/Errors.ts"
import { type Database, guarded, layerShared } from "../../../src/database/Database.ts"
import * as Distribution from "../../../src/database/Distribution.ts"
import { make } from "../../../src/database/OrganizationReads.ts"
import { retryOvertaken } from "../../../src/database/SqlFailure.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { ClinicAccounts } from "../../../src/psp/PspReads.ts"

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

const pageOf = (sql: Database, limit: number) =>
  make(sql)({ text: "select $1", values: [], columns: [], limit, isPlannedOnce: true })

it.effect("a read of records ends after 8 seconds", () =>
  Effect.gen(function* () {
    const sql = yield* databaseOf(Distribution.single)
    const page = yield* begun(Effect.provideService(pageOf(sql, 251), CurrentOrganization, { id: "org_a" }))
    yield* TestClock.adjust("7999 millis")
    assert.isUndefined(page.pollUnsafe())
    yield* TestClock.adjust("1 millis")
    assert.deepStrictEqual(page.pollUnsafe(), busyRecords)
  })
)

const cause = new Error("of a test")
const unreachable = new SqlError({ reason: new ConnectionError({ cause, operation: "connect" }) })
const dropped = new SqlError({ reason: new ConnectionError({ cause, operation: "query" }) })
const overtaken = new SqlError({ reason: new SerializationError({ cause, operation: "query" }) })

it.effect.each([
  ["cancels", overtaken, 2],
  ["closes the connection of", dropped, 2],
  ["does not accept", unreachable, 1]
] as const)("a read that a replica %s is tried once more if it has begun", ([, error, tries]) =>
  Effect.gen(function* () {
    let tried = 0
    const read = (ended: number) => Effect.suspend(() => (++tried > ended ? Effect.succeed(tried) : Effect.fail(error)))
    assert.strictEqual(yield* Effect.flip(retryOvertaken(read(2))), error)
    assert.strictEqual(tried, tries)
    tried = 0
    assert.strictEqual(yield* Effect.orElseSucceed(retryOvertaken(read(1)), () => 1), tries)
  })
)
