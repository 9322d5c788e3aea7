/** `/ops/task`: one task that deletes invoices, and replaying it. */
import { Result } from "effect"
import type { Outcome } from "../../api/DeletionTasks.ts"
import { maximumAttempts } from "../../deletions/Task.ts"
import type { Entry } from "../AuditLog.ts"
import * as Format from "../Format.ts"
import { type Content, type Html, html, link } from "../Html.ts"
import { pairs, section, table, unreadable } from "../Layout.ts"
import { mostItems, type ShownTask } from "../../deletions/TaskPages.ts"
import { notDeleted } from "../../deletions/Tasks.ts"
import type { Unreadable } from "../OperatorStore.ts"
import { linkTo, stateBadge } from "./Deletions.ts"

export interface Shown {
  readonly now: number
  readonly task: ShownTask
  readonly history: Result.Result<ReadonlyArray<Entry>, Unreadable>
  /** Whether anything can be changed on this page. */
  readonly hasToken: boolean
}

const names = { invoices: "Invoices", invoice_lines: "Lines named" } as const

const outcome = (all: Outcome) => {
  const missed = notDeleted(all).map(({ count, items, reason }) => [names[items], reason, count] as const)
  const rows = [
    [names.invoices, "deleted", all.invoices.deleted] as const,
    ["Lines of these invoices", "deleted with them", all.lines_of_invoices] as const,
    [names.invoice_lines, "deleted", all.invoice_lines.deleted] as const,
    ...missed
  ]
  return table({
    caption: "What became of the items",
    rows: rows.filter(([, text, count]) => count > 0 || text === "deleted"),
    keyOf: ([kind, text]) => `${kind} ${text}`,
    none: "",
    columns: [
      { title: "Items", isName: true, value: ([kind]) => kind },
      { title: "Verdict", value: ([, text]) => text },
      { title: "Count", isNumber: true, value: ([, , count]) => Format.count(count) }
    ]
  })
}

type Item = Readonly<Record<string, string | null>>

const items = (title: string, all: number, some: ReadonlyArray<Item>, fields: ReadonlyArray<string>) =>
  some.length > 0 &&
  html`<details data-key="${title}">
    <summary>
      ${title}:
      ${Format.count(all)}${
        all > some.length &&
        (some.length < mostItems
          ? html`, repeated ones included`
          : html`, of which the first ${some.length} different ones are shown`)
      }
    </summary>
    ${table({
      caption: title,
      rows: some,
      keyOf: (item) => fields.map((field) => item[field] ?? "").join(" "),
      none: "",
      columns: fields.map((field, index) => ({
        title: field,
        isName: index === 0,
        value: (item: Item) =>
          item[field] === null || item[field] === undefined
            ? html`<span class="none">any</span>`
            : html`<span class="id">${item[field]}</span>`
      }))
    })}
  </details>`

/** The trace that a W3C traceparent names. */
const traceOf = (parent: string | null) => /^[\da-f]{2}-([\da-f]{32})-/.exec(parent ?? "")?.[1]

const historyOf = ({ history, now }: Shown) =>
  Result.isFailure(history)
    ? unreadable(history.failure.message)
    : table<Entry>({
        caption: "What operators did with this task",
        rows: history.success,
        keyOf: ({ id }) => id,
        none: "No operator has changed this task.",
        columns: [
          { title: "When", isName: true, value: ({ at }) => Format.moment(at, now) },
          { title: "Who", value: ({ actor, source }) => html`${actor} <small>${source}</small>` },
          { title: "What", value: ({ action, result }) => html`${action}: ${result}` }
        ]
      })

const replay = ({ hasToken, task }: Shown): Content => {
  if (task.state !== "dead") return undefined
  return hasToken
    ? html`<p class="actions">
        <a class="button main" href="${replayLink(task)}">Replay…</a>
        <small>Runs it again at once, with all its attempts. You will be asked to confirm.</small>
      </p>`
    : html`<p class="note">
        To replay it here, start the service with OPERATIONS_TOKEN. The command
        <code>tasks replay ${task.id}</code> does it, too.
      </p>`
}

const replayLink = ({ id, organization_id }: ShownTask) =>
  link("/ops/task/replay", { organization: organization_id, id })

const time = (at: string | null, now: number): Content => at !== null && Format.moment(at, now)

const entriesOf = ({ now, task }: Shown): ReadonlyArray<readonly [string, Content]> => {
  const trace = traceOf(task.trace_parent)
  const entries: ReadonlyArray<readonly [string, Content]> = [
    ["State", stateBadge(task.state)],
    [
      "Organization",
      html`<a class="id" href="${link("/ops/deletions", { organization: task.organization_id })}"
        >${task.organization_id}</a
      >`
    ],
    ["Idempotency-Key", html`<span class="id">${task.idempotency_key}</span>`],
    ["Task id", html`<span class="id">${task.id}</span>`],
    ["Received", time(task.received_at, now)],
    ["Scheduled for", time(task.scheduled_for, now)],
    [task.state === "running" ? "Lease ends" : "Due", time(task.due_at, now)],
    ["First attempt", time(task.started_at, now)],
    [task.state === "dead" ? "Died" : "Completed", time(task.finished_at, now)],
    ["Attempts", `${task.attempts} of ${maximumAttempts}`],
    [
      "Names",
      `${Format.counted(task.invoices_count, "invoice")} and ${Format.counted(task.invoice_lines_count, "line")}`
    ],
    ["Trace", trace !== undefined && html`<span class="id">${trace}</span>`]
  ]
  return entries.filter(([, value]) => value !== false)
}

/** The page, below its heading. */
export const body = (shown: Shown): Html => {
  const { task } = shown
  return html`${replay(shown)} ${pairs(entriesOf(shown))}
  ${task.last_error !== null && section("error", "Last error", html`<pre>${task.last_error}</pre>`)}
  ${task.outcome !== null && section("outcome", "Outcome", outcome(task.outcome))}
  ${section("items", "What it names", [
    items("Invoices", task.invoices_count, task.invoices, ["invoice_id", "clinic_id", "client_id"]),
    items("Lines", task.invoice_lines_count, task.invoice_lines, ["invoice_line_id", "invoice_id", "clinic_id"])
  ])}
  ${section("history", "History", historyOf(shown))}`
}

/** Why a change was not made, or what is to be filled in again. */
export interface Confirmation {
  readonly task: ShownTask
  /** The name that is filled in. */
  readonly name: string
  readonly problem: string | undefined
}

/** The page that asks whether to replay a task. */
export const confirmation = ({ name, problem, task }: Confirmation): Html =>
  html`${problem !== undefined && html`<p class="note problem" role="alert" id="problem">${problem}</p>`}
    ${pairs([
      ["Organization", html`<span class="id">${task.organization_id}</span>`],
      ["Idempotency-Key", html`<span class="id">${task.idempotency_key}</span>`],
      ["Task id", html`<span class="id">${task.id}</span>`],
      ["State", stateBadge(task.state)],
      [
        "Names",
        `${Format.counted(task.invoices_count, "invoice")} and ${Format.counted(task.invoice_lines_count, "line")}`
      ],
      ["Last error", html`<span class="text">${task.last_error ?? "none"}</span>`]
    ])}
    <p>
      It becomes due at once and has ${maximumAttempts} attempts before it. What it names will be marked deleted. This
      is written to the audit log.
    </p>
    <form class="confirm" method="post" action="${replayLink(task)}" autocomplete="off">
      <div>
        <label for="name">Your name, for the audit log</label
        ><input id="name" name="name" value="${name}" maxlength="100" required />
      </div>
      <div>
        <label for="token">Operators' token (OPERATIONS_TOKEN)</label
        ><input id="token" name="token" type="password" maxlength="255" autocomplete="off" required />
      </div>
      <p class="actions">
        <button class="main">Replay this deletion</button> <a class="button" href="${linkTo(task)}">Cancel</a>
      </p>
    </form>`

/** The page that says that a task is replayed. */
export const replayed = (task: Pick<ShownTask, "id" | "organization_id">): Html =>
  html`<p class="note fine" role="status">The deletion is due at once, and the next free worker runs it.</p>
    <p class="actions">
      <a class="button" href="${linkTo(task)}">Look at it</a>
      <a class="button" href="${link("/ops/deletions", { state: "dead" })}">Dead deletions</a>
    </p>`
