/** The deletion tasks of the current organization, for the sender of its deliveries, and their endpoints. */
import { Array, Context, DateTime, Duration, Effect, Layer, Order, Predicate, Result, Struct } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import * as Uuid from "uuid"
import { CurrentOrganization } from "../api/Authorization.ts"
import { DataApi } from "../api/DataApi.ts"
import { DeletionTask, type GetRequest } from "../api/DeletionTasks.ts"
import { TaskIdRequired, TaskNotFound, TaskStoreDown, type Unauthorized } from "../api/Errors.ts"
import * as Instant from "../api/records/Instant.ts"
import { type Page, toPage } from "../api/records/Requests.ts"
import { TaskDatabase } from "../database/Database.ts"
import { isoTime, decodeRows } from "../database/Columns.ts"
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

  /** The tasks of a condition, in the order of an index. The items of those before the page are not counted. */
  const tasks = (organization: string, isFound: Fragment, bounds = "") =>
    sql`
    select t.*, (
      select count(*)::integer from deletions d
      where d.organization_id = ${organization} and d.task_id = t.task_id and d.verdict = 'not_found' and d.undone_at is null
    ) as remembered
    from (
      select ${sql.literal(columns)} from deletion_tasks t where t.organization_id = ${organization} and ${isFound}
      order by t.scheduled_for, t.id ${sql.literal(bounds)}
    ) t`.unprepared

  return SenderTasks.of({
    search: Effect.fn("SenderTasks.search")(({ scheduledSince, state }, { limit, offset }) => {
      const since = scheduledSince === undefined ? "-infinity" : Instant.toPostgres(scheduledSince)
      const isFound = sql`t.scheduled_for >= ${since}::timestamptz and ${state === undefined ? sql`true` : sql`t.state = ${state}`}`
      // By statistics of a time when the organization had few tasks, the planner would gather and sort all of them.
      const inOrder = sql`select set_config('enable_sort', 'off', true)`
      return read((organization) =>
        sql.withTransaction(Effect.andThen(inOrder, tasks(organization, isFound, `limit ${limit} offset ${offset}`)))
      )
    }),
    get: Effect.fn("SenderTasks.get")(function* (taskId) {
      if (!Uuid.validate(taskId)) return yield* new TaskNotFound()
      const [status] = yield* read((organization) => tasks(organization, sql`t.id = ${taskId}`))
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
