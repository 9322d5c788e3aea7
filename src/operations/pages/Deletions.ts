/**
 * `/ops/deletions`: the tasks that delete invoices, by state and organization, or by their key; and
 * `/ops/deletions/replay`: replays the dead ones that have an organization, a reason or a time in common.
 */
import { Clock, DateTime, Effect, Option } from "effect"
import { State } from "../../api/DeletionTasks.ts"
import { maximumAttempts, totalsOf } from "../../deletions/Task.ts"
import { longestReason, mostCounted, type Task } from "../../deletions/Tasks.ts"
import { h, type Html, link } from "../../http/Html.ts"
import * as Format from "../Format.ts"
import { badge, button, clamped, filterForm, id, small, type Values } from "../Layout.ts"
import { mostReplayed, OperatorStore, Problem } from "../OperatorStore.ts"
import { list as listOf, type Query } from "../Page.ts"
import * as Change from "./Change.ts"

const path = "/ops/deletions"
const replayPath = "/ops/deletions/replay"

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
  above: ({ organization }) =>
    h("p", { class: "actions" })(button("Replay dead deletions…", link(replayPath, { organization }))),
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

const refused = (message: string) => new Problem({ status: 422, message })

/** A time as ISO 8601, of which UTC is the default zone. A text that is none would replay more than was meant. */
const timeOf = (text: string) =>
  Effect.fromOption(
    // Postgres reads no year 0, and none with a sign, as those beyond 9999 have.
    Option.filter(Option.map(DateTime.make(text), DateTime.formatIso), (iso) => /^(?!0000)\d/.test(iso)),
    () => refused(`${text} is not a time such as 2026-11-23T09:30Z.`)
  )

/** The dead tasks that the parameters describe. */
const chosen = Effect.fnUntraced(function* (parameter: Query) {
  const [organization, reason, since] = [parameter("organization"), parameter("reason"), parameter("since")]
  if ((reason ?? "").length > longestReason) {
    return yield* refused(`A reason has at most ${longestReason} characters.`)
  }
  // A task that dies while the operator decides is left alone. Postgres counts the microseconds of this millisecond.
  const until = parameter("before") ?? Format.iso((yield* Clock.currentTimeMillis) + 1)
  const before = yield* timeOf(until)
  const filter = { organization, reason, since: since && (yield* timeOf(since)), before }
  return { filter, count: yield* (yield* OperatorStore).countDead(filter) }
})

export const replay = Change.make({
  place: path,
  path: replayPath,
  title: "Replay these deletions",
  subject: chosen,
  parameters: ({ filter }) => ({ ...filter }),
  about: ({ count, filter }) => [
    filterForm(
      replayPath,
      {
        reason: ["Text in the last error"],
        organization: ["Organization"],
        since: ["Died since (UTC)"],
        before: ["Died before (UTC)"]
      },
      filter
    ),
    h("p")(
      h("strong")(Format.count(count, mostCounted)),
      ` dead ${count === 1 ? "deletion matches" : "deletions match"}.`,
      ` At most ${Format.count(mostReplayed)} are replayed at once, the first to die first.`,
      ` They become due now, with ${maximumAttempts} new attempts. The replay is written to the audit log.`
    )
  ],
  back: ({ filter: { organization } }) => link(path, { state: "dead", organization }),
  make: Effect.fnUntraced(function* (actor, { filter }) {
    const replayed = yield* (yield* OperatorStore).replayDead(actor, filter)
    if (replayed > 0) return { text: `Replaying ${Format.counted(replayed, "deletion")}` }
    return yield* new Problem({ status: 409, message: "No dead deletion matches. Nothing was changed." })
  })
})
