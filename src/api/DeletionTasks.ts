/** The deletion tasks of an organization: the intake schedules them (IntakeApi.ts), and their sender reads the outcomes. */
import { Effect, Record, Schema, Struct } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import * as Errors from "./Errors.ts"
import { annotations } from "./openapi/Document.ts"
import * as Field from "./records/Field.ts"
import * as Filter from "./records/Filter.ts"
import { organization, searchFields } from "./records/Requests.ts"

export const State = Schema.Literals(["scheduled", "running", "completed", "dead", "cancelled"]).annotate({
  description:
    "`scheduled`: waits for its due time or its next attempt. `running`: started by a worker. `completed`: has run; `outcome` counts the deletions. `dead`: every attempt failed; what is not deleted waits for an operator to replay it. `cancelled`: cancelled by an operator; never runs."
})
export type State = typeof State.Type

// The task of the demo data: its key, and the id that follows from the key.
const exampleKey = "demo-delivery-1"
const exampleId = "81b8ad4e-04b1-5faa-8a32-d5097856a418"

const number = (description: string, example = 1) =>
  Schema.Int.annotate({ description, examples: [example] }).check(Schema.isBetween({ minimum: 0, maximum: 2147483647 }))

const count = (description: string, example = 0) =>
  number(description, example).pipe(Schema.withConstructorDefault(Effect.succeed(0)))

const reasons = {
  invoices: {
    not_found: "The organization had no such invoice; it is deleted on arrival, while it is `remembered`.",
    clinic_mismatch: "`clinic_id` is neither the home nor the servicing clinic of the invoice.",
    client_mismatch: "`client_id` is not the client of the invoice.",
    failed: "The database refused to mark the invoice, or one of its lines."
  },
  invoice_lines: {
    not_found: "The organization had no such line; it is deleted on arrival, while it is `remembered`.",
    invoice_mismatch: "`invoice_id` is not the invoice of the line.",
    clinic_mismatch: "`clinic_id` is not the clinic of the line.",
    failed: "The database refused to mark the line."
  }
} as const

/** The number of items of a task that were deleted and, by reason, not deleted. */
export const Outcome = Schema.Struct({
  invoices: Schema.Struct({
    deleted: count("Invoices that were deleted.", 1),
    ...Record.map(Struct.omit(reasons.invoices, ["failed"]), (reason) => count(reason)),
    failed: Schema.optionalKey(number(`${reasons.invoices.failed} Absent if there is none.`))
  }),
  invoice_lines: Schema.Struct({
    deleted: count("Lines that an item names, and that were deleted.", 1),
    ...Record.map(Struct.omit(reasons.invoice_lines, ["failed"]), (reason) => count(reason)),
    failed: Schema.optionalKey(number(`${reasons.invoice_lines.failed} Absent if there is none.`))
  }),
  lines_of_invoices: count("Lines that were deleted with their invoices.", 3)
}).annotate({
  identifier: "DeletionOutcome",
  description: "The number of items that the task deleted, and skipped by reason. Duplicates count once."
})
export type Outcome = typeof Outcome.Type

/** The outcome of a task that names nothing. */
export const noItems = Outcome.make({ invoices: {}, invoice_lines: {} })

/** A task as its sender sees it, without its last error, which may name tables and constraints. */
export const DeletionTask = Schema.Struct({
  task_id: Schema.String.annotate({
    description: "The `task_id` of the delivery's receipt.",
    format: "uuid",
    examples: [exampleId]
  }),
  idempotency_key: Schema.String.annotate({
    description: "The Idempotency-Key of the delivery.",
    examples: [exampleKey]
  }),
  state: State,
  received_at: Field.timestamp("Time at which the delivery was received."),
  scheduled_for: Field.timestamp("Time at which the deletion is due. Results are ordered by it."),
  started_at: Field.dateTime("Start of the first attempt."),
  finished_at: Field.dateTime("Time of completion, or of the last failed attempt."),
  attempts: count("The number of attempts so far, at most 8. In a scheduled task, all of them failed.", 1),
  invoices_count: count("The number of invoices in the delivery, including duplicates.", 1),
  invoice_lines_count: count("The number of invoice lines in the delivery, including duplicates.", 1),
  outcome: Schema.NullOr(Outcome).annotate({
    description: "Counts of deleted and skipped items. Null until the task has run."
  }),
  remembered: count(
    "The number of items that were not found and are deleted when their records arrive, if their other ids match. Drops to 0 when they arrive, expire (after 90 days, unless the operator sets another time) or are undone by an operator."
  )
}).annotate({ identifier: "DeletionTask", description: "A delivery of invoice deletions, and its outcome." })
export type DeletionTask = typeof DeletionTask.Type

const SearchRequest = Schema.Struct({
  ...searchFields,
  state: Filter.equals("state").schema,
  scheduled_since: Filter.since("scheduled_for").schema
}).annotate({ identifier: "InvoiceDeletionsSearchRequest" })
export type SearchRequest = typeof SearchRequest.Type

const GetRequest = Schema.Struct({
  task_id: Filter.optional(Filter.Text("The id of the task. Either this or `idempotency_key` is required.", exampleId)),
  idempotency_key: Filter.optional(Filter.Text("The Idempotency-Key of the delivery.", exampleKey)),
  organization
}).annotate({ identifier: "InvoiceDeletionsGetRequest" })
export type GetRequest = typeof GetRequest.Type

/**
 * `POST /invoice-deletions/search` and `/get`: the deletion tasks of the API key's organization. The group is not named as
 * its paths are: the intake has a group of that name.
 */
export const deletionTasks = HttpApiGroup.make("deletion-tasks")
  .annotateMerge(
    OpenApi.annotations({
      title: "invoice-deletions",
      description: "The outcomes of deliveries to the intake of invoice deletions."
    })
  )
  .add(
    HttpApiEndpoint.post("search", "/invoice-deletions/search", {
      payload: SearchRequest,
      success: Schema.Struct({ body: Schema.Array(DeletionTask) }).annotate({
        identifier: "InvoiceDeletionsPage",
        description: "A page of invoice deletions. The last page has fewer than `limit`."
      }),
      error: Errors.responses(Errors.OrgMismatch, Errors.OutOfRange, Errors.TaskStoreDown)
    }).annotateMerge(
      annotations({
        operation: ["invoice-deletions", "search"],
        summary: "Search invoice deletions",
        description:
          "The organization's deletion tasks, one for each delivery to the intake, ordered by `scheduled_for`, then by `task_id`, ascending. To find items that were not deleted, look for `completed` tasks with other counts in `outcome` than `deleted`.",
        request: { scheduled_since: "2026-01-06T00:00:00Z", limit: 10 }
      })
    ),
    HttpApiEndpoint.post("get", "/invoice-deletions/get", {
      payload: GetRequest,
      success: DeletionTask,
      error: Errors.responses(Errors.OrgMismatch, Errors.TaskIdRequired, Errors.TaskNotFound, Errors.TaskStoreDown)
    }).annotateMerge(
      annotations({
        operation: ["invoice-deletions", "get"],
        summary: "Get one of the invoice deletions",
        description:
          "The outcome of a delivery: the task itself, not wrapped, by its `task_id` or by the Idempotency-Key of the delivery. Set exactly one of them; null counts as absent. A task of another organization gets 404, as does an id that is not a UUID.",
        request: { idempotency_key: exampleKey },
        statuses: { 404: { example: { detail: new Errors.TaskNotFound().detail } } }
      })
    )
  )
