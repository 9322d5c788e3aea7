/**
 * The client over sockets: the program on a Postgres that others write at the same time, limited, and killed.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Array, Context, Duration, Effect, Fiber, Layer, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { type Charge, InvoiceDeletions, PracticeData } from "../../../src/client/index.ts"
import { connect, layerShared } from "../../../src/database/Database.ts"
import * as ApiKeys from "../../../src/keys/ApiKeys.ts"
import * as Process from "../../support/Process.ts"
import { options } from "../../support/Service.ts"
import { freePort } from "../../support/LocalPostgres.ts"
import { settled } from "../../support/settled.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { collect, failureOf, idOf } from "../../unit/client/support.ts"

const organization = "org_client"

const make = Effect.gen(function* () {
  const { sql: admin, url } = yield* TestDatabase
  const sql = yield* connect({
    url: Redacted.make(url),
    applicationName: "practice-data-test-writers",
    maxConnections: 4,
    statementTimeout: "1 minute"
  })
  const { key } = yield* Effect.provide(ApiKeys.create({ organization, name: "client" }), layerShared(admin))
  const apiKey = Redacted.value(key)
  const started = (environment: Process.Environment) => Process.start({ DATABASE_URL: url, ...environment })
  const client = new PracticeData({ baseUrl: yield* (yield* started({})).address, apiKey })
  return { apiKey, client, sql, started }
})

/** A database, a key of it, a client of a program over it, and other programs. */
class Ground extends Context.Service<Ground, Effect.Success<typeof make>>()("practice-data/test/client/Service.test") {
  static readonly layer = Layer.effect(Ground, make).pipe(Layer.provide([TestDatabase.layer, Reactivity.layer]))
}

/** Charges, thirty of which share each microsecond, and five thousand of them one. */
const insertCharges = (count: number) =>
  Effect.flatMap(
    Ground,
    ({ sql }) => sql`insert into charges (organization_id, id, status, updated_at)
      select ${organization}, 'charge_' || n, 'open', timestamptz '2026-01-01' +
        case when n % 4 = 0 then interval '0' else (n / 30) * interval '130 microseconds' end
      from generate_series(1, ${count}::integer) n`
  )

const storedIds = Effect.flatMap(Ground, ({ sql }) =>
  Effect.map(
    sql<{
      id: string
    }>`select id from charges where organization_id = ${organization} order by charges.updated_at, id collate "C"`,
    (rows) => rows.map(idOf)
  )
)

/** A program that is killed and started again on its port, some times, and then goes on. */
const mortal = Effect.fnUntraced(function* (port: number, lives: number) {
  const { started } = yield* Ground
  const start = Effect.tap(started({ PORT: `${port}` }), ({ address }) => address)
  const life = Effect.scoped(
    Effect.gen(function* () {
      const program = yield* start
      yield* Effect.sleep("300 millis")
      yield* program.kill("SIGKILL")
      yield* program.ended
    })
  )
  yield* Effect.repeat(life, { times: lives - 1 })
  return yield* start
})

/** A copy by changes, up to a record. */
const copied = async (client: PracticeData, until: string) => {
  const copy = new Map<string, Charge>()
  for await (const page of client.charges.changes(null, { follow: true, limit: 500 })) {
    for (const id of page.removed) copy.delete(id)
    for (const record of page.body) copy.set(record.id, record)
    if (copy.has(until) && !page.has_more) break
  }
  return copy
}

/** The result of an abort while a request waits for changes. */
const abortedWhileWaiting = async (client: PracticeData) => {
  const controller = new AbortController()
  const cursor = (await collect(client.charges.changes())).at(-1)?.cursor
  setTimeout(() => controller.abort(new Error("enough")), 300)
  return failureOf(client.charges.changes(cursor, { wait: 20, signal: controller.signal }).next())
}

layer(Ground.layer, options)("the client", (it) => {
  it.effect("walks 20,000 records, each once and in order", () =>
    Effect.gen(function* () {
      const { client } = yield* Ground
      yield* insertCharges(20_000)
      const ids = yield* storedIds
      const walked = yield* Effect.promise(() => collect(client.charges.all({ status: "open" })))
      assert.lengthOf(ids, 20_000)
      assert.isTrue(walked.map(idOf).join() === ids.join())
      const since = walked[12_345]?.updated_at ?? ""
      const later = yield* Effect.promise(() => collect(client.charges.all({ updated_at_since: since })))
      assert.strictEqual(later.length, walked.filter(({ updated_at }) => updated_at >= since).length)
    })
  )

  it.effect("follows changes beside writers until it is left", () =>
    Effect.gen(function* () {
      const { client, sql } = yield* Ground
      const write = Effect.gen(function* () {
        for (let round = 0; round < 20; round += 1) {
          yield* sql`update charges set status = ${`round ${round}`}, updated_at = now()
            where organization_id = ${organization} and id like ${`%${round}`}`
          yield* sql`delete from charges where organization_id = ${organization} and id = ${`charge_${round * 100 + 7}`}`
          yield* Effect.sleep("50 millis")
        }
        yield* sql`insert into charges (organization_id, id, status) values (${organization}, 'the_end', 'open')`
      })
      const writing = yield* Effect.forkScoped(write)
      const copy = yield* Effect.promise(() => copied(client, "the_end"))
      yield* Fiber.join(writing)
      assert.sameMembers([...copy.keys()], [...(yield* storedIds)])
      const walked = yield* Effect.promise(() => collect(client.charges.all()))
      for (const charge of walked) assert.deepStrictEqual(copy.get(charge.id), charge)
    })
  )

  it.effect("ends a response that the service holds back when it is aborted", () =>
    Effect.gen(function* () {
      const { client, sql } = yield* Ground
      yield* settled(sql)
      const [took, error] = yield* Effect.timed(Effect.promise(() => abortedWhileWaiting(client)))
      assert.match(String(error), /enough/)
      assert.isBelow(Duration.toSeconds(took), 10)
    })
  )

  it.effect("gets through a limit of requests", () =>
    Effect.gen(function* () {
      const { apiKey, started } = yield* Ground
      const { address } = yield* started({ RATE_LIMIT: "5" })
      const client = new PracticeData({ baseUrl: yield* address, apiKey, maxRetries: 10 })
      const request = Effect.promise(() => client.charges.search({ limit: 1 }))
      const requests = Effect.all(
        Array.makeBy(12, () => request),
        { concurrency: "unbounded" }
      )
      const [took, pages] = yield* Effect.timed(requests)
      for (const page of pages) assert.lengthOf(page, 1)
      assert.isAtLeast(Duration.toSeconds(took), 1)
    })
  )

  it.effect("goes on where the program is killed and started again, and a delivery is stored once", () =>
    Effect.gen(function* () {
      const { apiKey, sql } = yield* Ground
      const port = yield* freePort
      const baseUrl = `http://127.0.0.1:${port}`
      const program = yield* Effect.forkScoped(mortal(port, 3))
      const client = new PracticeData({ baseUrl, apiKey, maxRetries: 40 })
      const sender = new InvoiceDeletions({ baseUrl, organization, maxRetries: 40 })
      const ids = yield* storedIds
      const sending = Promise.all(
        Array.makeBy(40, (number) =>
          sender.send({ invoices: [{ invoice_id: `invoice_${number}` }] }, { idempotencyKey: `delivery-${number}` })
        )
      )
      const walked = yield* Effect.promise(async () => {
        const read: Array<Charge> = []
        for await (const charge of client.charges.all({}, { pageSize: 200 })) {
          read.push(charge)
          if (read.length % 200 === 0) await new Promise((resolve) => setTimeout(resolve, 40))
        }
        return read
      })
      const receipts = yield* Effect.promise(() => sending)
      yield* Fiber.join(program)
      assert.isTrue(walked.map(idOf).join() === ids.join())
      for (const { status } of receipts) assert.oneOf(status, ["scheduled", "duplicate"])
      const [tasks] = yield* sql<{ count: number }>`
        select count(*)::integer as count from deletion_tasks where organization_id = ${organization}`
      assert.strictEqual(tasks?.count, 40)
    })
  )
})
