/** `/ops/deletions`: the tasks that delete invoices. */
import { Result } from "effect"
import { State } from "../../api/DeletionTasks.ts"
import * as Format from "../Format.ts"
import { type Html, html, link } from "../Html.ts"
import { badge, table, unreadable } from "../Layout.ts"
import { mostOrganizations, type TaskFilter } from "../../deletions/TaskPages.ts"
import { mostCounted, type Task, totalsOf } from "../../deletions/Tasks.ts"
import type { TaskCounts, TaskPage, Unreadable } from "../OperatorStore.ts"

export interface Shown {
  readonly now: number
  readonly filter: TaskFilter
  /** The id or Idempotency-Key that is searched for. */
  readonly search: string | undefined
  /** Whether this is another page than the first. */
  readonly isContinued: boolean
  readonly counts: Result.Result<TaskCounts, Unreadable>
  readonly page: Result.Result<TaskPage, Unreadable>
}

const path = "/ops/deletions"

const kinds = { scheduled: "quiet", running: "warning", completed: "fine", dead: "problem" } as const

/** The state of a task. */
export const stateBadge = (state: State): Html => badge(kinds[state], state)

/** Where a task is shown. */
export const linkTo = ({ id, organization_id }: Pick<Task, "id" | "organization_id">): string =>
  link("/ops/task", { organization: organization_id, id })

/** What was deleted and what was not, in a few words. */
const outcomeText = ({ last_error, outcome }: Task) => {
  if (outcome === null) return last_error
  const { invoices, lines, notDeleted } = totalsOf(outcome)
  const done = `${Format.counted(invoices, "invoice")} and ${Format.counted(lines, "line")} deleted`
  return notDeleted === 0 ? done : `${done}, ${Format.count(notDeleted)} not`
}

const tabs = ({ counts, filter }: Shown) => {
  const known = Result.isSuccess(counts) ? counts.success : undefined
  const countOf = (state: State | undefined) =>
    known === undefined || state === undefined || state === "completed"
      ? ""
      : ` ${Format.capped(known[state], mostCounted)}`
  return html`<nav aria-label="States">
    <ul class="tabs">
      ${[undefined, ...State.literals].map(
        (state) =>
          html`<li>
            <a
              href="${link(path, { state, organization: filter.organization })}"
              ${state === filter.state && html` aria-current="true"`}
              >${state ?? "all"}${countOf(state)}</a
            >
          </li>`
      )}
    </ul>
  </nav>`
}

const form = ({ filter, search }: Shown) =>
  html`<form class="filter" method="get" action="${path}" role="search">
    ${filter.state !== undefined && html`<input type="hidden" name="state" value="${filter.state}" />`}
    <div>
      <label for="q">Idempotency-Key or task id</label
      ><input id="q" name="q" value="${search}" maxlength="200" autocomplete="off" spellcheck="false" />
    </div>
    <div>
      <label for="organization">Organization</label
      ><input
        id="organization"
        name="organization"
        value="${filter.organization}"
        maxlength="200"
        autocomplete="off"
        spellcheck="false"
      />
    </div>
    <button>Search</button>
    ${(search !== undefined || filter.organization !== undefined) && html`<a class="button" href="${link(path, { state: filter.state })}">Clear</a>`}
  </form>`

const orderOf = ({ filter, search }: Shown) => {
  if (search !== undefined) return "What was found."
  if (filter.organization === undefined && filter.state === "dead") return "Those that died last come first."
  return filter.organization === undefined && (filter.state === "scheduled" || filter.state === "running")
    ? "Those that are due first come first."
    : "Those that were scheduled for the latest time come first."
}

const noneOf = ({ filter, isContinued, search }: Shown) => {
  const of = filter.organization === undefined ? "" : ` of ${filter.organization}`
  if (search !== undefined)
    return `There is no deletion${of} with the Idempotency-Key or id ${search}. An Idempotency-Key has to be whole, and in the same case.`
  if (isContinued) return "There are no more."
  return `There is no ${filter.state ?? ""} deletion${of}.`.replace("no  ", "no ")
}

const list = (shown: Shown, page: TaskPage) => {
  const { filter, now } = shown
  return html`<p><small>${orderOf(shown)}</small></p>
    ${
      page.isPartial &&
      html`<p class="note warning">
        Only ${Format.count(mostOrganizations)} organizations were searched, registered ones first. Name one to see all
        of its deletions.
      </p>`
    }
    ${table<Task>({
      caption: "Deletion tasks",
      rows: page.rows,
      keyOf: ({ id, organization_id }) => `task ${organization_id} ${id}`,
      none: noneOf(shown),
      columns: [
        {
          title: "Idempotency-Key",
          isName: true,
          value: (task) => html`<a class="id" href="${linkTo(task)}">${task.idempotency_key}</a>`
        },
        {
          title: "State",
          value: ({ attempts, state }) =>
            html`${stateBadge(state)}${attempts > 0 && html` <small>${Format.counted(attempts, "attempt")}</small>`}`
        },
        {
          title: "Organization",
          value: ({ organization_id }) =>
            html`<a class="id" href="${link(path, { state: filter.state, organization: organization_id })}"
              >${organization_id}</a
            >`
        },
        { title: "Scheduled for", value: ({ scheduled_for }) => Format.moment(scheduled_for, now) },
        { title: "Due, or ended", value: ({ due_at, finished_at }) => Format.moment(due_at ?? finished_at, now) },
        { title: "Outcome, or last error", value: (task) => html`<span class="text">${outcomeText(task)}</span>` }
      ]
    })}
    ${
      page.next !== undefined &&
      html`<p class="more">
        <a
          class="button"
          href="${link(path, {
            state: filter.state,
            organization: filter.organization,
            after: page.next
          })}"
          >Next page</a
        >
      </p>`
    }`
}

/** The page, below its heading. */
export const body = (shown: Shown): Html => {
  const { counts, page } = shown
  return html`${tabs(shown)} ${form(shown)}
  ${Result.isFailure(page) ? unreadable(page.failure.message) : list(shown, page.success)}
  ${
    Result.isSuccess(counts) &&
    counts.success.estimated !== null &&
    Result.isSuccess(page) &&
    page.success.next !== undefined &&
    html`<p><small>About ${Format.count(counts.success.estimated)} in all, by the database's own estimate.</small></p>`
  }`
}
