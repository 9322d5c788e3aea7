/** Reads deletion tasks from the table `deletion_tasks`. */
import { Array, Duration, Effect, Record, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { join } from "effect/sql/Statement"
import * as Uuid from "uuid"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { DeletionTask, type State } from "../api/DeletionTasks.ts"
import { TaskNotFound, TaskStoreDown } from "../api/Errors.ts"
import * as Instant from "../api/records/Instant.ts"
import { atMost } from "../database/Admission.ts"
import { inOrder, TaskDatabase } from "../database/Database.ts"
import { isoTime } from "../database/Time.ts"
import type { Page } from "../records/Repository.ts"

/** Which tasks a search asks for. */
export interface Criteria {
  /** Tasks in one of these states. */
  readonly states: ReadonlyArray<State>
  /** Tasks that were to run at or after this. */
  readonly scheduledSince?: Instant.Instant | undefined
}

const unionAll = join(" union all ", false)

// The role of the data API may read no others.
const columns = [
  "t.id as task_id, t.idempotency_key, t.state",
  ...["t.received_at", "t.scheduled_for", "t.started_at", "t.finished_at"].map(isoTime),
  "t.attempts, t.invoices_count, t.invoice_lines_count, t.outcome"
].join(", ")

/** Has the planner of a transaction read tasks in the order of their index, and never gather and sort them. */
const inOrderOnly = `select ${Record.toEntries({ ...inOrder, enable_sort: "off" })
  .map(([name, value]) => `set_config('${name}', '${value}', true)`)
  .join(", ")}`

const decode = Schema.decodeUnknownEffect(Schema.Array(DeletionTask))

/** The reads, over the task database. */
export const make = Effect.gen(function* () {
  const sql = yield* TaskDatabase

  /**
   * Reads tasks of the current organization, for which it takes one connection at a time: those who wait for the outcome
   * of a delivery keep neither other organizations' deliveries waiting nor their own. A row that does not decode is a bug.
   */
  const read = (statements: (organization: string) => Effect.Effect<ReadonlyArray<unknown>, SqlError>) =>
    Effect.flatMap(CurrentOrganization.id, (organization) =>
      sql.run(
        {
          key: `organization ${organization}, reading its tasks`,
          share: atMost(1),
          within: Duration.seconds(5),
          unavailable: TaskStoreDown.from
        },
        statements(organization)
      )
    ).pipe(
      Effect.flatMap((rows) => decode(rows)),
      Effect.catchTag("SchemaError", Effect.die)
    )

  /**
   * The tasks of each state in order, merged, since in the index the state comes before the time. What is skipped is
   * skipped in the index alone, and only the tasks of the page are read.
   */
  const page = (organization: string, { scheduledSince, states }: Criteria, { limit, offset }: Page) => {
    const since =
      scheduledSince === undefined
        ? sql``
        : sql` and scheduled_for >= ${Instant.toPostgres(scheduledSince)}::timestamptz`
    const parts = states.map(
      (state) => sql`(
        select scheduled_for, id from deletion_tasks
        where organization_id = ${organization} and state = ${state}${since}
        order by scheduled_for, id ${sql.literal(`limit ${limit + offset}`)}
      )`
    )
    // Looked up one by one (`limit 1` leaves the planner no other way), however few tasks it takes the organization to have.
    return sql`
      select t.* from (
        select * from (${unionAll(parts)}) found
        order by scheduled_for, id ${sql.literal(`limit ${limit} offset ${offset}`)}
      ) p
      cross join lateral (
        select ${sql.literal(columns)} from deletion_tasks t
        where t.organization_id = ${organization} and t.id = p.id limit 1
      ) t
      order by p.scheduled_for, p.id`.unprepared
  }

  return {
    search: Effect.fn("TaskReads.search")(function* (criteria: Criteria, bounds: Page) {
      if (Array.isReadonlyArrayEmpty(criteria.states)) return []
      return yield* read((organization) =>
        sql.withTransaction(Effect.andThen(sql.unsafe(inOrderOnly), page(organization, criteria, bounds)))
      )
    }),
    get: Effect.fn("TaskReads.get")(function* (taskId: string) {
      if (!Uuid.validate(taskId)) return yield* new TaskNotFound()
      const [task] = yield* read(
        (organization) => sql`
          select ${sql.literal(columns)} from deletion_tasks t
          where t.organization_id = ${organization} and t.id = ${taskId}`
      )
      return task ?? (yield* new TaskNotFound())
    })
  }
})
