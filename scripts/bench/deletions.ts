/**
 * Deliveries and tasks per second, beside pg-boss and graphile-worker doing the same work on the same Postgres.
 *
 * A delivery: one call that stores a task for later, once for its key, and returns when it is committed; 32 calls at
 * once. A task: an invoice and its three lines are marked deleted in a transaction. Each contender has 10 connections
 * and runs alone; rounds are interleaved. Usage: `npm run bench:deletions [-- DELIVERIES TASKS ROUNDS]`.
 */
import { randomUUID } from "node:crypto"
import { Duration, Effect, Fiber, Layer, ManagedRuntime, Redacted, References } from "effect"
import { Reactivity } from "effect/reactivity"
import { Logger, makeWorkerUtils, run as runGraphile } from "graphile-worker"
import { Pool, type PoolClient } from "pg"
import { PgBoss } from "pg-boss"
import { connect, TaskDatabase } from "../../src/database/Database.ts"
import { migrate } from "../../src/database/Migrations.ts"
import { deliveryOf } from "../../src/deletions/Delivery.ts"
import { Scheduler } from "../../src/deletions/Scheduler.ts"
import * as Worker from "../../src/deletions/Worker.ts"
import { caption, measure, type Measure, report, startPostgres } from "./support.ts"

const [deliveries = 3000, tasks = 2000, rounds = 3] = process.argv.slice(2).map(Number)
const connections = 10
const callers = 32
const organization = "org_bench"
const queue = "deletions"

const postgres = await startPostgres()
const pool = new Pool({ connectionString: postgres.url, max: connections })
pool.on("error", () => undefined)
pool.on("connect", (client) => client.on("error", () => undefined))

const database = Layer.effect(
  TaskDatabase,
  connect({
    url: Redacted.make(postgres.url),
    applicationName: "practice-data-bench",
    maxConnections: connections,
    statementTimeout: "30 seconds"
  })
).pipe(Layer.provide(Reactivity.layer))

/** No line for each task, since the others write none. */
const quietly = Layer.succeed(References.MinimumLogLevel, "Warn")

const runtime = (delay: Duration.Duration) =>
  ManagedRuntime.make(Layer.provideMerge(Scheduler.layer(delay), Layer.merge(database, quietly)))

const later = runtime(Duration.hours(1))
const now = runtime(Duration.zero)
await later.runPromise(Effect.flatMap(TaskDatabase, migrate))

const boss = new PgBoss({ connectionString: postgres.url, max: connections, supervise: false, schedule: false })
boss.on("error", () => undefined)
await boss.start()
await boss.createQueue(queue)
const quiet = new Logger(() => () => undefined)
const graphile = await makeWorkerUtils({ pgPool: pool, logger: quiet })
await graphile.migrate()

const keys = (count: number) => Array.from({ length: count }, () => randomUUID())
const invoiceOf = (key: string) => ({ invoices: [{ invoice_id: `invoice_${key}` }] })
const delivery = (key: string) =>
  deliveryOf({ "idempotency-key": key, "x-organization-id": organization }, invoiceOf(key))

/** Calls for every key, so many at once. */
const atOnce = async (all: ReadonlyArray<string>, call: (key: string) => Promise<unknown>) => {
  const rest = all.values()
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (const key of rest) await call(key)
    })
  )
}

const inAnHour = () => new Date(Date.now() + 3_600_000)

const send = {
  "this service": (key: string) =>
    later.runPromise(Effect.flatMap(Scheduler, (scheduler) => scheduler.schedule(delivery(key)))),
  "pg-boss": (key: string) => boss.send(queue, invoiceOf(key), { id: key, startAfter: 3600 }),
  "graphile-worker": (key: string) => graphile.addJob(queue, invoiceOf(key), { jobKey: key, runAt: inAnHour() })
}

const clear = async () => {
  await pool.query("truncate deletion_tasks, deletions, deletion_arrivals, invoices, invoice_lines")
  await boss.deleteAllJobs(queue)
  await pool.query("delete from graphile_worker._private_jobs")
}

const fill = async (all: ReadonlyArray<string>) => {
  await pool.query(
    "insert into invoices (organization_id, id) select $1, 'invoice_' || key from unnest($2::text[]) key",
    [organization, all]
  )
  await pool.query(
    `insert into invoice_lines (organization_id, id, invoice)
     select $1, 'line_' || key || '_' || n, 'invoice_' || key from unnest($2::text[]) key, generate_series(1, 3) n`,
    [organization, all]
  )
  await pool.query("analyze invoices, invoice_lines")
}

const isDone = async () => {
  const { rows } = await pool.query<{ open: boolean }>(
    "select exists (select from invoices where not is_deleted) as open"
  )
  return rows[0]?.open === false
}

const untilDone = async () => {
  while (!(await isDone())) await new Promise((resolve) => setTimeout(resolve, 20))
}

/** The work of a task, for the two others: what their users would write. */
const deleteInvoice = async (client: PoolClient, invoice: string) => {
  await client.query("begin")
  for (const [table, column] of [
    ["invoices", "id"],
    ["invoice_lines", "invoice"]
  ]) {
    await client.query({
      name: `delete_${table}`,
      text: `update ${table} set is_deleted = true, deleted_at = coalesce(deleted_at, now())
             where organization_id = $1 and ${column} = $2`,
      values: [organization, invoice]
    })
  }
  await client.query("commit")
}

type Payload = ReturnType<typeof invoiceOf>

const drain = {
  "this service": {
    add: (key: string) => now.runPromise(Effect.flatMap(Scheduler, (scheduler) => scheduler.schedule(delivery(key)))),
    work: async () => {
      const worker = now.runFork(Worker.run(Worker.optionsFor(connections)))
      await untilDone()
      await now.runPromise(Fiber.interrupt(worker))
    }
  },
  "pg-boss": {
    add: (key: string) => boss.send(queue, invoiceOf(key), { id: key }),
    work: async () => {
      const worker = await boss.work<Payload>(
        queue,
        { batchSize: 64, pollingIntervalSeconds: 0.5, localConcurrency: connections - 2, burstWhenBatchFull: true },
        async (jobs) => {
          for (const job of jobs) {
            const client = await pool.connect()
            await deleteInvoice(client, job.data.invoices[0]?.invoice_id ?? "")
            client.release()
          }
        }
      )
      await untilDone()
      await boss.offWork(queue, { id: worker })
    }
  },
  "graphile-worker": {
    add: (key: string) => graphile.addJob(queue, invoiceOf(key), { jobKey: key }),
    work: async () => {
      const runner = await runGraphile({
        pgPool: pool,
        concurrency: connections - 2,
        pollInterval: 500,
        noHandleSignals: true,
        logger: quiet,
        parsedCronItems: [],
        taskList: {
          [queue]: (payload, { withPgClient }) =>
            withPgClient((client) => deleteInvoice(client, Object(payload).invoices[0].invoice_id))
        }
      })
      await untilDone()
      await runner.stop()
    }
  }
}

type Contender = keyof typeof send
const contenders: ReadonlyArray<Contender> = ["this service", "pg-boss", "graphile-worker"]
const empty = (): Record<Contender, Array<Measure>> => ({ "this service": [], "pg-boss": [], "graphile-worker": [] })
const sent = empty()
const drained = empty()

for (let round = 0; round <= rounds; round++) {
  for (const contender of contenders) {
    await clear()
    const delivered = await measure(deliveries, () => atOnce(keys(deliveries), send[contender]))
    await clear()
    const due = keys(tasks)
    await fill(due)
    await atOnce(due, drain[contender].add)
    const worked = await measure(tasks, drain[contender].work)
    // The first round warms up.
    if (round === 0) continue
    sent[contender].push(delivered)
    drained[contender].push(worked)
  }
}

console.log(caption(`${rounds} interleaved rounds`))
report(`Deliveries (${deliveries} a round, ${callers} at once)`, sent)
report(`Tasks (${tasks} a round, each an invoice with three lines)`, drained)

await graphile.release()
await boss.stop({ graceful: false })
await Promise.all([later.dispose(), now.dispose(), pool.end()])
await postgres.stop()
