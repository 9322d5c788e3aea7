/**
 * The fair shares of organizations: claims in turns. One statement claims tasks of all organizations; on a distributed
 * database, where no statement may lock rows of several organizations, one for each.
 */
import { randomUUID } from "node:crypto"
import { BigInt, Clock, DateTime, Duration, Effect, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { rowsOf } from "../database/Columns.ts"
import type { Database } from "../database/Database.ts"
import { sharedAttempts, maximumAttempts } from "./Retries.ts"
import * as Task from "./WorkerTasks.ts"
import { earliestDue } from "./OperatorTasks.ts"

/** The number of organizations whose tasks are claimed at once. */
export const concurrency = 4

/**
 * The number of organizations that are visited at once. Anyone can make up organizations whose tasks are not due yet: a
 * visit of one costs a few microseconds, and the due task of another must not wait for many claims.
 */
const mostVisits = 4096

/** The organizations whose turn it is, and the most tasks to claim of each: the first share the places equally. */
const turnOf = (turns: ReadonlyArray<{ readonly organization: string }>, places: number) => {
  const owners = turns.slice(0, places).map(({ organization }) => organization)
  return { owners, each: Math.floor(places / Math.max(1, owners.length)) }
}
type Turn = ReturnType<typeof turnOf>

/** The conditions of the tasks that can be claimed, by their kind. */
const conditions = {
  due: "state = 'scheduled'",
  expired: `state = 'running' and attempts < ${sharedAttempts}`,
  isolated: `state = 'running' and attempts >= ${sharedAttempts}`
} as const
type ClaimKind = keyof typeof conditions

/** The due times that are read. Nothing open was due before `since`. */
interface Span {
  readonly since: DateTime.Utc
  readonly now: DateTime.Utc
}

/** A part of the organizations with open tasks: at most `limit` after one, but for some. */
interface Part extends Span {
  readonly after: string
  readonly limit: number
  readonly except: ReadonlyArray<string>
}

interface Lease extends Span {
  readonly token: string
  readonly leaseEnd: DateTime.Utc
}

type Released = Pick<Task.Claim, "organization" | "taskId" | "token" | "attempt">

const releases = rowsOf(Schema.Struct({ isDone: Schema.Boolean }))
const tasks = rowsOf(Task.TaskId)
const visits = rowsOf(Schema.Struct({ organization: Schema.String, isDue: Schema.Boolean, isLast: Schema.Boolean }))
const taken = rowsOf(Task.Taken)

export const at = (sql: Database, time: DateTime.Utc) => sql`${DateTime.formatIso(time)}::timestamptz`

const statementsOf = (sql: Database) => {
  const open = sql.literal(`
    organization_id, id, due_at, state = 'running' as is_takeover, attempts >= ${maximumAttempts} as is_dead`)

  const columns = sql.literal(`
    t.organization_id as organization, t.id as "taskId", t.idempotency_key as "idempotencyKey",
    t.scheduled_for as "scheduledFor", coalesce(t.claim_token::text, '') as token, t.attempts as attempt,
    t.state = 'dead' as "isDead", t.last_error as reason, open.is_takeover as "isTakeover", open.due_at,
    t.trace_parent as "traceParent"`)

  /** Claims the tasks of `open`, or marks them dead. `owner`: the SQL of their organization. */
  const take = (owner: Fragment, { leaseEnd, now, token }: Lease) => sql`
    taken as (
      update deletion_tasks t set
        state = case when is_dead then 'dead' else 'running' end,
        attempts = case when is_dead then t.attempts else t.attempts + 1 end,
        due_at = case when is_dead then null else ${at(sql, leaseEnd)} end,
        claim_token = case when is_dead then t.claim_token else ${token}::uuid end,
        started_at = coalesce(t.started_at, ${at(sql, now)}),
        finished_at = case when is_dead then ${at(sql, now)} end,
        last_error = case when is_dead then coalesce(t.last_error, ${Task.stopped}) else t.last_error end
      from open where t.organization_id = ${owner} and t.id = open.id
      returning ${columns}
    )
    select * from taken order by due_at`

  // The limit is in the text: a plan for any limit reads the whole table.
  const limited = (limit: number) => sql.literal(`limit ${limit}`)

  const isOpen = (kind: ClaimKind, { now, since }: Span) =>
    sql`due_at >= ${at(sql, since)} and due_at <= ${at(sql, now)} and ${sql.literal(conditions[kind])}`

  /**
   * Due tasks of an organization, oldest first. Only the index for turns has this order: with any other, the planner
   * may read the backlog of another organization, or all tasks that this one ever had.
   */
  const dueOf = (owner: Fragment, { now, since }: Span) => sql`
    (organization_id, due_at) >= (${owner}, ${at(sql, since)}) and (organization_id, due_at) <= (${owner}, ${at(sql, now)})
    and ${sql.literal(conditions.due)} order by organization_id nulls first, due_at`

  return {
    isOpen,

    /** Claims tasks of any organization: due ones of a turn, otherwise those that have been due the longest. */
    ofAll: (limits: Task.ClaimLimits, { each, owners }: Turn, lease: Lease) => {
      const oldest = (kind: ClaimKind) => sql`
        select ${open} from deletion_tasks where ${isOpen(kind, lease)}
        order by due_at ${limited(limits[kind] ?? 0)} for update skip locked`
      // The outer limit is for the planner.
      const inTurn = sql`
        select t.* from unnest(${owners}::text[]) as turn (owner)
        cross join lateral (
          select ${open} from deletion_tasks
          where ${dueOf(sql.literal('turn.owner collate "C"'), lease)} ${limited(each)} for update skip locked
        ) t ${limited(limits.due ?? 0)}`
      return sql`
        with due as (${owners.length > 0 ? inTurn : oldest("due")}), expired as (${oldest("expired")}),
        isolated as (${oldest("isolated")}),
        open as materialized (select * from due union all select * from expired union all select * from isolated),
        ${take(sql.literal("open.organization_id"), lease)}`
    },

    /** Claims the oldest tasks of an organization. */
    ofOne: (kind: ClaimKind, organization: string, limit: number, lease: Lease) => {
      const oldest = kind === "due" ? dueOf(sql`${organization}`, lease) : sql`${isOpen(kind, lease)} order by due_at`
      return sql`
        with open as materialized (
          select ${open} from deletion_tasks
          where organization_id = ${organization} and ${oldest} ${limited(limit)} for update skip locked
        ),
        ${take(sql`${organization}`, lease)}`
    },

    /**
     * Visits organizations with scheduled tasks, by their ids, each with a look into the index, until more than `limit`
     * of them have due ones. Returns those, and the last one where it visited as many as it may.
     */
    visit: ({ after, except, limit, now, since }: Part) => {
      const most = sql.literal(String(mostVisits))
      const next = (last: Fragment) => sql`
        select organization_id, due_at <= ${at(sql, now)} and organization_id <> all (${except}::text[]) as is_due
        from deletion_tasks where ${sql.literal(conditions.due)} and organization_id > ${last} and due_at >= ${at(sql, since)}
        order by organization_id nulls first, due_at limit 1`
      return sql`
        with recursive visited as (
          select *, 1 as visits, is_due::integer as found from (${next(sql`${after}`)}) first
          union all
          select t.*, visited.visits + 1, visited.found + t.is_due::integer from visited
          cross join lateral (${next(sql.literal("visited.organization_id"))}) t
          where visited.visits < ${most} and visited.found <= ${sql.literal(String(limit))}
        )
        select organization_id as organization, is_due as "isDue", visits = ${most} as "isLast" from visited
        where is_due or visits = ${most} order by visits`
    },

    /** Finds organizations with open tasks on all servers: no statement looks into all their indexes. */
    find: (kind: ClaimKind, { after, except, limit, ...span }: Part) => sql`
      select organization_id as organization, true as "isDue", false as "isLast" from deletion_tasks
      where ${isOpen(kind, span)} and organization_id > ${after} and organization_id <> all (${except}::text[])
      group by organization_id order by organization_id ${limited(limit + 1)}`,

    /**
     * Takes the attempt of a claim back, and makes its task due if the claim still holds it. A task that is dead because
     * this claim expired is still held by it. If another worker has claimed the task since, it has counted an attempt on
     * top of this one.
     */
    release: ({ attempt, organization, taskId, token }: Released, dueAt: DateTime.Utc) => {
      const isTask = sql`organization_id = ${organization} and id = ${taskId}`
      return sql`
        with task as materialized (
          select id, coalesce(claim_token = ${token}::uuid, false) as is_held from deletion_tasks
          where ${isTask} for update skip locked
        ),
        released as (
          update deletion_tasks t set
            attempts = t.attempts - 1,
            state = case when is_held then 'scheduled' else t.state end,
            due_at = case when is_held then ${at(sql, dueAt)} else t.due_at end,
            claim_token = case when is_held then null else t.claim_token end,
            finished_at = case when is_held then null else t.finished_at end
          from task where t.organization_id = ${organization} and t.id = task.id
            and (is_held or (t.due_at is not null and t.attempts > ${attempt}))
        )
        select exists (select from task) as "isDone" from deletion_tasks where ${isTask}`
    }
  }
}

const dueTimes = rowsOf(Schema.Struct({ due_at: Schema.NullOr(Schema.DateTimeUtcFromDate) }))

/**
 * Tracks the earliest time at which an open task is due. While a dump is open, Postgres keeps what finished tasks left in
 * its indexes, and each look reads all of it. So a look begins where nothing was open before. A task that comes later is due
 * about now. One from a machine whose clock is behind is found by the next look that reads all: those may take a fiftieth
 * of the time, and come at least once a minute.
 *
 * @param look finds the earliest time since another
 */
export const makeFloor = <E>(look: (since: DateTime.Utc) => Effect.Effect<DateTime.Utc | undefined, E>) => {
  const [slack, interval, rarity] = [Duration.minutes(1), Duration.toNanosUnsafe(Duration.seconds(1)), 50n]
  const longestRest = Duration.toNanosUnsafe(Duration.minutes(1))
  const beginning = DateTime.makeUnsafe(0)
  let [since, fullAt] = [beginning, 0n]
  let lookedAt: bigint | undefined

  const earliest = Effect.gen(function* () {
    // The process may be paused during the look, while others schedule tasks.
    const recent = DateTime.subtractDuration(yield* DateTime.now, slack)
    const started = yield* Clock.monotonicTimeNanos
    const isFull = started >= fullAt
    const dueAt = yield* look(isFull ? beginning : since)
    lookedAt = yield* Clock.monotonicTimeNanos
    if (isFull) fullAt = lookedAt + BigInt.min(rarity * (lookedAt - started), longestRest)
    since = dueAt === undefined ? recent : DateTime.min(dueAt, recent)
    return dueAt
  })
  /** The time before which nothing is open. */
  const current = Effect.gen(function* () {
    const now = yield* Clock.monotonicTimeNanos
    lookedAt ??= now
    if (now >= lookedAt + interval) yield* earliest
    return since
  })
  return { earliest, current }
}

/**
 * Claims tasks over a database, and marks those dead that have no attempt left.
 *
 * While every due task fits into a claim, the oldest go first. A full claim may leave a backlog: until nothing is due,
 * organizations are then visited in the order of their ids, and a claim shares its places equally among the next ones. A
 * visit is one look into an index, however long the backlog of an organization is. A distributed database always takes
 * turns.
 *
 * @param run runs a statement of the worker
 */
export const make = <E>(sql: Database, run: <A>(statement: Effect.Effect<A, SqlError>) => Effect.Effect<A, E>) => {
  const statements = statementsOf(sql)
  const isDistributed = () => sql.distribution.isDistributed() !== false
  /** The tokens of claims whose response was lost. They may have been made. */
  const lost = new Set<string>()
  const floor = makeFloor((since) =>
    Effect.map(
      run(dueTimes(sql.unsafe(earliestDue("$1"), [DateTime.formatIso(since)]))),
      ([row]) => row?.due_at ?? undefined
    )
  )
  let isBehind = false
  /** The last organization that had its turn. */
  let place = ""

  const release = Effect.fn("Scheduler.release")(function* (claim: Released, after = Duration.zero) {
    const dueAt = DateTime.addDuration(yield* DateTime.now, after)
    const [{ isDone } = { isDone: true }] = yield* run(releases(statements.release(claim, dueAt)))
    return isDone
  })

  const releaseLost = Effect.gen(function* () {
    for (const token of lost) {
      const held = sql`
        select organization_id as organization, id as "taskId" from deletion_tasks
        where state = 'running' and claim_token = ${token}::uuid`
      // Those that others hold are skipped: their leases end.
      for (const task of yield* run(tasks(held))) yield* release({ ...task, token, attempt: maximumAttempts })
      lost.delete(token)
    }
  })

  // In this order: a lease begins after a look, which may take longer than it.
  const currentSpan = Effect.all({ since: floor.current, now: DateTime.now })

  /** Claims with a token of its own, which is kept if there is no response. */
  const claimWith = (
    duration: Duration.Duration,
    span: Span,
    statement: (lease: Lease) => Effect.Effect<ReadonlyArray<unknown>, SqlError>
  ) =>
    Effect.suspend(() => {
      const token = randomUUID()
      const claiming = taken(statement({ ...span, token, leaseEnd: DateTime.addDuration(span.now, duration) }))
      return Effect.tapError(run(claiming), () => Effect.sync(() => lost.add(token)))
    })

  /** Claims the tasks of each organization by itself. Claims that succeed count, even if others fail. */
  const perOrganization = Effect.fnUntraced(function* (
    limits: Task.ClaimLimits,
    duration: Duration.Duration,
    span: Span,
    due: Turn
  ) {
    const turns: Array<readonly [ClaimKind, Turn]> = [["due", due]]
    for (const kind of ["expired", "isolated"] as const) {
      const { [kind]: limit = 0 } = limits
      if (limit === 0) continue
      const waiting = yield* run(visits(statements.find(kind, { ...span, after: "", limit, except: [] })))
      turns.push([kind, turnOf(waiting, limit)])
    }
    const all = turns.flatMap(([kind, { each, owners }]) =>
      owners.map((owner) => claimWith(duration, span, (lease) => statements.ofOne(kind, owner, each, lease)))
    )
    const [claims, failures] = yield* Effect.partition(all, (each) => each, { concurrency })
    return failures[0] !== undefined && claims.length === 0 ? yield* Effect.fail(failures[0]) : claims.flat()
  })

  /** The turn of the next organizations that have due tasks, but for some. */
  const nextTurn = Effect.fnUntraced(function* (limit: number, span: Span, except: ReadonlySet<string> = new Set()) {
    const part = { ...span, after: place, limit, except: [...except] }
    const visited = yield* run(visits(isDistributed() ? statements.find("due", part) : statements.visit(part)))
    const due = visited.filter(({ isDue }) => isDue)
    const last = due.length > limit ? due[limit - 1] : visited.find(({ isLast }) => isLast)
    place = last?.organization ?? ""
    return turnOf(due, limit)
  })

  const claim = Effect.fnUntraced(function* (limits: Task.ClaimLimits, duration: Duration.Duration) {
    yield* sql.distribution.refresh
    yield* releaseLost
    const { due = 0, except } = limits
    const span = yield* currentSpan
    const inTurns = due > 0 && (except !== undefined || isBehind || isDistributed())
    const turn = inTurns ? yield* nextTurn(due, span, except) : turnOf([], 0)
    const isOfNone = except !== undefined && turn.owners.length === 0
    const wanted = isOfNone ? { ...limits, due: 0 } : limits
    const claimed = yield* isDistributed()
      ? perOrganization(wanted, duration, span, turn)
      : claimWith(duration, span, (lease) => statements.ofAll(wanted, turn, lease))
    if (due > 0 && except === undefined) isBehind = claimed.length >= (inTurns ? 1 : due)
    return claimed
  })

  return {
    claim,
    release,
    /** The earliest time at which a task is due or its lease ends; undefined if no task is open. */
    earliestDue: floor.earliest,
    /** True if the lease of a task has ended that is claimed isolated. */
    hasIsolated: Effect.flatMap(currentSpan, (span) =>
      Effect.map(
        run(sql`select where exists (select from deletion_tasks where ${statements.isOpen("isolated", span)})`),
        ({ length }) => length > 0
      )
    )
  }
}
