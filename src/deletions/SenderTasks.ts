/** The deletion tasks of the current organization, for the sender of its deliveries, and their endpoints. */
import { Array, Context, DateTime, Duration, Effect, Layer, Order, Predicate, Result, Struct } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { SqlError } from "effect/sql/SqlError"
import * as Uuid from "uuid"
import { CurrentOrganization } from "../api/Authorization.ts"
import { DataApi } from "../api/DataApi.ts"
import { DeletionTask, type GetRequest, State } from "../api/DeletionTasks.ts"
import { TaskIdRequired, TaskNotFound, TaskStoreDown, type Unauthorized } from "../api/Errors.ts"
import * as Instant from "../api/records/Instant.ts"
import { type Page, toPage } from "../api/records/Requests.ts"
import { inOrder, TaskDatabase } from "../database/Database.ts"
import { isoTime, decodeRows, unionAll } from "../database/Columns.ts"
import { makeTaskId } from "./Delivery.ts"

/** A task of an organization. */
export type OwnedTask = DeletionTask & { readonly organization_id: string }

/** The criteria of a search: tasks in a state, scheduled at or after a time. No task is in an unknown state. */
export interface Criteria {
  readonly state?: string | undefined
  readonly scheduledSince?: Instant.Instant | undefined
}

const ownTasks = decodeRows(DeletionTask)

// The role of the data API may read no others.
const columns = [
  "t.id as task_id, t.idempotency_key, t.state",
  ...["t.received_at", "t.scheduled_for", "t.started_at", "t.finished_at"].map(isoTime),
  "t.attempts, t.invoices_count, t.invoice_lines_count, t.outcome"
].join(", ")

/** Has the planner of a transaction read tasks in the order of their index, instead of gathering and sorting them. */
const inOrderOnly = `select ${Object.entries({ ...inOrder, enable_sort: "off" })
  .map(([name, value]) => `set_config('${name}', '${value}', true)`)
  .join(", ")}`

const make = Effect.gen(function* () {
  const sql = yield* TaskDatabase

  /**
   * Reads tasks of the current organization, over one connection at a time: callers that poll for an outcome must not
   * delay deliveries.
   */
  const read = (statements: (organization: string) => Effect.Effect<ReadonlyArray<unknown>, SqlError>) =>
    Effect.flatMap(CurrentOrganization.id, (organization) =>
      sql.run(
        {
          key: `organization ${organization}, reading its tasks`,
          within: Duration.seconds(5),
          unavailable: TaskStoreDown.from
        },
        ownTasks(statements(organization))
      )
    )

  const task = (organization: string) => sql`
    ${sql.literal(columns)}, (
      select count(*)::integer from deletions d
      where d.organization_id = ${organization} and d.task_id = t.id and d.verdict = 'not_found' and d.undone_at is null
    ) as remembered
    from deletion_tasks t where t.organization_id = ${organization}`

  /**
   * The tasks of each state in order, merged, since in the index the state comes before the time. Rows before the page
   * are skipped in the index alone.
   */
  const page = (organization: string, { scheduledSince, state }: Criteria, { limit, offset }: Page) => {
    const since = scheduledSince === undefined ? "-infinity" : Instant.toPostgres(scheduledSince)
    const parts = (state === undefined ? State.literals : [state]).map(
      (each) => sql`(
        select scheduled_for, id from deletion_tasks
        where organization_id = ${organization} and state = ${each} and scheduled_for >= ${since}::timestamptz
        order by scheduled_for, id ${sql.literal(`limit ${limit + offset}`)}
      )`
    )
    // `limit 1` has the planner look tasks up one by one, however few it takes the organization to have.
    return sql`
      select t.* from (
        select * from (${unionAll(parts)}) found
        order by scheduled_for, id ${sql.literal(`limit ${limit} offset ${offset}`)}
      ) p
      cross join lateral (select ${task(organization)} and t.id = p.id limit 1) t
      order by p.scheduled_for, p.id`.unprepared
  }

  return SenderTasks.of({
    search: Effect.fn("SenderTasks.search")((criteria, bounds) =>
      read((organization) =>
        sql.withTransaction(Effect.andThen(sql.unsafe(inOrderOnly), page(organization, criteria, bounds)))
      )
    ),
    get: Effect.fn("SenderTasks.get")(function* (taskId) {
      if (!Uuid.validate(taskId)) return yield* new TaskNotFound()
      const [status] = yield* read((organization) => sql`select ${task(organization)} and t.id = ${taskId}`)
      return status ?? (yield* new TaskNotFound())
    })
  })
})

const byTime = Order.combine(
  Order.mapInput(DateTime.Order, (task: OwnedTask) => task.scheduled_for),
  Order.mapInput(Order.String, (task: OwnedTask) => task.task_id)
)

export class SenderTasks extends Context.Service<
  SenderTasks,
  {
    /** A page of the tasks, ordered by `scheduled_for`, then by id. */
    readonly search: (
      criteria: Criteria,
      page: Page
    ) => Effect.Effect<ReadonlyArray<DeletionTask>, Unauthorized | TaskStoreDown, CurrentOrganization>
    /** A task by its id, a UUID in any case. */
    readonly get: (
      taskId: string
    ) => Effect.Effect<DeletionTask, Unauthorized | TaskNotFound | TaskStoreDown, CurrentOrganization>
  }
>()("practice-data/deletions/SenderTasks") {
  /** Tasks in the table `deletion_tasks`. */
  static readonly layer = Layer.effect(SenderTasks, make)

  /** The fake: tasks of any number of organizations, in memory. */
  static readonly layerMemory = (tasks: ReadonlyArray<OwnedTask> = []) => {
    const owned = Effect.map(CurrentOrganization.id, (id) =>
      Array.sort(tasks, byTime)
        .filter((task) => task.organization_id === id)
        .map(Struct.omit(["organization_id"]))
    )
    return Layer.succeed(
      SenderTasks,
      SenderTasks.of({
        search: ({ scheduledSince = 0n, state }, { limit, offset }) =>
          Effect.map(owned, (all) =>
            all
              .filter((task) => (state ?? task.state) === task.state)
              .filter((task) => Instant.fromMillis(DateTime.toEpochMillis(task.scheduled_for)) >= scheduledSince)
              .slice(offset, offset + limit)
          ),
        get: (taskId) =>
          Effect.map(
            owned,
            Array.findFirst(({ task_id }) => task_id === taskId.toLowerCase())
          ).pipe(Effect.flatMap(Effect.fromOption(() => new TaskNotFound())))
      })
    )
  }
}

/** The id of the requested task. That of a delivery is derived from its key. */
const requestedTaskId = Effect.fnUntraced(function* ({ idempotency_key, task_id }: GetRequest) {
  const [given, ...others] = [task_id, idempotency_key].filter(Predicate.isNotNullish)
  if (given === undefined || others.length > 0 || given.trim() === "") return yield* new TaskIdRequired()
  return task_id ?? makeTaskId(yield* CurrentOrganization.id, given)
})

export const tasks = HttpApiBuilder.group(DataApi, "deletion-tasks", (handlers) =>
  Effect.map(SenderTasks, (reads) =>
    handlers.handleAll({
      search: Effect.fnUntraced(function* ({ payload }) {
        yield* CurrentOrganization.check(payload)
        const { scheduled_since, state } = payload
        const scheduledSince =
          scheduled_since == null ? undefined : Result.getOrUndefined(Instant.parse(scheduled_since))
        return { body: yield* reads.search({ state: state ?? undefined, scheduledSince }, yield* toPage(payload)) }
      }),
      get: Effect.fnUntraced(function* ({ payload }) {
        yield* CurrentOrganization.check(payload)
        return yield* reads.get(yield* requestedTaskId(payload))
      })
    })
  )
)
