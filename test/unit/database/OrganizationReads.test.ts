/** Reads for an organization: their timeouts on a database that never answers, and their retry on a replica that ends them. */
import { Duplex } from "node:stream"
import { assert, it } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Exit, Layer, Redacted, Result } from "effect"
import { Reactivity } from "effect/reactivity"
import { ConnectionError, SerializationError, SqlError } from "effect/sql/SqlError"
import { TestClock } from "effect/testing"
import { CurrentOrganization } from "../../../src/api/Authorization.ts"
import { CredentialStoreDown, RecordStoreDown } from "../../../src/api/Errors.ts"
import { guarded, layerShared, RecordDatabase } from "../../../src/database/Database.ts"
import { single } from "../../../src/database/Distribution.ts"
import { make } from "../../../src/database/OrganizationReads.ts"
import { retryOvertaken } from "../../../src/database/SqlFailure.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { ClinicAccounts } from "../../../src/psp/PspReads.ts"

const silent = () =>
  new Duplex({
    read() {},
    write: (_bytes, _encoding, done) => done()
  })

/** A database that takes a connection and never answers. */
const silentDatabase = Effect.flatMap(
  PgClient.make({ stream: silent, username: "nobody", connectTimeout: "1 minute" }),
  (client) => guarded(client, { name: "store", connections: 8, isCancellable: true, probe: Effect.void }, single)
).pipe(Effect.provide(Reactivity.layer))

const ofKey = Effect.flatMap(OrgResolver, ({ resolve }) => resolve(Redacted.make("pda_live_of_a")))
const ofAccount = Effect.flatMap(ClinicAccounts, ({ find }) => find("clinic_1"))
const ofPage = Effect.flatMap(RecordDatabase, (sql) =>
  make(sql)({ text: "select $1", values: [], columns: [], limit: 251, isPlannedOnce: true })
)

const busyRecords = new RecordStoreDown({ detail: "The record store is busy" })

it.effect.each([
  ["the look-up of a key", 1500, ofKey, new CredentialStoreDown({ detail: "The credential store is busy" })],
  ["the look-up of a clinic's account", 2000, ofAccount, busyRecords],
  ["a read of records", 8000, ofPage, busyRecords]
] as const)("%s ends after %d milliseconds without an answer", ([, millis, read, error]) =>
  Effect.gen(function* () {
    const stores = Layer.merge(OrgResolver.layer, ClinicAccounts.layer)
    const reading = yield* Effect.result<unknown, Effect.Error<typeof read>, Effect.Services<typeof read>>(read).pipe(
      Effect.provide(Layer.provideMerge(stores, layerShared(yield* silentDatabase))),
      Effect.provideService(CurrentOrganization, { id: "org_1" }),
      Effect.forkScoped({ startImmediately: true })
    )
    yield* TestClock.adjust(millis - 1)
    assert.isUndefined(reading.pollUnsafe())
    yield* TestClock.adjust(1)
    assert.deepStrictEqual<unknown>(reading.pollUnsafe(), Exit.succeed(Result.fail(error)))
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
