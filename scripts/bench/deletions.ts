/**
 * Deliveries and tasks per second, beside pg-boss and graphile-worker doing the same work on the same Postgres.
 *
 * A delivery: one call that stores a task for later, once for its key, and returns when it is committed; 32 calls at
 * once. A task: an invoice and its three lines are marked deleted in a transaction. Each contender has 10 connections
 * and runs alone; rounds are interleaved. Usage: `npm run bench:deletions [-- DELIVERIES TASKS ROUNDS]`.
 */
import { randomUUID } from "node:crypto"
import { setTimeout } from "node:timers/promises"
import { Duration, Effect, Fiber, Layer, ManagedRuntime, Record, Redacted, References } from "effect"
import { Reactivity } from "effect/reactivity"
import { Logger, makeWorkerUtils, run as runGraphile } from "graphile-worker"
import { Pool, type PoolClient } from "pg"
import { PgBoss } from "pg-boss"
import { connect, TaskDatabase } from "../../src/database/Database.ts"
import { migrate } from "../../src/database/Migrations.ts"
import { makeDelivery } from "../../src/deletions/Delivery.ts"
import { Scheduler } from "../../src/deletions/Scheduler.ts"
import * as Worker from "../../src/deletions/Worker.ts"
import { caption } from "../machine.ts"
import { interleaved, startPostgres, table } from "./support.ts"

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
  makeDelivery({ "idempotency-key": key, "x-organization-id": organization }, invoiceOf(key))

/** Calls for every key, so many at once. */
const atOnce = async (all: ReadonlyArray<string>, call: (key: string) => Promise<unknown>) => {
  const rest = all.values()
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (const key of rest) await call(key)
    })
  )
}

const clear = async () => {
  await pool.query("truncate deletion_tasks, deletions, deletions_unsettled, invoices, invoice_lines")
  await boss.deleteAllJobs(queue)
  await pool.query("delete from graphile_worker._private_jobs")
}

const fill = async (all: ReadonlyArray<string>) => {
  await pool.query(
    `with made as (
       insert into invoices (organization_id, id)
       select $1, 'invoice_' || key from unnest($2::text[]) key returning organization_id, id
     )
     insert into invoice_lines (organization_id, id, invoice)
     select organization_id, id || '_line_' || n, id from made, generate_series(1, 3) n`,
    [organization, all]
  )
  await pool.query("analyze invoices, invoice_lines")
}

const untilDone = async () => {
  const open = "select from invoices where not is_deleted limit 1"
  while ((await pool.query(open)).rowCount !== 0) await setTimeout(20)
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

/** A queue: how it stores a task for now or for later, and how it runs all tasks. */
interface Contender {
  readonly add: (key: string, isLater: boolean) => Promise<unknown>
  readonly work: () => Promise<void>
}

const contenders: Readonly<Record<string, Contender>> = {
  "this service": {
    add: (key, isLater) => (isLater ? later : now).runPromise(Scheduler.use((of) => of.schedule(delivery(key)))),
    work: async () => {
      const worker = now.runFork(Worker.run(Worker.slotsFor(connections)))
      await untilDone()
      await now.runPromise(Fiber.interrupt(worker))
    }
  },
  "pg-boss": {
    add: (key, isLater) => boss.send(queue, invoiceOf(key), { id: key, ...(isLater && { startAfter: 3600 }) }),
    work: async () => {
      const worker = await boss.work<ReturnType<typeof invoiceOf>>(
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
    add: (key, isLater) =>
      graphile.addJob(queue, invoiceOf(key), {
        jobKey: key,
        ...(isLater && { runAt: new Date(Date.now() + 3_600_000) })
      }),
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

/** How many operations there are in a second, and the CPU time of this process for each, in milliseconds. */
const measure = async (count: number, work: () => Promise<void>) => {
  const [cpu, begun] = [process.cpuUsage(), performance.now()]
  await work()
  const took = performance.now() - begun
  const { system, user } = process.cpuUsage(cpu)
  return { perSecond: (count / took) * 1000, cpu: (user + system) / 1000 / count }
}

const round = async ({ add, work }: Contender) => {
  await clear()
  const sent = await measure(deliveries, () => atOnce(keys(deliveries), (key) => add(key, true)))
  await clear()
  const due = keys(tasks)
  await fill(due)
  await atOnce(due, (key) => add(key, false))
  return { sent, run: await measure(tasks, work) }
}

console.log(caption(`medians of ${rounds} interleaved rounds`))
const measured = await interleaved(
  rounds,
  Record.map(contenders, (contender) => () => round(contender))
)
for (const [title, part] of [
  [`Deliveries (${deliveries} a round, ${callers} at once)`, "sent"],
  [`Tasks (${tasks} a round, each an invoice with three lines)`, "run"]
] as const) {
  table(title, "contender", measured, {
    "per second": (its) => its[part].perSecond,
    "ours / its": (its, ours) => ours[part].perSecond / its[part].perSecond,
    "CPU ms each": (its) => its[part].cpu
  })
}

await graphile.release()
await boss.stop({ graceful: false })
await Promise.all([later.dispose(), now.dispose(), pool.end()])
await postgres.stop()
