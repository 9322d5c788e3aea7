/** `/ops/task`: one task that deletes invoices; and `/ops/task/replay`: its replay, with the operators' token. */
import { Effect } from "effect"
import { maximumAttempts } from "../../deletions/Task.ts"
import { mostItems, type ShownTask } from "../../deletions/TaskPages.ts"
import { notDeleted } from "../../deletions/Tasks.ts"
import { type Content, h, link } from "../../http/Html.ts"
import * as Format from "../Format.ts"
import { button, id, pairs, section, table } from "../Layout.ts"
import { OperatorStore, Problem } from "../OperatorStore.ts"
import { page as pageOf, type Query } from "../Page.ts"
import * as Change from "./Change.ts"
import { linkTo, outcomeText, stateBadge } from "./Deletions.ts"

const place = "/ops/deletions"

type Item = Readonly<Record<string, string | null>>

const items = (title: string, all: number, rows: ReadonlyArray<Item>, ...fields: ReadonlyArray<string>): Content =>
  rows.length > 0 &&
  h("details", { "data-key": title })(
    h("summary")(`${title}: ${Format.count(all)}, of which at most ${mostItems} are shown`),
    table({
      caption: title,
      rows,
      columns: Object.fromEntries(fields.map((name) => [name, (item: Item) => id(item[name] ?? "any")]))
    })
  )

const notDeletedText = ({ count, items: list, reason }: ReturnType<typeof notDeleted>[number]) =>
  h("div")(`${Format.count(count)} of the ${list === "invoices" ? "invoices" : "lines"}: ${reason}`)

const facts = (task: ShownTask, now: number) => {
  const { id: target, organization_id: organization } = task
  const time = (at: string | null) => at !== null && Format.moment(at, now)
  const trace = /^[\da-f]{2}-([\da-f]{32})-/.exec(task.trace_parent ?? "")?.[1]
  return pairs({
    Organization: id(organization, link(place, { organization })),
    "Idempotency-Key": id(task.idempotency_key),
    "Task id": id(target),
    State: stateBadge(task.state),
    Attempts: `${task.attempts} of ${maximumAttempts}`,
    Received: time(task.received_at),
    "Scheduled for": time(task.scheduled_for),
    "Due, or end of its lease": time(task.due_at),
    "First attempt": time(task.started_at),
    Ended: time(task.finished_at),
    Trace: trace !== undefined && id(trace),
    "Changes by operators": h("a", { href: link("/ops/audit", { organization, target }) })("Audit log"),
    "Outcome, or last error": outcomeText(task) ?? "none so far",
    "Not deleted": task.outcome !== null && notDeleted(task.outcome).map(notDeletedText)
  })
}

const requested = (parameter: Query) =>
  OperatorStore.use(({ task }) => task(parameter("organization") ?? "", parameter("id") ?? ""))

export const page = pageOf(
  place,
  Effect.fnUntraced(function* (parameter) {
    const task = yield* requested(parameter)
    const { id: which, organization_id: organization } = task
    return {
      title: `Deletion ${task.idempotency_key}`,
      view: (now) => [
        task.state === "dead" &&
          h("p", { class: "actions" })(button("Replay…", link("/ops/task/replay", { organization, id: which }))),
        facts(task, now),
        section(
          "items",
          "Items to delete",
          items("Invoices", task.invoices_count, task.invoices, "invoice_id", "clinic_id", "client_id"),
          items("Lines", task.invoice_lines_count, task.invoice_lines, "invoice_line_id", "invoice_id", "clinic_id")
        )
      ]
    }
  }),
  "/ops/task"
)

export const replay = Change.make({
  place,
  path: "/ops/task/replay",
  title: "Replay this deletion",
  subject: requested,
  parameters: ({ id: which, organization_id: organization }) => ({ organization, id: which }),
  about: (task, now) => [
    facts(task, now),
    h("p")(
      `The task becomes due now, with ${maximumAttempts} new attempts, and deletes its items.`,
      " The replay is written to the audit log."
    )
  ],
  back: linkTo,
  make: Effect.fnUntraced(function* (actor, task) {
    const replayed = yield* (yield* OperatorStore).replay(actor, task.organization_id, task.id)
    if (replayed._tag === "Replayed") return { text: `Replaying ${task.id}` }
    const state = replayed._tag === "NotDead" ? replayed.state : "gone"
    return yield* new Problem({ status: 409, message: `This deletion is ${state}. Only a dead one can be replayed.` })
  })
})
