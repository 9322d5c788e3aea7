/** The scheduler over the table `deletion_tasks`. */
import { DateTime, Duration, Effect, Schema, Struct } from "effect"
import { SqlSchema } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { Outcome } from "../api/DeletionTasks.ts"
import { nearlyAll } from "../database/Admission.ts"
import { TaskDatabase } from "../database/Database.ts"
import { codeOf, reasonOf } from "../database/SqlFailure.ts"
import type { Failure } from "../database/Store.ts"
import type { Distribution } from "../database/Distribution.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as Backlog from "./Backlog.ts"
import * as Claiming from "./Claiming.ts"
import { stopped } from "./ClaimStatements.ts"
import * as Deletion from "./Deletion.ts"
import type { Deletions, Delivery } from "./Delivery.ts"
import * as Owner from "./Owner.ts"
import { report } from "./TaskReport.ts"
import {
  Claim,
  type ClaimLimits,
  maximumAttempts,
  Receipt,
  RunOutcome,
  ScheduleOutcome,
  SchedulerUnavailable,
  TaskFailed
} from "./Task.ts"

const Identity = Schema.Struct({ organization: Schema.String, taskId: Schema.String })

const unavailable = ({ reason }: Failure) => new SchedulerUnavailable({ message: reason })

/** Senders get a response within two seconds, so the store has less. */
const deliveryTimeout = Duration.millis(1300)

/** The worker has time, but must not wait until the system gives up a silent connection. */
const worker = { key: "the worker", within: Duration.seconds(5), unavailable } as const

/** Tasks run beside the worker's other statements, and leave some connections to those and to the intake. */
const tasks = { key: "the tasks", share: nearlyAll, within: Duration.seconds(65), unavailable } as const

/**
 * How long several tasks may take in one transaction. A heartbeat skips the tasks of an open transaction, so it has to
 * end while their leases last, and soon enough for tasks of a worker that died to start in its place.
 */
const transactionTimeout = Duration.millis(300)

/** Whether the statement, or the data it met, is at fault, and not the database around it. */
const isOwnFault = (error: SqlError) => /^(22|23|44|54|57014|P0)/.test(codeOf(error))

const textOf = (deletions: Deletions) => JSON.stringify(deletions)

/**
 * The statement that renews leases. Parameters: the claims of an owner, and as the fourth when the leases end. A task
 * that is running is locked: its lock keeps others off, and must not keep the other leases waiting.
 */
const renewal = ({ claims, idIn }: Owner.Owner) => `
  with held as materialized (
    select t.organization_id, t.id from (${claims}) claimed
    cross join lateral (
      select t.organization_id, t.id from deletion_tasks t
      where t.organization_id = ${idIn("claimed")} and t.id = claimed.id
        and t.claim_token = claimed.token and t.state = 'running'
      for update skip locked
    ) t
  )
  update deletion_tasks t set due_at = $4::timestamptz
  from held where t.organization_id = ${idIn("held")} and t.id = held.id`

const deletions = { one: Deletion.statement(Owner.one), several: Deletion.statement(Owner.several) }
const leases = { one: renewal(Owner.one), several: renewal(Owner.several) }

export interface Options {
  /** From receiving a delivery to running it. */
  readonly delay: Duration.Duration
  /** That of the task database, unless another is given. */
  readonly distribution?: Distribution | undefined
  /** How much an organization may have pending. */
  readonly bounds?: Backlog.Bounds | undefined
}

/** A scheduler over the task database. */
export const make = Effect.fnUntraced(function* ({ bounds = Backlog.bounds, delay, distribution: given }: Options) {
  const sql = yield* TaskDatabase
  const distribution = given ?? sql.distribution

  /** Whose tasks a statement may be about. */
  const ownerOf = () => (distribution.isDistributed() === false ? ("several" as const) : ("one" as const))

  /** Runs statements of the worker. A row that does not decode is a bug. */
  const asWorker = <A>(statements: Effect.Effect<A, SqlError | Schema.SchemaError>) =>
    sql.run(worker, Effect.catchTag(statements, "SchemaError", Effect.die))

  const at = (time: DateTime.Utc) => sql`${DateTime.formatIso(time)}::timestamptz`

  const findTask = SqlSchema.findAll({
    Request: Schema.Struct({ ...Identity.fields, fingerprint: Schema.Uint8Array }),
    Result: Schema.Struct({ ...Receipt.fields, isSame: Schema.Boolean }),
    execute: ({ fingerprint, organization, taskId }) => sql`
      select id as "taskId", received_at as "receivedAt", scheduled_for as "scheduledFor",
        invoices_count as "invoicesCount", invoice_lines_count as "invoiceLinesCount",
        fingerprint = ${fingerprint} as "isSame"
      from deletion_tasks where organization_id = ${organization} and id = ${taskId}`
  })

  const mostTasks = Math.max(bounds.known.tasks, bounds.unknown.tasks)

  /** Counts what an organization has pending. Only the index for turns has this order. */
  const countPending = SqlSchema.findOne({
    Request: Schema.String,
    Result: Schema.Struct({ tasks: Schema.Int, bytes: Schema.Finite, isKnown: Schema.Boolean }),
    execute: (organization) => sql`
      select count(*)::integer as tasks, coalesce(sum(pg_column_size(payload)), 0)::float8 as bytes,
        exists (select from organizations where organization_id = ${organization}) as "isKnown"
      from (
        select payload from deletion_tasks
        where ${ownerOf() === "several" ? sql`true` : sql`organization_id = ${organization}`}
          and (organization_id, due_at) > (${organization}, '-infinity')
          and (organization_id, due_at) <= (${organization}, 'infinity') and state = 'scheduled'
        order by organization_id nulls first, due_at ${sql.literal(`limit ${mostTasks}`)}
      ) pending`
  })

  const hasRoom = Backlog.make(bounds)

  /** Has a statement of claims run for as many organizations at once as it may be about. */
  const forOwners = <A, E, R>(
    claims: ReadonlyArray<Claim>,
    concurrency: number,
    run: (owner: keyof typeof Owner.owners, some: ReadonlyArray<Claim>) => Effect.Effect<ReadonlyArray<A>, E, R>
  ) => {
    const owner = ownerOf()
    return owner === "several"
      ? run(owner, claims)
      : Effect.map(
          Effect.forEach(Owner.byOrganization(claims), (some) => run(owner, some), { concurrency }),
          (rows): ReadonlyArray<A> => rows.flat()
        )
  }

  const timeout = sql.unsafe(`set local statement_timeout = ${Duration.toMillis(transactionTimeout)}`)

  const runTasks = SqlSchema.findAll({
    Request: Schema.Array(Schema.toType(Claim)),
    Result: Schema.Struct({ ...Identity.fields, outcome: Outcome }),
    execute: (claims) => {
      const running = forOwners(claims, 1, (owner, some) =>
        Effect.flatMap(DateTime.now, (now) =>
          sql.unsafe<object>(deletions[owner], [...Owner.owners[owner].parametersOf(some), DateTime.formatIso(now)])
        )
      )
      return claims.length === 1 ? running : sql.withTransaction(Effect.andThen(timeout, running))
    }
  })

  const findOld = SqlSchema.findAll({
    Request: Schema.Struct({ until: Schema.DateTimeUtcFromString, limit: Schema.Int }),
    Result: Identity,
    execute: ({ limit, until }) => sql`
      select organization_id as organization, id as "taskId" from deletion_tasks
      where state = 'completed' and payload is not null and finished_at <= ${until}::timestamptz
      order by finished_at ${sql.literal(`limit ${limit}`)}`
  })

  const findUntilDue = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ due_at: Schema.NullOr(Schema.DateTimeUtcFromDate) }),
    execute: () => sql`
      select least(scheduled.due_at, running.due_at) as due_at
      from (select min(due_at) as due_at from deletion_tasks where state = 'scheduled') scheduled
      cross join (select min(due_at) as due_at from deletion_tasks where state = 'running') running`
  })

  const released = (now: DateTime.Utc) => sql`
    update deletion_tasks set
      attempts = attempts - 1, state = 'scheduled', due_at = ${at(now)}, claim_token = null, finished_at = null`

  const claim = yield* Claiming.make({
    sql,
    distribution,
    tracesDeliveries: (yield* Tracing.Traces) !== undefined,
    run: asWorker,
    release: ({ organization, token }) => {
      const isOwned = organization === undefined ? sql`true` : sql`organization_id = ${organization}`
      return Effect.flatMap(
        DateTime.now,
        (now) => sql`${released(now)} where ${isOwned} and state = 'running' and claim_token = ${token}::uuid`
      )
    }
  })

  return {
    schedule: Effect.fn("Scheduler.schedule")(
      function* (delivery: Delivery) {
        const { invoiceLinesCount, invoicesCount, organization, taskId } = delivery
        const receivedAt = yield* DateTime.now
        const scheduledFor = DateTime.addDuration(receivedAt, delay)
        const ownTrace = (yield* Tracing.currentTraceParent) ?? null
        const payload = textOf(delivery.deletions)
        const counting = Effect.catchTags(countPending(organization), {
          NoSuchElementError: Effect.die,
          SchemaError: Effect.die
        })
        const isFull = !(yield* hasRoom(organization, payload.length, counting))
        // Waits for a delivery of the same key that is being stored. The winner is read in a statement of its own,
        // since this one does not see what was committed after it began.
        const inserted = isFull
          ? []
          : yield* sql`
          insert into deletion_tasks (
            organization_id, id, idempotency_key, fingerprint, payload,
            invoices_count, invoice_lines_count, received_at, scheduled_for, due_at, trace_parent
          ) values (
            ${organization}, ${taskId}, ${delivery.idempotencyKey}, ${delivery.fingerprint},
            ${payload}::jsonb, ${invoicesCount}, ${invoiceLinesCount},
            ${at(receivedAt)}, ${at(scheduledFor)}, ${at(scheduledFor)}, ${ownTrace}
          ) on conflict (organization_id, id) do nothing returning 1`
        if (inserted.length > 0) {
          return ScheduleOutcome.Scheduled({
            receipt: { taskId, receivedAt, scheduledFor, invoicesCount, invoiceLinesCount }
          })
        }
        const [first] = yield* Effect.catchTag(findTask(delivery), "SchemaError", Effect.die)
        if (first === undefined && isFull) return ScheduleOutcome.Full()
        if (first?.isSame !== true) return ScheduleOutcome.KeyReused()
        return ScheduleOutcome.Duplicate({ receipt: Struct.omit(first, ["isSame"]) })
      },
      (statements, { organization }) =>
        sql.run({ key: `organization ${organization}`, within: deliveryTimeout, unavailable }, statements)
    ),

    claim: Effect.fn("Scheduler.claim")(function* (limits: ClaimLimits, lease: Duration.Duration) {
      const rows = yield* claim(limits, lease)
      for (const row of rows) if (row.isDead) yield* report(row, { result: "dead", reason: row.reason ?? stopped })
      return rows.flatMap((row) => (row.isDead ? [] : [Struct.omit(row, ["isDead", "reason"])]))
    }),

    runsApart: () => ownerOf() === "one",

    renew: Effect.fn("Scheduler.renew")(function* (claims: ReadonlyArray<Claim>, lease: Duration.Duration) {
      if (claims.length === 0) return
      const leaseEnd = DateTime.formatIso(DateTime.addDuration(yield* DateTime.now, lease))
      yield* forOwners(claims, Claiming.concurrency, (owner, some) =>
        asWorker(sql.unsafe(leases[owner], [...Owner.owners[owner].parametersOf(some), leaseEnd]))
      )
    }),

    run: Effect.fn("Scheduler.run")(function* (claims: ReadonlyArray<Claim>) {
      const completed = yield* sql.run(
        tasks,
        Effect.catchTags(runTasks(claims), {
          SchemaError: Effect.die,
          SqlError: (error) => Effect.fail(isOwnFault(error) ? new TaskFailed({ message: reasonOf(error) }) : error)
        })
      )
      return claims.map(({ organization, taskId }) => {
        const row = completed.find((each) => each.organization === organization && each.taskId === taskId)
        return row === undefined ? RunOutcome.Superseded() : RunOutcome.Completed({ outcome: row.outcome })
      })
    }),

    fail: Effect.fn("Scheduler.fail")(function* (
      { organization, taskId, token }: Claim,
      reason: string,
      retryAfter: Duration.Duration
    ) {
      const now = yield* DateTime.now
      const isLast = sql`attempts >= ${maximumAttempts}`
      yield* sql`
        update deletion_tasks set
          state = case when ${isLast} then 'dead' else 'scheduled' end,
          due_at = case when ${isLast} then null else ${at(DateTime.addDuration(now, retryAfter))} end,
          finished_at = case when ${isLast} then ${at(now)} end,
          claim_token = null, last_error = ${reason}
        where organization_id = ${organization} and id = ${taskId} and claim_token = ${token} and state = 'running'`
    }, asWorker),

    release: Effect.fn("Scheduler.release")(function* ({ attempt, organization, taskId, token }: Claim) {
      const isTask = sql`organization_id = ${organization} and id = ${taskId}`
      // A task that is dead because this claim expired is still held by it.
      const held = yield* sql`
        ${released(yield* DateTime.now)} where ${isTask} and claim_token = ${token} returning 1`
      if (held.length > 0) return
      // If another worker has claimed the task since, it has counted an attempt on top of this one.
      yield* sql`
        update deletion_tasks set attempts = attempts - 1
        where ${isTask} and claim_token is distinct from ${token} and due_at is not null and attempts > ${attempt}`
    }, asWorker),

    empty: Effect.fn("Scheduler.empty")(function* (until: DateTime.Utc, limit: number) {
      const old = yield* findOld({ until, limit })
      for (const some of Owner.byOrganization(old)) {
        const [{ organization }] = some
        yield* sql`
          update deletion_tasks set payload = null
          where organization_id = ${organization} and id = any (${some.map(({ taskId }) => taskId)}::uuid[])`
      }
      return old.length
    }, asWorker),

    untilDue: Effect.gen(function* () {
      const [first] = yield* findUntilDue()
      if (first?.due_at == null) return undefined
      return Duration.max(Duration.zero, DateTime.distance(yield* DateTime.now, first.due_at))
    }).pipe(Effect.withSpan("Scheduler.untilDue"), asWorker)
  }
})
