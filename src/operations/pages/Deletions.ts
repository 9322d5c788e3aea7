/** `/ops/deletions`: the tasks that delete invoices, by state and organization, or by their key. */
import { Effect, Result } from "effect"
import { State } from "../../api/DeletionTasks.ts"
import { mostOrganizations, type TaskFilter } from "../../deletions/TaskPages.ts"
import { mostCounted, type Task, totalsOf } from "../../deletions/Tasks.ts"
import { type Content, h, type Html, link } from "../../http/Html.ts"
import * as Format from "../Format.ts"
import { badge, clamped, filterForm, id, nextPage, small, table, tabs } from "../Layout.ts"
import { OperatorStore, type TaskCounts, type TaskPage, type Unreadable } from "../OperatorStore.ts"
import { inTime, page, shownOr } from "../Page.ts"

const path = "/ops/deletions"

const kinds = { scheduled: "quiet", running: "warning", completed: "fine", dead: "problem" } as const

/** The state of a task. */
export const stateBadge = (state: State): Html => badge(kinds[state], state)

/** The path of the page of a task. */
export const linkTo = ({ id: task, organization_id }: Pick<Task, "id" | "organization_id">): string =>
  link("/ops/task", { organization: organization_id, id: task })

interface Data {
  readonly filter: TaskFilter
  /** The id or Idempotency-Key that is searched for. */
  readonly search: string | undefined
  readonly isContinued: boolean
  readonly counts: Result.Result<TaskCounts, Unreadable>
  readonly list: Result.Result<TaskPage, Unreadable>
}

const stateTabs = ({ counts, filter }: Data) => {
  const known = Result.getOrUndefined(counts)
  const countOf = (state: State | undefined) => {
    if (known === undefined || state === "completed") return ""
    if (state !== undefined) return ` ${Format.count(known[state], mostCounted)}`
    return known.estimated === null ? "" : ` about ${Format.count(known.estimated)}`
  }
  const all = [undefined, ...State.literals].map((state) => ({
    text: `${state ?? "all"}${countOf(state)}`,
    href: link(path, { state, organization: filter.organization }),
    isCurrent: state === filter.state
  }))
  return h("nav", { "aria-label": "States" })(tabs(all))
}

/** The outcome of a task in a few words. */
const outcomeText = ({ last_error, outcome }: Task) => {
  if (outcome === null) return last_error
  const { invoices, lines, notDeleted } = totalsOf(outcome)
  const done = `${Format.counted(invoices, "invoice")} and ${Format.counted(lines, "line")} deleted`
  return notDeleted === 0 ? done : `${done}, ${Format.count(notDeleted)} not`
}

const orderOf = ({ filter: { organization, state }, search }: Data) => {
  if (search !== undefined) return "Search result."
  if (organization === undefined && state === "dead") return "Latest to die first."
  const isWaiting = state === "scheduled" || state === "running"
  return organization === undefined && isWaiting ? "Next due first." : "Latest scheduled time first."
}

const emptyText = ({ filter, isContinued, search }: Data) => {
  const of = filter.organization === undefined ? "" : ` of ${filter.organization}`
  if (search !== undefined) {
    return `No deletion${of} has the Idempotency-Key or id ${search}. Enter the whole key; case matters.`
  }
  return isContinued ? "There are no more." : `There is no ${[filter.state, "deletion"].join(" ").trim()}${of}.`
}

const listOf = (data: Data, { isPartial, next, rows }: TaskPage, now: number): Content => {
  const { organization, state } = data.filter
  return [
    h("p")(small(orderOf(data))),
    isPartial &&
      h("p", { class: "note warning" })(
        `Only ${Format.count(mostOrganizations)} organizations were searched, registered ones first.`,
        " Enter an organization to see all of its deletions."
      ),
    table<Task>({
      caption: "Deletion tasks",
      rows,
      key: (task) => `${task.organization_id} ${task.id}`,
      empty: emptyText(data),
      columns: {
        "Idempotency-Key": (task) => id(task.idempotency_key, linkTo(task)),
        State: ({ attempts, state: of }) => [
          stateBadge(of),
          " ",
          attempts > 0 && small(Format.counted(attempts, "attempt"))
        ],
        Organization: ({ organization_id: of }) => id(of, link(path, { state, organization: of })),
        "Scheduled for": ({ scheduled_for }) => Format.moment(scheduled_for, now),
        "Due, or ended": ({ due_at, finished_at }) => Format.moment(due_at ?? finished_at, now),
        "Outcome, or last error": (task) => clamped(outcomeText(task))
      }
    }),
    nextPage(next === undefined ? undefined : link(path, { state, organization, after: next }))
  ]
}

const view = (data: Data, now: number): Content => {
  const { filter, list, search } = data
  return [
    stateTabs(data),
    filterForm(
      path,
      [
        ["q", "Idempotency-Key or task id", search],
        ["organization", "Organization", filter.organization]
      ],
      link(path, { state: filter.state }),
      filter.state !== undefined && h("input", { type: "hidden", name: "state", value: filter.state })()
    ),
    shownOr(list, (found) => listOf(data, found, now))
  ]
}

export const route = Effect.gen(function* () {
  const store = yield* OperatorStore
  return page(
    path,
    (parameter) => {
      const filter = {
        state: State.literals.find((state) => state === parameter("state")),
        organization: parameter("organization")
      }
      const [search, after] = [parameter("q"), parameter("after")]
      const list = search === undefined ? store.tasks(filter, after) : store.findTasks(search, filter.organization)
      return Effect.map(
        Effect.all({ counts: inTime(store.taskCounts), list: inTime(list) }, { concurrency: 2 }),
        (read): Data => ({ ...read, filter, search, isContinued: after !== undefined })
      )
    },
    view
  )
})
