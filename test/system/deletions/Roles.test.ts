/**
 * The three roles as three processes, each with a login that has its role's privileges and no other: what one accepts,
 * another carries out, and the third shows.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Redacted, Schema } from "effect"
import * as ApiKeys from "../../../src/keys/ApiKeys.ts"
import * as Client from "../../support/Client.ts"
import { options } from "../../support/Service.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Ledger from "../../support/Ledger.ts"
import * as Sender from "../../support/Sender.ts"

const Page = Schema.fromJsonString(
  Schema.Struct({
    body: Schema.Array(
      Schema.Struct({
        id: Schema.String,
        is_deleted: Schema.Boolean,
        deleted_at: Schema.NullOr(Schema.String),
        updated_at: Schema.String
      })
    )
  })
)

const Task = Schema.fromJsonString(
  Schema.Struct({
    task_id: Schema.String,
    state: Schema.String,
    outcome: Schema.Record(Schema.String, Schema.Unknown)
  })
)

/** The URL of a database for a new login that is granted a role, gone when the scope closes. */
const loginOf = Effect.fnUntraced(function* (role: string) {
  const { url, sql } = yield* TestDatabase
  const name = `practice_data_${role}_${process.pid}`
  yield* Effect.acquireRelease(
    sql.unsafe(`create role ${name} login password 'secret' in role practice_data_${role}`),
    () => Effect.orDie(sql.unsafe(`drop role ${name}`))
  )
  return Object.assign(new URL(url), { username: name, password: "secret" }).href
})

const idsOf = (records: ReadonlyArray<{ readonly id: string }>) => records.map(({ id }) => id)

layer(TestDatabase.layerDatabases, options)("Intake, worker and data API as processes of their own", (it) => {
  it.effect("delete an invoice with its lines, so that a client that syncs since it last looked sees it", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* Ledger.open(sql, 2)
      // The worker may not write what the trigger records.
      yield* sql`alter function note_completion() security definer`
      const [asIntake, asApi, asWorker] = yield* Effect.forEach(["intake", "api", "worker"], loginOf)
      const { key } = yield* ApiKeys.create({ organization: Ledger.organization, name: "Sync" })
      const [intake, dataApi] = yield* Effect.all(
        [
          Ledger.start("intake", asIntake ?? ""),
          Ledger.start("data-api", asApi ?? ""),
          Ledger.start("worker", asWorker ?? "")
        ],
        { concurrency: "unbounded" }
      )
      const sender = intake.client
      const headers = { authorization: `Bearer ${Redacted.value(key)}`, "content-type": "application/json" }
      const ask = (path: string, request: object) =>
        Effect.map(
          dataApi.client.call({ path: `/api/v3${path}`, headers, body: Client.json(request) }),
          ({ text }) => text
        )
      const search = Effect.fnUntraced(function* (resource: string, request: object) {
        return (yield* Schema.decodeEffect(Page)(yield* ask(`/${resource}/search`, request))).body
      })
      const everything = ["invoice_1", "invoice_2"]
      assert.deepStrictEqual(idsOf(yield* search("invoices", {})), everything)

      const lastLook = DateTime.formatIso(yield* DateTime.now)
      const receipt = yield* Sender.receiptOf(yield* Sender.deliver(sender, { key: "delivery", invoices: [1] }))
      yield* Ledger.untilCompleted(sql)
      assert.deepStrictEqual(idsOf(yield* search("invoices", {})), ["invoice_2"])

      const { outcome, state, task_id } = yield* Schema.decodeEffect(Task)(
        yield* ask("/invoice-deletions/get", { idempotency_key: "delivery" })
      )
      assert.deepStrictEqual([state, task_id], ["completed", receipt.task_id])
      assert.deepInclude(outcome, { lines_of_invoices: 2 })

      const news = { include_deleted: true, updated_at_since: lastLook }
      const changed = [...(yield* search("invoices", news)), ...(yield* search("invoice-lines", news))]
      assert.deepStrictEqual(idsOf(changed), ["invoice_1", "invoice_1_line_1", "invoice_1_line_2"])
      for (const { is_deleted, deleted_at, updated_at } of changed) {
        assert.isTrue(is_deleted)
        assert.strictEqual(deleted_at, updated_at)
        assert.isAtLeast(
          DateTime.toEpochMillis(DateTime.makeUnsafe(updated_at)),
          DateTime.toEpochMillis(receipt.scheduled_for)
        )
      }
    })
  )
})
