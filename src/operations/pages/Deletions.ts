/** `/ops/deletions`: the tasks that delete invoices, by state and organization, or by their key. */
import { Effect, Result } from "effect"
import { State } from "../../api/DeletionTasks.ts"
import { mostOrganizations } from "../../deletions/TaskPages.ts"
import { mostCounted, type Task, type TaskCounts, type TaskFilter, totalsOf } from "../../deletions/Tasks.ts"
import { type Content, h, type Html, link } from "../../http/Html.ts"
import * as Format from "../Format.ts"
import { badge, button, clamped, filterForm, id, nextPage, small, table, tabs } from "../Layout.ts"
import { OperatorStore, type TaskPage } from "../OperatorStore.ts"
import * as Page from "../Page.ts"

const path = "/ops/deletions"

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

const orderOf = ({ organization, state }: TaskFilter) => {
  if (organization !== undefined) return "Latest scheduled time first."
  if (state === "dead") return "Latest to die first."
  return state === "scheduled" || state === "running" ? "Next due first." : "Latest scheduled time first."
}

const tasks = ({ isPartial, rows }: TaskPage, state: State | undefined, empty: string, now: number): Content => [
  isPartial &&
    h("p", { class: "note warning" })(
      `Only ${Format.count(mostOrganizations)} organizations were searched, registered ones first.`,
      " Enter an organization to see all of its deletions."
    ),
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
]

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
    const of = organization === undefined ? "" : ` of ${organization}`
    const none =
      after === undefined ? `There is no ${state ?? ""} deletion${of}.`.replace("  ", " ") : "There are no more."
    const notFound = `No deletion${of} has the Idempotency-Key or id ${search}. Enter the whole key; case matters.`
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
      state === "dead" &&
        h("p", { class: "actions" })(button("Replay several…", link(`${path}/replay`, { organization }))),
      Page.shownOr(found, (shown) => [
        h("p")(small(search === undefined ? orderOf(filter) : "Search result.")),
        tasks(shown, state, search === undefined ? none : notFound, now),
        nextPage(path, filter, shown.next)
      ])
    ]
  })
)
