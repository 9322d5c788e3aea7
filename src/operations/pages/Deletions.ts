/** `/ops/deletions`: the tasks that delete invoices, by state and organization, or by their key; `/ops/task`: one of them. */
import { Effect, Result } from "effect"
import { State } from "../../api/DeletionTasks.ts"
import { maximumAttempts } from "../../deletions/Retries.ts"
import type * as Tasks from "../../deletions/OperatorTasks.ts"
import { type Content, h, link } from "../../http/Html.ts"
import { invocation } from "../../process/Package.ts"
import * as Format from "../Format.ts"
import { badge, clamped, id, pairs, section, small, stackedPlot, table, unreadable } from "../Layout.ts"
import { OperatorStore } from "../OperatorStore.ts"
import * as Page from "../Page.ts"

const path = "/ops/deletions"

const kinds = {
  scheduled: "quiet",
  running: "warning",
  completed: "fine",
  dead: "problem",
  cancelled: "quiet"
} as const

const stateBadge = (state: State) => badge(kinds[state], state)

export const linkTo = ({
  id: task,
  organization_id: organization
}: Readonly<Record<"organization_id" | "id", string>>) => link("/ops/task", { organization, id: task })

const hour = 3_600_000

/** The chart of the last day. */
const lastDay = Effect.gen(function* () {
  const { lastDay: read } = yield* OperatorStore
  const hours = yield* Effect.result(read)
  return (now: number): Content => {
    if (Result.isFailure(hours)) return unreadable(`The last day: ${hours.failure.message}`)
    const timeline = { points: hours.success, first: now - (now % hour) - 23 * hour, step: hour, slots: 24 }
    return h("div", { class: "charts" })(
      stackedPlot("Deletions that ended in an hour", timeline, {
        teal: ["completed", ({ completed }) => completed],
        amber: ["cancelled", ({ cancelled }) => cancelled],
        red: ["dead", ({ dead }) => dead]
      })
    )
  }
})

export const list = Page.list<Tasks.Task>({
  place: path,
  filters: {
    q: ["Whole Idempotency-Key or task id"],
    organization: ["Organization"],
    state: ["State", ...State.literals]
  },
  read: Effect.fnUntraced(function* ({ organization, q, state: given }) {
    const { findTasks, tasks } = yield* OperatorStore
    const state = State.literals.find((each) => each === given)
    if (q === undefined) return yield* tasks({ state, organization })
    const { isPartial, rows } = yield* findTasks(q, organization)
    return { isPartial, rows: rows.filter((task) => state === undefined || task.state === state) }
  }),
  above: lastDay,
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
    "Outcome, or last error": (task) => clamped(Format.outcomeText(task))
  })
})

const facts = (task: Tasks.Task, now: number) => {
  const { id: target, organization_id: organization } = task
  const time = (at: string | null) => at !== null && Format.moment(at, now)
  const trace = /^[\da-f]{2}-([\da-f]{32})-/.exec(task.trace_parent ?? "")?.[1]
  return pairs({
    Organization: id(organization, link(path, { organization })),
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
    "Outcome, or last error": Format.outcomeText(task) ?? "none so far"
  })
}

const note = (...content: ReadonlyArray<Content>) => h("p", { class: "note warning" })(content)

const verdictText = (verdict: string) => (verdict === "not_found" ? "remembered" : verdict.replace("_", " "))

/** The badges of the verdicts that can be undone. */
const undoable: Readonly<Record<string, "fine" | "warning">> = {
  deleted: "fine",
  not_found: "warning"
}

type Items = Effect.Success<ReturnType<OperatorStore["Service"]["items"]>>

const itemsView = ({ counts, isPartial, rows }: Items, now: number) => {
  if (rows.length === 0) {
    return h("p")("None so far, or no more: items that were not deleted are forgotten after TASK_RETENTION.")
  }
  const texts = counts.map(({ items, kind, verdict }) => `${Format.counted(items, kind)} ${verdictText(verdict)}`)
  const items = table({
    caption: "Items",
    rows,
    columns: {
      Id: (fact) => id(fact.id),
      Kind: ({ kind }) => kind,
      Now: ({ undone_at, verdict }) =>
        undone_at === null
          ? badge(undoable[verdict] ?? "problem", verdictText(verdict))
          : [badge("quiet", "undone"), " ", small(Format.moment(undone_at, now))],
      Deleted: ({ deleted_at }) => Format.moment(deleted_at, now),
      "With ids": ({ client_id, clinic_id, invoice_id }) =>
        Object.entries({ clinic_id, client_id, invoice_id }).map(
          ([name, value]) => value !== null && h("div")(small(name), " ", id(value))
        )
    }
  })
  const more = isPartial && note("There are more: use the command line, practice-data deletions show.")
  return [h("p")(texts.join(", ")), more, items]
}

/** The commands that change a task in its state. */
const commands = ({ id: task, state }: Tasks.Task, hasUndo: boolean) => [
  ...(state === "dead" ? [`tasks replay ${task}`] : []),
  ...(state === "scheduled" || state === "dead" ? [`tasks cancel ${task}`] : []),
  ...(hasUndo ? [`deletions undo --task ${task}`] : [])
]

export const page = Page.page(
  path,
  ["organization", "id"],
  Effect.fnUntraced(function* ({ id: given = "", organization = "" }) {
    const store = yield* OperatorStore
    const task = yield* store.task(organization, given)
    const read = yield* Effect.result(store.items(task.organization_id, task.id))
    const counts = Result.isSuccess(read) ? read.success.counts : []
    const offered = commands(
      task,
      counts.some(({ verdict }) => undoable[verdict] !== undefined)
    )
    return {
      title: `Deletion ${task.idempotency_key}`,
      view: (now) => [
        task.unsettled_since !== null &&
          note(
            "Transactions that were open at ",
            Format.moment(task.unsettled_since, now),
            " may still bring records. A worker applies this deletion to them, or its undoing, as they end."
          ),
        facts(task, now),
        offered.length > 0 && section("commands", "Commands", h("pre")(offered.map(invocation).join("\n"))),
        section(
          "items",
          "Items",
          // The login of a process of the intake may not read them.
          Result.isFailure(read) ? unreadable(read.failure.message) : itemsView(read.success, now)
        )
      ]
    }
  }),
  "/ops/task"
)
