/**
 * The client over sockets, when its program is killed.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Array, Context, Effect, Fiber, Layer, Redacted } from "effect"
import { type Charge, InvoiceDeletions, PracticeData } from "../../../src/client/index.ts"
import { layerShared } from "../../../src/database/Database.ts"
import * as ApiKeys from "../../../src/keys/ApiKeys.ts"
import * as Process from "../../support/Process.ts"
import { options } from "../../support/Service.ts"
import { freePort } from "../../support/LocalPostgres.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"
import { idOf } from "../../unit/client/support.ts"

const organization = "org_client"

const make = Effect.gen(function* () {
  const { sql: admin, url } = yield* TestDatabase
  const sql = yield* clientOf(url, { maxConnections: 4 })
  const { key } = yield* Effect.provide(ApiKeys.create({ organization, name: "client" }), layerShared(admin))
  const apiKey = Redacted.value(key)
  const started = (environment: Process.Environment) => Process.start({ DATABASE_URL: url, ...environment })
  return { apiKey, sql, started }
})

/** A database, a key of it, and programs over it. */
class Ground extends Context.Service<Ground, Effect.Success<typeof make>>()("practice-data/test/client/Service.test") {
  static readonly layer = Layer.effect(Ground, make).pipe(Layer.provide(TestDatabase.layer))
}

/** Charges, thirty of which share each microsecond, and a thousand of them one. */
const insertCharges = Effect.flatMap(
  Ground,
  ({ sql }) => sql`insert into charges (organization_id, id, status, updated_at)
    select ${organization}, 'charge_' || n, 'open', timestamptz '2026-01-01' +
      case when n % 4 = 0 then interval '0' else (n / 30) * interval '130 microseconds' end
    from generate_series(1, 4000) n`
)

const storedIds = Effect.flatMap(Ground, ({ sql }) =>
  Effect.map(
    sql<{
      id: string
    }>`select id from charges where organization_id = ${organization} order by charges.updated_at, id collate "C"`,
    (rows) => rows.map(idOf)
  )
)

/** A program that is killed and started again on its port some times. */
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

layer(Ground.layer, options)("the client", (it) => {
  it.effect("resumes a walk and its deliveries when the program is killed and started again", () =>
    Effect.gen(function* () {
      const { apiKey, sql } = yield* Ground
      yield* insertCharges
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
