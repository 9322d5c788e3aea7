/**
 * Postgres stopped immediately under load, twice: nothing that was acknowledged is lost, and each task runs once.
 *
 * @module-tag long
 */
import { assert, it } from "@effect/vitest"
import { Array, DateTime, Duration, Effect, Fiber, Ref, Schema } from "effect"
import { inTime } from "../../support/inTime.ts"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Ledger from "../../support/Ledger.ts"
import * as Cluster from "../../support/Cluster.ts"
import * as Sender from "../../support/Sender.ts"

const invoices = 300
const deliveries = Array.makeBy(900, (n): Sender.Delivery => ({ key: `delivery ${n}`, invoices: [(n % invoices) + 1] }))
/** How many deliveries are acknowledged when Postgres stops. */
const outages = [200, 500]

const Unacknowledged = Schema.fromJsonString(
  Schema.Struct({
    status: Schema.Literal("error"),
    task_id: Schema.String.check(Schema.isUUID(5)),
    scheduled_for: Schema.DateTimeUtcFromString,
    idempotency_key: Schema.String,
    invoices_count: Schema.Int,
    invoice_lines_count: Schema.Int,
    received_at: Schema.Null
  })
)

/** The intake while its store is down: 503 in time, with the documented body. */
const isUnavailable = Effect.fnUntraced(function* (client: Client.Client, delivery: Sender.Delivery) {
  const [took, { status, headers, text }] = yield* Effect.timed(Sender.send(client, delivery))
  assert.strictEqual(status, 503, text)
  assert.match(String(headers["retry-after"]), /^[1-9]\d*$/)
  const body = yield* Schema.decodeEffect(Unacknowledged)(text, { onExcessProperty: "error" })
  assert.deepInclude(body, { idempotency_key: delivery.key, invoices_count: 1, invoice_lines_count: 0 })
  assert.isAbove(DateTime.toEpochMillis(body.scheduled_for), 0)
  assert.isBelow(Duration.toSeconds(took), inTime(2))
})

it.live("Postgres stopped immediately under load loses nothing that was acknowledged, and runs each task once", () =>
  Effect.gen(function* () {
    const postgres = yield* Cluster.make()
    yield* Ledger.open(postgres.sql, invoices)
    const intake = yield* Ledger.start("intake", postgres.url)
    yield* Ledger.start("worker", postgres.url)
    yield* Ledger.start("worker", postgres.url)
    const { client } = intake
    const acknowledged = yield* Ref.make(0)
    const sending = yield* Effect.forkScoped(
      Effect.forEach(
        deliveries,
        (delivery) =>
          Effect.andThen(
            Sender.deliver(client, delivery),
            Ref.update(acknowledged, (count) => count + 1)
          ),
        { concurrency: 16, discard: true }
      )
    )
    for (const outage of outages) {
      yield* eventually(`${outage} acknowledged deliveries`, Ref.get(acknowledged), (count) => count >= outage)
      yield* postgres.stopImmediately
      const probes = Array.makeBy(8, (n) => ({ key: `probe ${outage} ${n}`, invoices: [1] }))
      yield* Effect.forEach(probes, (probe) => isUnavailable(client, probe), { concurrency: "unbounded" })
      yield* postgres.start
    }
    yield* Fiber.join(sending)
    yield* Ledger.untilCompleted(postgres.sql)
    assert.strictEqual(yield* Ref.get(acknowledged), deliveries.length)
    const { attempts: _, ...expected } = Ledger.allCompletedOnce(deliveries.length)
    const balance = yield* Ledger.balance(postgres.sql)
    assert.deepInclude(balance, expected)
    // A task that one worker had claimed, and another completed before it could be released, keeps both attempts.
    for (const attempts of Object.keys(balance?.attempts ?? {})) assert.isAtMost(Number(attempts), outages.length + 1)
  })
)
