/**
 * The intake as processes: killed around its COMMIT, and asked for the same by many at once. One task for one key.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Array, Context, DateTime, Effect, Fiber, Layer } from "effect"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import { options } from "../../support/Service.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Gate from "../../support/Gate.ts"
import * as Ledger from "../../support/Ledger.ts"
import * as Program from "../../support/Program.ts"
import * as Sender from "../../support/Sender.ts"

const keysAtOnce = 30
const deliveriesAtOnce = 64

const startIntake = Effect.gen(function* () {
  const { url } = yield* TestDatabase
  const program = yield* Program.start("intake", url)
  return { program, client: yield* Client.make(program.url, deliveriesAtOnce) }
})

/** An intake that is not killed. */
class Survivor extends Context.Service<Survivor, { readonly client: Client.Client }>()(
  "practice-data/test/system/deletions/Intake/Survivor"
) {
  static readonly layer = Layer.effect(
    Survivor,
    Effect.gen(function* () {
      yield* Gate.install((yield* TestDatabase).sql)
      return yield* startIntake
    })
  ).pipe(Layer.provideMerge(TestDatabase.layer))
}

interface Stored {
  readonly id: string
  readonly received_at: Date
  readonly scheduled_for: Date
  readonly invoice: string
}

const storedUnder = (key: string) =>
  Effect.flatMap(
    TestDatabase,
    ({ sql }) => sql<Stored>`
      select id, received_at, scheduled_for, payload #>> '{invoices,0,invoice_id}' as invoice
      from deletion_tasks where idempotency_key = ${key}`
  )

/** Sends a delivery to an intake, which gets as far as the gate before its COMMIT. */
const deliverToGate = Effect.fnUntraced(function* (delivery: Sender.Delivery) {
  const { sql } = yield* TestDatabase
  const { program, client } = yield* startIntake
  const { release } = yield* Gate.close(sql, "delivery")
  const response = yield* Effect.forkScoped(Effect.flip(Sender.send(client, delivery)))
  yield* Gate.areWaiting(sql, 1)
  return { program, release, response }
})

/** Sends a delivery again, and expects its one task in the answer and in the store. */
const deliverAgain = Effect.fnUntraced(function* (delivery: Sender.Delivery) {
  const { client } = yield* Survivor
  const answer = yield* Sender.deliver(client, delivery)
  const receipt = yield* Sender.receiptOf(answer)
  const stored = yield* storedUnder(delivery.key)
  assert.deepStrictEqual(
    stored.map(({ id, received_at, scheduled_for }) => [id, received_at.getTime(), scheduled_for.getTime()]),
    [
      [
        receipt.task_id,
        DateTime.toEpochMillis(receipt.received_at ?? DateTime.makeUnsafe(0)),
        DateTime.toEpochMillis(receipt.scheduled_for)
      ]
    ]
  )
  assert.strictEqual(answer.status, receipt.status === "scheduled" ? 202 : 200)
  return receipt.status
})

layer(Survivor.layer, options)("An intake", (it) => {
  it.effect("that is killed before its COMMIT leaves nothing or one task, and the answer to the retry says which", () =>
    Effect.gen(function* () {
      const delivery = { key: "killed before", invoices: [1] }
      const { program, release, response } = yield* deliverToGate(delivery)
      yield* Program.kill(program)
      assert.strictEqual((yield* Fiber.join(response))._tag, "NoAnswer")
      assert.deepStrictEqual(yield* storedUnder(delivery.key), [])
      const again = yield* Effect.forkScoped(deliverAgain(delivery))
      yield* release
      assert.include(["scheduled", "duplicate"], yield* Fiber.join(again))
      assert.strictEqual(yield* deliverAgain(delivery), "duplicate")
    })
  )

  it.effect(
    "that is killed after its COMMIT and before it answers has stored the task, and the retry is a duplicate",
    () =>
      Effect.gen(function* () {
        const delivery = { key: "killed after", invoices: [1] }
        const { program, release, response } = yield* deliverToGate(delivery)
        yield* program.kill("SIGSTOP")
        yield* release
        yield* eventually(
          "a stored task",
          Effect.map(storedUnder(delivery.key), (stored) => stored.length === 1)
        )
        yield* Program.kill(program)
        assert.strictEqual((yield* Fiber.join(response))._tag, "NoAnswer")
        assert.strictEqual(yield* deliverAgain(delivery), "duplicate")
      })
  )

  it.effect(`answers ${deliveriesAtOnce} identical deliveries at once with one 202 and else 200, for each key`, () =>
    Effect.gen(function* () {
      const { client } = yield* Survivor
      for (const key of Array.makeBy(keysAtOnce, (n) => `at once ${n}`)) {
        const delivery = { key, invoices: [1, 2] }
        const first = yield* Effect.forEach(
          Array.replicate(delivery, deliveriesAtOnce),
          (same) => Sender.send(client, same),
          { concurrency: "unbounded" }
        )
        const answers = yield* Effect.forEach(first, (answer) =>
          answer.status === 503 ? Sender.sendWhileBusy(client, delivery) : Effect.succeed(answer)
        )
        const accepted = answers.filter(({ status }) => status === 202).length
        // The store may have been too busy to tell a sender that it stored the task.
        if (answers.every((answer, index) => answer === first[index])) assert.strictEqual(accepted, 1)
        else assert.isAtMost(accepted, 1)
        assert.strictEqual(answers.filter(({ status }) => status === 200).length, deliveriesAtOnce - accepted)
        const receipts = yield* Effect.forEach(answers, Sender.receiptOf)
        const told = receipts.map((receipt) => `${receipt.task_id} ${DateTime.formatIso(receipt.scheduled_for)}`)
        assert.strictEqual(new Set(told).size, 1)
        assert.strictEqual((yield* storedUnder(key)).length, 1)
      }
    })
  )

  it.effect("stores one of two payloads that race for a key through two intakes, and refuses the other with 422", () =>
    Effect.gen(function* () {
      const clients = [(yield* Survivor).client, (yield* startIntake).client]
      for (const key of Array.makeBy(20, (n) => `raced ${n}`)) {
        const answers = yield* Effect.forEach(
          clients,
          (client, invoice) =>
            Effect.map(Sender.sendWhileBusy(client, { key, invoices: [invoice] }), ({ status }) => ({
              status,
              invoice
            })),
          { concurrency: "unbounded" }
        )
        const accepted = answers.filter(({ status }) => status !== 422).map(({ invoice }) => Ledger.idOf(invoice))
        assert.lengthOf(accepted, 1)
        for (const { status } of answers) assert.include([202, 200, 422], status)
        assert.deepStrictEqual(
          (yield* storedUnder(key)).map(({ invoice }) => invoice),
          accepted
        )
      }
    })
  )
})
