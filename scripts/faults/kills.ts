/**
 * Deliveries, each sent one to five times in parallel, while intakes, workers and Postgres are killed at random. Then:
 * each acknowledged task ran once, none early, nothing is half done, and the counts agree.
 */
import { Array, Data, Duration, Effect, Fiber, Random, Record, Schedule, Schema } from "effect"
import { DeliveryReceipt } from "../../src/api/IntakeApi.ts"
import * as Client from "../../test/support/Client.ts"
import * as Ledger from "../../test/system/deletions/Ledger.ts"
import { freePort } from "../../test/support/LocalPostgres.ts"
import { keep, type Kind, reign } from "./chaos.ts"
import type { Cluster } from "../../test/system/database/Cluster.ts"

/** How many deliveries are under way at once, each in up to five copies. */
const concurrency = 24

/** Up to two deliveries delete the same invoice. */
const invoiceOf = (delivery: number) => Math.floor(delivery / 2) + 1

/** Not acknowledged: the store was down or busy, or, with another status than 503, as no delivery of these may be. */
class NotAcknowledged extends Data.TaggedError("NotAcknowledged")<{ readonly answer: Client.Answer }> {}

const decodeReceipt = Schema.decodeUnknownEffect(Schema.fromJsonString(DeliveryReceipt))

/** Sends a delivery until it is acknowledged. It is sent again after a 503 and after no answer, as the contract says. */
const deliver = (client: Client.Client, key: string, invoice: number) =>
  client
    .call({
      path: "/api/v1/invoice-deletions",
      headers: { "content-type": "application/json", "idempotency-key": key, "x-organization-id": Ledger.organization },
      body: Client.json({ invoices: [{ invoice_id: Ledger.idOf(invoice) }] })
    })
    .pipe(
      Effect.timeout("5 seconds"),
      Effect.filterOrFail(
        ({ status }) => status === 200 || status === 202,
        (answer) => new NotAcknowledged({ answer })
      ),
      Effect.retry({
        schedule: Schedule.spaced("100 millis"),
        while: (error) => error._tag !== "NotAcknowledged" || error.answer.status === 503
      }),
      Effect.timeout("60 seconds")
    )

const toldOf = (task: string, receivedAt: number, scheduledFor: number) => `${task} ${receivedAt} ${scheduledFor}`

/** Sends the copies of a delivery to the intakes in turn, until each of them is acknowledged. */
const sendCopies = Effect.fnUntraced(function* (clients: ReadonlyArray<Client.Client>, number: number, copies: number) {
  const key = `delivery ${number}`
  const turns = Array.makeBy(copies, (copy) => clients[(number + copy) % clients.length]).filter((c) => c !== undefined)
  const answers = yield* Effect.forEach(turns, (client) => deliver(client, key, invoiceOf(number)), {
    concurrency: "unbounded"
  })
  const receipts = yield* Effect.forEach(answers, ({ text }) => decodeReceipt(text))
  const told = receipts.map(({ received_at, scheduled_for, task_id }) =>
    toldOf(task_id, received_at?.epochMilliseconds ?? 0, scheduled_for.epochMilliseconds)
  )
  const scheduled = answers.filter(({ status }) => status === 202).length
  // What the answers said of the task: one thing, whichever copy was answered.
  return { key, copies, scheduled, told: new Set(told) }
})

type Acknowledged = Effect.Success<ReturnType<typeof sendCopies>>

type Stored = Readonly<Record<"key" | "id", string> & Record<"received_at" | "scheduled_for", Date>>

/** How many acknowledged deliveries are not stored as every answer told it, or were answered with two 202. */
const misled = Effect.fnUntraced(function* ({ sql }: Cluster, acknowledged: ReadonlyArray<Acknowledged>) {
  const rows = yield* sql<Stored>`
    select idempotency_key as key, id, received_at, scheduled_for from deletion_tasks`
  const stored = new Map(
    rows.map((row) => [row.key, toldOf(row.id, row.received_at.getTime(), row.scheduled_for.getTime())])
  )
  return acknowledged.filter(
    ({ key, told, scheduled }) => scheduled > 1 || told.size !== 1 || !told.has(stored.get(key) ?? "")
  ).length
})

/**
 * Sends deliveries while processes and Postgres are killed.
 *
 * @returns the figures, and the promises that were not kept
 */
export const kills = Effect.fnUntraced(function* (postgres: Cluster, deliveries: number, seed: number) {
  const { sql, url } = postgres
  yield* Ledger.open(sql, invoiceOf(deliveries))
  const environment = { DELETION_DELAY: "1s" }
  const ports = [yield* freePort, yield* freePort] as const
  const intake = (port: number) => keep("intake", url, { ...environment, PORT: String(port) })
  const worker = keep("worker", url, environment)
  const intakes = [yield* intake(ports[0]), yield* intake(ports[1])] as const
  const workers = [yield* worker, yield* worker] as const
  const clients = yield* Effect.forEach(ports, (port) => Client.make(`http://127.0.0.1:${port}`, concurrency * 3))

  const incidents = new Map<Kind, number>()
  const count = (kind: Kind) => Effect.sync(() => incidents.set(kind, (incidents.get(kind) ?? 0) + 1))
  const chaos = yield* Effect.forkScoped(
    Random.withSeed(reign({ postgres, intakes, workers }, count), `${seed} incidents`)
  )
  const copies = Effect.replicateEffect(Random.nextIntBetween(1, 5), deliveries)
  const acknowledged = yield* Effect.forEach(
    yield* Random.withSeed(copies, `${seed} copies`),
    (many, number) => sendCopies(clients, number, many),
    { concurrency }
  )
  yield* Fiber.interrupt(chaos)

  const done = Effect.repeat(Ledger.outstanding(sql), {
    until: (open) => open === 0,
    schedule: Schedule.spaced("100 millis")
  })
  const [settling] = yield* Effect.timed(Effect.timeout(done, "5 minutes"))
  const { attempts, ...counts } = (yield* Ledger.balance(sql)) ?? Ledger.allCompletedOnce(0)
  const { attempts: _, ...expected } = Ledger.allCompletedOnce(deliveries)
  const wrong = Record.keys(expected).filter((name) => counts[name] !== expected[name])
  const requests = acknowledged.reduce((sum, each) => sum + each.copies, 0)
  const answeredOtherwise = yield* misled(postgres, acknowledged)
  return {
    figures: [
      `completed once ${counts.completed} of ${deliveries}, in ${requests} requests`,
      `answered otherwise than stored ${answeredOtherwise}`,
      `attempts ${Client.json(attempts)}`,
      `settled in ${Duration.toSeconds(settling).toFixed(1)} s`,
      ...[...incidents].map(([kind, times]) => `${kind}: ${times}`)
    ],
    broken: [
      ...wrong.map((name) => `${name}: ${counts[name]} instead of ${expected[name]}`),
      ...(answeredOtherwise > 0 ? ["answers differ from what is stored"] : [])
    ]
  }
})
