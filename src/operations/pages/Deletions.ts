/**
 * `/ops/deletions`: the tasks that delete invoices, by state and organization, or by their key; and
 * `/ops/deletions/replay`: replays the dead ones that have an organization, a reason or a time in common.
 */
import { Clock, DateTime, Effect, Result } from "effect"
import { State } from "../../api/DeletionTasks.ts"
import { maximumAttempts } from "../../deletions/Task.ts"
import {
  type DeadFilter,
  longestReason,
  mostCounted,
  mostOrganizations,
  type Task,
  type TaskCounts,
  type TaskFilter,
  totalsOf
} from "../../deletions/Tasks.ts"
import { type Content, h, type Html, link } from "../../http/Html.ts"
import * as Format from "../Format.ts"
import { badge, button, clamped, filterForm, id, nextPage, small, table, tabs } from "../Layout.ts"
import { mostReplayed, OperatorStore, Problem } from "../OperatorStore.ts"
import * as Page from "../Page.ts"
import * as Change from "./Change.ts"

const path = "/ops/deletions"
const replayPath = "/ops/deletions/replay"

const kinds = { scheduled: "quiet", running: "warning", completed: "fine", dead: "problem" } as const

export const stateBadge = (state: State): Html => badge(kinds[state], state)

export const linkTo = ({ id: task, organization_id }: Pick<Task, "id" | "organization_id">): string =>
  link("/ops/task", { organization: organization_id, id: task })

const stateTabs = (counts: TaskCounts | undefined, { organization, state: current }: TaskFilter) => {
  const countOf = (state: State | undefined) =>
    counts === undefined || state === undefined || state === "completed"
      ? ""
      : ` ${Format.count(counts[state], mostCounted)}`
  const all = [undefined, ...State.literals].map((state) => ({
    text: `${state ?? "all"}${countOf(state)}`,
    href: link(path, { state, organization }),
    isCurrent: state === current
  }))
  return h("nav", { "aria-label": "States" })(tabs(all))
}

const outcomeText = ({ last_error, outcome }: Task) => {
  if (outcome === null) return last_error
  const { invoices, lines, notDeleted } = totalsOf(outcome)
  const done = `${Format.counted(invoices, "invoice")} and ${Format.counted(lines, "line")} deleted`
  return notDeleted === 0 ? done : `${done}, ${Format.count(notDeleted)} not`
}

const tasks = (rows: ReadonlyArray<Task>, state: State | undefined, empty: string, now: number): Content =>
  table<Task>({
    caption: "Deletion tasks",
    rows,
    key: (task) => `${task.organization_id} ${task.id}`,
    empty,
    columns: {
      "Idempotency-Key": (task) => id(task.idempotency_key, linkTo(task)),
      State: (task) => [
        stateBadge(task.state),
        " ",
        task.attempts > 0 && small(Format.counted(task.attempts, "attempt"))
      ],
      Organization: ({ organization_id: of }) => id(of, link(path, { state, organization: of })),
      "Scheduled for": ({ scheduled_for }) => Format.moment(scheduled_for, now),
      "Due, or ended": ({ due_at, finished_at }) => Format.moment(due_at ?? finished_at, now),
      "Outcome, or last error": (task) => clamped(outcomeText(task))
    }
  })

export const page = Page.page(
  path,
  Effect.fnUntraced(function* (parameter) {
    const store = yield* OperatorStore
    const organization = parameter("organization")
    const state = State.literals.find((each) => each === parameter("state"))
    const filter = { state, organization }
    const [search, after] = [parameter("q"), parameter("after")]
    const list = search === undefined ? store.tasks(filter, after) : store.findTasks(search, organization)
    const [counts, found] = yield* Effect.all([Page.inTime(store.taskCounts), Page.inTime(list)], { concurrency: 2 })
    const empty =
      search === undefined
        ? "There are no such deletions."
        : `No deletion has the Idempotency-Key or id ${search}. Enter the whole key; case matters.`
    return (now) => [
      stateTabs(Result.getOrUndefined(counts), filter),
      filterForm(
        path,
        [
          ["q", "Idempotency-Key or task id", search],
          ["organization", "Organization", organization]
        ],
        link(path, { state }),
        state !== undefined && h("input", { type: "hidden", name: "state", value: state })()
      ),
      state === "dead" && h("p", { class: "actions" })(button("Replay several…", link(replayPath, { organization }))),
      Page.shownOr(found, (shown) => [
        search !== undefined &&
          organization === undefined &&
          h("p", { class: "note" })(
            `Searches ${Format.count(mostOrganizations)} registered organizations at most.`,
            " Enter an organization to search another."
          ),
        tasks(shown.rows, state, empty, now),
        nextPage(path, filter, shown.next)
      ])
    ]
  })
)

const refused = (message: string) => new Problem({ status: 422, message })

/** A time as ISO 8601, of which UTC is the default zone. A text that is none would replay more than was meant. */
const timeOf = (text: string | undefined) =>
  text === undefined
    ? Effect.undefined
    : Effect.fromOption(DateTime.make(text), () => refused(`${text} is not a time such as 2026-11-23T09:30Z.`)).pipe(
        Effect.map(DateTime.formatIso)
      )

/** The dead tasks that the parameters describe. */
const chosen = Effect.fnUntraced(function* (parameter: Page.Query) {
  const reason = parameter("reason")
  if (reason !== undefined && reason.length > longestReason) {
    return yield* refused(`A reason has at most ${longestReason} characters.`)
  }
  const [since, before] = [yield* timeOf(parameter("since")), yield* timeOf(parameter("before"))]
  const given = { organization: parameter("organization"), reason, since, before }
  // A task that dies while the operator decides is left alone. Postgres counts the microseconds of this millisecond.
  const filter = { ...given, before: before ?? Format.iso((yield* Clock.currentTimeMillis) + 1) }
  return { given, filter, count: yield* (yield* OperatorStore).countDead(filter) }
})

const fields = ({ before, organization, reason, since }: DeadFilter) =>
  [
    ["reason", "Text in the last error", reason],
    ["organization", "Organization", organization],
    ["since", "Died since (UTC)", since],
    ["before", "Died before (UTC)", before]
  ] as const

export const replay = Change.make({
  place: path,
  path: replayPath,
  title: "Replay dead deletions",
  subject: chosen,
  about: ({ count, given }) => [
    filterForm(replayPath, fields(given), replayPath),
    h("p")(
      h("strong")(Format.count(count, mostCounted)),
      ` dead ${count === 1 ? "deletion matches" : "deletions match"}.`,
      count > mostReplayed && ` At most ${Format.count(mostReplayed)} are replayed at once, the first to die first.`,
      ` They become due now, with ${maximumAttempts} new attempts. The replay is written to the audit log.`
    )
  ],
  hidden: ({ filter }) => ({ ...filter }),
  button: "Replay these deletions",
  cancel: ({ given: { organization } }) => link(path, { state: "dead", organization }),
  make: Effect.fnUntraced(function* (actor, { filter }) {
    const replayed = yield* (yield* OperatorStore).replayDead(actor, filter)
    if (replayed === 0) {
      return yield* new Problem({ status: 409, message: "No dead deletion matches. Nothing was changed." })
    }
    return {
      text: `Replaying ${Format.counted(replayed, "deletion")}`,
      page: link(path, { state: "scheduled", organization: filter.organization })
    }
  })
})
