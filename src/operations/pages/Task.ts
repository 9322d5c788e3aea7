/** `/ops/task`: one task that deletes invoices; and `/ops/task/replay`: its replay, with the operators' token. */
import { Effect } from "effect"
import type { Outcome } from "../../api/DeletionTasks.ts"
import { maximumAttempts } from "../../deletions/Task.ts"
import { mostItems, notDeleted, type ShownTask } from "../../deletions/Tasks.ts"
import { type Content, h, link } from "../../http/Html.ts"
import { Token } from "../Access.ts"
import type { Entry } from "../Commands.ts"
import * as Format from "../Format.ts"
import { button, clamped, id, none, pairs, section, table } from "../Layout.ts"
import { OperatorStore, Problem } from "../OperatorStore.ts"
import { inTime, page as pageOf, type Query, shownOr } from "../Page.ts"
import * as Change from "./Change.ts"
import { linkTo, stateBadge } from "./Deletions.ts"
import { authorship } from "./Lists.ts"

const place = "/ops/deletions"

const titles = { invoices: "Invoices", invoice_lines: "Lines by themselves" } as const

const outcomePairs = (outcome: Outcome) => {
  const { invoice_lines, invoices, lines_of_invoices } = outcome
  const missed = notDeleted(outcome).map(({ count, items, reason }) => [`${titles[items]}: ${reason}`, count] as const)
  return pairs({
    "Invoices deleted": Format.count(invoices.deleted),
    "Lines deleted with them": Format.count(lines_of_invoices),
    "Lines deleted by themselves": Format.count(invoice_lines.deleted),
    ...Object.fromEntries(missed.map(([name, count]) => [name, Format.count(count)]))
  })
}

type Item = Readonly<Record<string, string | null>>

const items = (title: string, all: number, some: ReadonlyArray<Item>, ...fields: ReadonlyArray<string>): Content => {
  if (some.length === 0) return undefined
  const more = some.length < mostItems ? ", with repeated ones" : `, the first ${mostItems} are shown`
  const cell = (name: string) => (item: Item) => {
    const value = item[name] ?? undefined
    return value === undefined ? none("any") : id(value)
  }
  return h("details", { "data-key": title })(
    h("summary")(`${title}: ${Format.count(all)}${all > some.length ? more : ""}`),
    table({
      caption: title,
      rows: some,
      key: (item) => fields.map((name) => item[name] ?? "").join(" "),
      columns: Object.fromEntries(fields.map((name) => [name, cell(name)]))
    })
  )
}

/** The facts that tell a task from others. */
const identity = (task: ShownTask) => ({
  Organization: id(task.organization_id, link(place, { organization: task.organization_id })),
  "Idempotency-Key": id(task.idempotency_key),
  "Task id": id(task.id),
  State: stateBadge(task.state),
  Items: `${Format.counted(task.invoices_count, "invoice")} and ${Format.counted(task.invoice_lines_count, "line")}`
})

const facts = (task: ShownTask, now: number) => {
  const time = (at: string | null) => at !== null && Format.moment(at, now)
  const trace = /^[\da-f]{2}-([\da-f]{32})-/.exec(task.trace_parent ?? "")?.[1]
  return pairs({
    ...identity(task),
    Attempts: `${task.attempts} of ${maximumAttempts}`,
    Received: time(task.received_at),
    "Scheduled for": time(task.scheduled_for),
    [task.state === "running" ? "Lease ends" : "Due"]: time(task.due_at),
    "First attempt": time(task.started_at),
    [task.state === "dead" ? "Died" : "Completed"]: time(task.finished_at),
    Trace: trace !== undefined && id(trace)
  })
}

const historyTable = (now: number) => (rows: ReadonlyArray<Entry>) =>
  table<Entry>({
    caption: "Changes to this task by operators",
    rows,
    key: (entry) => entry.id,
    empty: "No operator has changed this task.",
    columns: { ...authorship(now), What: ({ action, result }) => `${action}: ${result}` }
  })

const replayHint = (task: ShownTask, hasToken: boolean, wasReplayed: boolean) => {
  if (task.state !== "dead") {
    const text = "The deletion is due now. The next free worker runs it."
    return wasReplayed && h("p", { class: "note fine", role: "status" })(text)
  }
  const { id: task_id, organization_id: organization } = task
  return hasToken
    ? h("p", { class: "actions" })(button("Replay…", link("/ops/task/replay", { organization, id: task_id }), "main"))
    : h("p", { class: "note" })(
        "To replay it here, set OPERATIONS_TOKEN and restart. Or run ",
        h("code")(`tasks replay ${task_id}`),
        "."
      )
}

const requested = (parameter: Query) =>
  OperatorStore.use(({ task }) => task(parameter("organization") ?? "", parameter("id") ?? ""))

export const page = pageOf(
  place,
  Effect.fnUntraced(function* (parameter) {
    const task = yield* requested(parameter)
    const { isSet } = yield* Token
    const wasReplayed = parameter("replayed") !== undefined
    const history = yield* inTime((yield* OperatorStore).history(task.organization_id, task.id))
    return {
      title: `Deletion ${task.idempotency_key}`,
      view: (now) => [
        replayHint(task, isSet, wasReplayed),
        facts(task, now),
        task.last_error !== null && section("error", "Last error", h("pre")(task.last_error)),
        task.outcome !== null && section("outcome", "Outcome", outcomePairs(task.outcome)),
        section(
          "items",
          "Items to delete",
          items("Invoices", task.invoices_count, task.invoices, "invoice_id", "clinic_id", "client_id"),
          items("Lines", task.invoice_lines_count, task.invoice_lines, "invoice_line_id", "invoice_id", "clinic_id")
        ),
        section("history", "History", shownOr(history, historyTable(now)))
      ]
    }
  })
)

export const replay = Change.make({
  place,
  path: "/ops/task/replay",
  title: "Replay this deletion?",
  subject: requested,
  about: (task) => [
    pairs({ ...identity(task), "Last error": clamped(task.last_error ?? "none") }),
    h("p")(
      `The task becomes due now, with ${maximumAttempts} new attempts, and deletes its items.`,
      " The replay is written to the audit log."
    )
  ],
  hidden: ({ id: task, organization_id: organization }) => ({ organization, id: task }),
  button: "Replay this deletion",
  cancel: linkTo,
  make: Effect.fnUntraced(function* (actor, task) {
    const replayed = yield* (yield* OperatorStore).replay(actor, task.organization_id, task.id)
    if (replayed._tag === "Replayed") {
      return { text: `Replaying ${task.id}`, page: `${linkTo(task)}&replayed=1` }
    }
    const state = replayed._tag === "NotDead" ? replayed.state : "gone"
    return yield* new Problem({
      status: 409,
      message: `This deletion is ${state}. Only a dead one can be replayed.`
    })
  })
})
