/**
 * Intakes and workers that are killed with -9, paused or cut off at every step, and a Postgres that is stopped under load:
 * one task for one key, each task runs once in effect, and nothing that was acknowledged is lost.
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

/** A worker alone, held at a gate with a task. */
const heldAt = Effect.fnUntraced(function* <E, R>(gate: Gate.Gate, start: Effect.Effect<Program.Program, E, R>) {
  const { sql } = yield* TestDatabase
  yield* paused
  const worker = yield* start
  const { commit: release } = yield* Gate.close(sql, gate)
  const task = yield* newTask
  yield* Gate.areWaiting(sql, 1)
  return { worker, release, task }
})

const startWorker = Effect.flatMap(TestDatabase, ({ url }) => Ledger.start("worker", url))

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
        const { sql } = yield* TestDatabase
        const { release, task, worker } = yield* heldAt(gate, startWorker)
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

  it.effect("paused past its lease, while another completes its task, changes nothing when it goes on", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const { release, task, worker } = yield* heldAt("claim", startWorker)
      yield* worker.kill("SIGSTOP")
      yield* release
      yield* resumed
      yield* Ledger.reaches(sql, task, "completed")
      const completed = yield* sql`select * from deletion_tasks where id = ${task}`
      yield* paused
      yield* worker.kill("SIGCONT")
      yield* ranOnce(task, 2)
      assert.deepStrictEqual(yield* sql`select * from deletion_tasks where id = ${task}`, completed)
    }).pipe(Effect.ensuring(resumed))
  )
})

/** An intake that is not killed. */
class Survivor extends Context.Service<Survivor, Program.Program>()(
  "practice-data/test/system/deletions/Kills/Survivor"
) {
  static readonly layer = Layer.effect(
    Survivor,
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      yield* Gate.install(sql)
      return yield* Ledger.start("intake", url)
    })
  ).pipe(Layer.provideMerge(TestDatabase.layer))
}

const storedUnder = (key: string) =>
  Effect.flatMap(
    TestDatabase,
    ({ sql }) => sql<{ readonly id: string; readonly received_at: Date; readonly scheduled_for: Date }>`
      select id, received_at, scheduled_for from deletion_tasks where idempotency_key = ${key}`
  )

/** Sends a delivery again, and expects its one task in the response and in the store. */
const deliverAgain = Effect.fnUntraced(function* (delivery: Sender.Delivery) {
  const answer = yield* Sender.deliver((yield* Survivor).client, delivery)
  const { received_at, scheduled_for, status, task_id } = yield* Sender.receiptOf(answer)
  const received = DateTime.toEpochMillis(received_at ?? DateTime.makeUnsafe(0))
  assert.deepStrictEqual(
    (yield* storedUnder(delivery.key)).map((row) => [row.id, row.received_at.getTime(), row.scheduled_for.getTime()]),
    [[task_id, received, DateTime.toEpochMillis(scheduled_for)]]
  )
  assert.strictEqual(answer.status, status === "scheduled" ? 202 : 200)
  return status
})

layer(Survivor.layer, options)("An intake that is killed", (it) => {
  const heldBeforeCommit = Effect.fnUntraced(function* (delivery: Sender.Delivery) {
    const { sql, url } = yield* TestDatabase
    const victim = yield* Ledger.start("intake", url)
    const { commit: release } = yield* Gate.close(sql, "delivery")
    const response = yield* Effect.forkScoped(Effect.flip(Sender.send(victim.client, delivery)))
    yield* Gate.areWaiting(sql, 1)
    return { victim, release, response }
  })

  it.effect("before its COMMIT leaves nothing or one task, and the response to the retry says which", () =>
    Effect.gen(function* () {
      const delivery = { key: "killed before", invoices: [1] }
      const { release, response, victim } = yield* heldBeforeCommit(delivery)
      yield* Program.kill(victim)
      assert.strictEqual((yield* Fiber.join(response))._tag, "NoAnswer")
      assert.deepStrictEqual(yield* storedUnder(delivery.key), [])
      const again = yield* Effect.forkScoped(deliverAgain(delivery))
      yield* release
      assert.include(["scheduled", "duplicate"], yield* Fiber.join(again))
      assert.strictEqual(yield* deliverAgain(delivery), "duplicate")
    })
  )

  it.effect("after its COMMIT and before it answers has stored the task, and the retry is a duplicate", () =>
    Effect.gen(function* () {
      const delivery = { key: "killed after", invoices: [1] }
      const { release, response, victim } = yield* heldBeforeCommit(delivery)
      yield* victim.kill("SIGSTOP")
      yield* release
      yield* eventually("a stored task", storedUnder(delivery.key), ({ length }) => length === 1)
      yield* Program.kill(victim)
      assert.strictEqual((yield* Fiber.join(response))._tag, "NoAnswer")
      assert.strictEqual(yield* deliverAgain(delivery), "duplicate")
    })
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
