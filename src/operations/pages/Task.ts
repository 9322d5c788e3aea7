/** `/ops/task`: one task that deletes invoices; and `/ops/task/replay`: its replay, with the operators' token. */
import { Effect } from "effect"
import { maximumAttempts, notDeleted } from "../../deletions/Task.ts"
import type { Task } from "../../deletions/Tasks.ts"
import { h, link } from "../../http/Html.ts"
import * as Format from "../Format.ts"
import { button, id, pairs } from "../Layout.ts"
import { OperatorStore, Problem } from "../OperatorStore.ts"
import { page as pageOf, type Query } from "../Page.ts"
import * as Change from "./Change.ts"
import { linkTo, outcomeText, stateBadge } from "./Deletions.ts"

const place = "/ops/deletions"

const notDeletedText = ({ count, items: list, reason }: ReturnType<typeof notDeleted>[number]) =>
  h("div")(`${Format.count(count)} of the ${list === "invoices" ? "invoices" : "lines"}: ${reason}`)

const facts = (task: Task, now: number) => {
  const { id: target, organization_id: organization } = task
  const time = (at: string | null) => at !== null && Format.moment(at, now)
  const trace = /^[\da-f]{2}-([\da-f]{32})-/.exec(task.trace_parent ?? "")?.[1]
  return pairs({
    Organization: id(organization, link(place, { organization })),
    "Idempotency-Key": id(task.idempotency_key),
    "Task id": id(target),
    State: stateBadge(task.state),
    Names: `${Format.counted(task.invoices_count, "invoice")} and ${Format.counted(task.invoice_lines_count, "line")}`,
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
        facts(task, now)
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
