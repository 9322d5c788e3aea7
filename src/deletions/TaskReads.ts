/** Reads the deletion tasks of the current organization, for the sender of its deliveries. */
import { Array, Context, DateTime, Effect, Layer, Order, Struct } from "effect"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import type { DeletionTask } from "../api/DeletionTasks.ts"
import { TaskNotFound, type TaskStoreDown, type Unauthorized } from "../api/Errors.ts"
import * as Instant from "../api/records/Instant.ts"
import type { Page } from "../records/Repository.ts"
import * as Postgres from "./TaskReadsPostgres.ts"

/** A task, and whose it is. */
export interface OwnedTask extends DeletionTask {
  readonly organization_id: string
}

const inOrder = Order.combine(
  Order.mapInput(DateTime.Order, (task: OwnedTask) => task.scheduled_for),
  Order.mapInput(Order.String, (task: OwnedTask) => task.task_id)
)

const instantOf = (time: DateTime.Utc) => Instant.fromMillis(DateTime.toEpochMillis(time))

export class TaskReads extends Context.Service<
  TaskReads,
  {
    /** A page of the tasks, ordered by the time they are scheduled for, then by id. */
    readonly search: (
      criteria: Postgres.Criteria,
      page: Page
    ) => Effect.Effect<ReadonlyArray<DeletionTask>, Unauthorized | TaskStoreDown, CurrentOrganization>
    /** A task by its id, a UUID in any case. */
    readonly get: (
      taskId: string
    ) => Effect.Effect<DeletionTask, Unauthorized | TaskNotFound | TaskStoreDown, CurrentOrganization>
  }
>()("practice-data/deletions/TaskReads") {
  /** Tasks in the table `deletion_tasks`. */
  static readonly layer = Layer.effect(TaskReads, Postgres.make)

  /** The fake: tasks of any number of organizations, held in memory. */
  static readonly layerMemory = (tasks: ReadonlyArray<OwnedTask> = []) => {
    const ordered = Array.sort(tasks, inOrder)
    const owned = Effect.map(CurrentOrganization.id, (id) => ordered.filter((task) => task.organization_id === id))
    const shown = Struct.omit<OwnedTask, ["organization_id"]>(["organization_id"])
    return Layer.succeed(
      TaskReads,
      TaskReads.of({
        search: ({ scheduledSince, states }, { limit, offset }) =>
          Effect.map(owned, (all) =>
            all
              .filter(
                ({ scheduled_for, state }) =>
                  states.includes(state) && (scheduledSince === undefined || instantOf(scheduled_for) >= scheduledSince)
              )
              .slice(offset, offset + limit)
              .map(shown)
          ),
        get: (taskId) =>
          Effect.flatMap(owned, (all) => {
            const task = all.find(({ task_id }) => task_id === taskId.toLowerCase())
            return task === undefined ? Effect.fail(new TaskNotFound()) : Effect.succeed(shown(task))
          })
      })
    )
  }
}
