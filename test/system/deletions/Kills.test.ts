/**
 * Workers that are killed with -9 at every step, and a Postgres that is stopped under load: each task runs once in
 * effect, and nothing that was acknowledged is lost.
 *
 * @module-tag long
 */
import { assert, it as test, layer } from "@effect/vitest"
import { Array, Context, DateTime, Duration, Effect, Fiber, Layer, Ref, Schema } from "effect"
import { eventually } from "../../support/eventually.ts"
import * as Gate from "../../support/Gate.ts"
import { inTime } from "../../support/inTime.ts"
import * as Ledger from "../../support/Ledger.ts"
import * as Program from "../../support/Program.ts"
import * as Sender from "../../support/Sender.ts"
import { options } from "../../support/Service.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Client from "../../support/Client.ts"
import * as Cluster from "../../support/Cluster.ts"

/** A worker that takes over, when it may. */
class Successor extends Context.Service<Successor, Program.Program>()(
  "practice-data/test/system/deletions/Kills/Successor"
) {
  static readonly layer = Layer.effect(
    Successor,
    Effect.gen(function* () {
      const { url, sql } = yield* TestDatabase
      yield* Ledger.open(sql, 1000)
      yield* Gate.install(sql)
      return yield* Ledger.start("worker", url)
    })
  ).pipe(Layer.provideMerge(TestDatabase.layer))
}

const paused = Effect.flatMap(Successor, ({ kill }) => kill("SIGSTOP"))
const resumed = Effect.flatMap(Successor, ({ kill }) => kill("SIGCONT"))

let scheduled = 0

/** Schedules a task for an invoice that no other one names. */
const newTask = Effect.flatMap(TestDatabase, ({ sql }) => Ledger.schedule(sql, ++scheduled))

/** Waits for a later task: by then the workers would have run an earlier one again. Then that one ran once. */
const ranOnce = Effect.fnUntraced(function* (task: string, attempts: number) {
  const { sql } = yield* TestDatabase
  yield* Ledger.reaches(sql, yield* newTask, "completed")
  assert.deepStrictEqual(yield* Ledger.entryOf(sql, task), Ledger.completedOnce(attempts))
  assert.strictEqual((yield* Ledger.balance(sql))?.rewritten, 0)
})

const steps = [
  ["before its claim is committed", "claim", undefined, 1],
  ["after its claim is committed", "claim", "running", 2],
  ["in the middle of the deletion", "deletion", undefined, 2],
  ["after the deletion is committed", "deletion", "completed", 1]
] as const

layer(Successor.layer, options)("A worker", (it) => {
  it.effect.each(steps)(
    "killed %s leaves a task that another completes within 2 s, once",
    ([, gate, committed, attempts]) =>
      Effect.gen(function* () {
        const { sql, url } = yield* TestDatabase
        yield* paused
        const worker = yield* Ledger.start("worker", url)
        const { commit: release } = yield* Gate.close(sql, gate)
        const task = yield* newTask
        yield* Gate.areWaiting(sql, 1)
        if (committed === undefined) {
          yield* Program.kill(worker)
          // The killed worker's statement must not go on holding its locks for it.
          assert.isBelow(yield* Program.secondsOf(Gate.areWaiting(sql, 0)), inTime(2))
          yield* release
        } else {
          yield* worker.kill("SIGSTOP")
          yield* release
          yield* Ledger.reaches(sql, task, committed)
          yield* Program.kill(worker)
        }
        yield* resumed
        assert.isBelow(yield* Program.secondsOf(Ledger.reaches(sql, task, "completed")), inTime(2))
        yield* ranOnce(task, attempts)
      }).pipe(Effect.ensuring(resumed))
  )
})

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

test.live("Postgres stopped immediately under load loses nothing that was acknowledged, and runs each task once", () =>
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
