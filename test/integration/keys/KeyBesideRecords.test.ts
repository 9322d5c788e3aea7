/**
 * Where the keys are in the database of the records, the statement that reads looks the key up on its way: it costs no
 * round trip of its own, and changes nothing for the caller. The reads of one key leave connections for those of others.
 */
import { isDeepStrictEqual } from "node:util"
import { assert, layer } from "@effect/vitest"
import { Array, Effect, Fiber, Layer } from "effect"
import { RecordStoreDown } from "../../../src/api/Errors.ts"
import * as Server from "../../../src/app/Server.ts"
import { eventually } from "../../support/eventually.ts"
import * as Http from "../../support/inProcess.ts"
import { services, Statements, store } from "../../support/inProcessPostgres.ts"
import { usedToday } from "../../support/keys.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const server = Layer.unwrap(
  Effect.map(Effect.context<TestDatabase | Statements>(), (context) =>
    Http.InProcess.layer(Layer.orDie(services).pipe(Layer.provide(Layer.succeedContext(context))))
  )
)

const [charge] = Http.demo.charges
const [get, search] = ["/api/v3/charges/get", "/api/v3/charges/search"]
const theOther = { headers: { authorization: `Bearer ${Http.other.key}` }, path: "/api/v3/pets/search" }
const unknownKey = "pda_live_unknown"
const unknown = { authorization: `Bearer ${unknownKey}` }

const statementsOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const statements = yield* Statements
    const before = { ...statements }
    const answer = yield* effect
    const { records, credentials } = statements
    return { answer, records: records - before.records, credentials: credentials - before.credentials }
  })

let reads = 0
const watchedBody = () => new ReadableStream<Uint8Array>({ pull: (body) => body.error(++reads) }, { highWaterMark: 0 })

layer(Layer.provideMerge(server, store), { excludeTestServices: true })(
  "a key in the database of the records",
  (it) => {
    it.effect.each([
      ["a page", search, { limit: 2 }, Http.key, 200],
      ["a record that is not there", get, { id: "nowhere" }, Http.key, 404],
      ["a record, to a key that is not known", get, { id: charge?.id }, unknownKey, 401]
    ] satisfies ReadonlyArray<readonly [string, string, object, string, number]>)(
      "is looked up by the one statement that reads %s",
      ([, path, payload, key, status]) =>
        Effect.gen(function* () {
          yield* Http.send()
          yield* usedToday(Http.key)
          const read = (yield* Server.laneReads).get(path)?.(payload, key) ?? Effect.die("It is not of the lane")
          // After a start, it is not known at once that the database is not distributed.
          yield* eventually(
            "a read of one statement",
            statementsOf(read),
            ({ answer, credentials, records }) => answer.status === status && records === 1 && credentials === 0
          )
        }).pipe(Effect.provide(Layer.orDie(services)))
    )

    it.effect(
      "is looked up before a long body is read, one of another form before any; an unknown key's is not read",
      () =>
        Effect.gen(function* () {
          assert.strictEqual((yield* Http.send()).status, 200)
          const foreign = { authorization: "Bearer sk_of_another_service", "content-length": "2" }
          for (const more of [{ "content-length": "100000" }, { "transfer-encoding": "chunked" }, foreign]) {
            const refused = yield* statementsOf(Http.send({ headers: { ...unknown, ...more }, raw: watchedBody() }))
            assert.deepStrictEqual([refused.answer.status, refused.records, refused.credentials, reads], [401, 0, 1, 0])
          }
          const raw = `{"status":"${"s".repeat(100_000)}"}`
          const sent = { headers: { "content-length": String(raw.length) }, raw }
          const { answer, records, credentials } = yield* statementsOf(Http.send(sent))
          assert.deepStrictEqual([answer.status, records, credentials], [200, 1, 1])
        })
    )

    it.effect("is valid while 64 reads of it wait for the records: 503, and nobody else waits behind them", () =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        assert.strictEqual((yield* Http.send(theOther)).status, 200)
        const locked = Effect.gen(function* () {
          yield* sql`lock table charges in access exclusive mode`
          const waiting = sql`select 1 from pg_locks where relation = 'charges'::regclass and not granted`
          const round = Effect.gen(function* () {
            const stuck = yield* Effect.replicateEffect(Effect.forkScoped(Http.send(), { startImmediately: true }), 64)
            const isStuck = () => stuck.some((fiber) => fiber.pollUnsafe() === undefined)
            yield* eventually("a read that waits for the lock", waiting, ({ length }) => length > 0 || !isStuck())
            const other = yield* Http.send(theOther)
            const isMeanwhile = isStuck()
            const responses = yield* Fiber.joinAll(stuck)
            return [
              [other.status, isMeanwhile],
              ...responses.map(({ headers, json, status }) => [status, json, headers["retry-after"]])
            ]
          })
          const busy = { detail: new RecordStoreDown({ detail: "The record store is busy" }).detail }
          const wanted = [[200, true], ...Array.replicate([503, busy, "1"], 64)]
          // On a busy machine, the reads may have ended before the other begins.
          yield* eventually("reads that wait, and another that does not", round, (found) =>
            isDeepStrictEqual(found, wanted)
          )
          yield* eventually("a refusal", Http.send({ headers: unknown }), ({ status }) => status === 401)
        })
        yield* Effect.scoped(sql.withTransaction(locked))
        assert.strictEqual((yield* Http.send()).status, 200)
      })
    )
  }
)
