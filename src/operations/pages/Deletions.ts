/** `/ops/deletions`: the tasks that delete invoices, by state and organization, or by their key. */
import { Effect } from "effect"
import { State } from "../../api/DeletionTasks.ts"
import { type Task, totalsOf } from "../../deletions/Tasks.ts"
import { type Html, link } from "../../http/Html.ts"
import * as Format from "../Format.ts"
import { badge, clamped, id, small, type Values } from "../Layout.ts"
import { OperatorStore } from "../OperatorStore.ts"
import { list as listOf } from "../Page.ts"

const path = "/ops/deletions"

const kinds = { scheduled: "quiet", running: "warning", completed: "fine", dead: "problem" } as const

export const stateBadge = (state: State): Html => badge(kinds[state], state)

export const linkTo = ({ id: task, organization_id }: Pick<Task, "id" | "organization_id">): string =>
  link("/ops/task", { organization: organization_id, id: task })

export const outcomeText = ({ last_error, outcome }: Task) => {
  if (outcome === null) return last_error
  const { invoices, lines, notDeleted } = totalsOf(outcome)
  const done = `${Format.counted(invoices, "invoice")} and ${Format.counted(lines, "line")} deleted`
  return notDeleted === 0 ? done : `${done}, ${Format.count(notDeleted)} not`
}

export const list = listOf<Task>({
  place: path,
  filters: {
    q: ["Whole Idempotency-Key or task id"],
    organization: ["Organization"],
    state: ["State", ...State.literals]
  },
  read: Effect.fnUntraced(function* ({ organization, q, state: given }: Values) {
    const store = yield* OperatorStore
    const state = State.literals.find((each) => each === given)
    return yield* q === undefined ? store.tasks({ state, organization }) : store.findTasks(q, organization)
  }),
  columns: (now) => ({
    "Idempotency-Key": (task) => id(task.idempotency_key, linkTo(task)),
    State: ({ attempts, state }) => [
      stateBadge(state),
      " ",
      attempts > 0 && small(Format.counted(attempts, "attempt"))
    ],
    Organization: ({ organization_id: organization }) => id(organization, link(path, { organization })),
    "Scheduled for": ({ scheduled_for }) => Format.moment(scheduled_for, now),
    "Due, or ended": ({ due_at, finished_at }) => Format.moment(due_at ?? finished_at, now),
    "Outcome, or last error": (task) => clamped(outcomeText(task))
  })
})
