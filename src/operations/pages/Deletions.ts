/** `/ops/deletions`: the tasks that delete invoices, by state and organization, or by their key; `/ops/task`: one of them. */
import { Effect, Result } from "effect"
import { State } from "../../api/DeletionTasks.ts"
import { maximumAttempts } from "../../deletions/Retries.ts"
import { TaskDatabase } from "../../database/Database.ts"
import * as Facts from "../../deletions/Facts.ts"
import * as Tasks from "../../deletions/OperatorTasks.ts"
import { type Content, h, link } from "../../http/Html.ts"
import { invocation } from "../../process/Package.ts"
import * as Format from "../Format.ts"
import { badge, chart, clamped, id, pairs, section, small, table, unreadable } from "../Layout.ts"
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

/** The chart of the last day. */
const lastDay = (now: number) =>
  Effect.match(Page.readTasks(Effect.flatMap(TaskDatabase, Tasks.lastDay)), {
    onFailure: ({ message }) => unreadable(`The last day: ${message}`),
    onSuccess: (points) =>
      h("div", { class: "charts" })(
        chart(
          "Deletions that ended in an hour",
          { points, now, step: 3_600_000, slots: 24 },
          {
            teal: ["all", ({ cancelled, completed, dead }) => completed + cancelled + dead],
            amber: ["cancelled and dead", ({ cancelled, dead }) => cancelled + dead],
            red: ["dead", ({ dead }) => dead]
          }
        )
      )
  })

export const list = Page.list<Tasks.Task>({
  place: path,
  filters: {
    q: ["Whole Idempotency-Key or task id"],
    organization: ["Organization"],
    state: ["State", ...State.literals]
  },
  read: ({ organization, q, state: given }, limit) => {
    const state = State.literals.find((each) => each === given)
    if (q === undefined) return Page.readTasks(Tasks.list({ state, organization }, limit))
    const found = Page.readTasks(Tasks.find(q, organization, limit))
    return Effect.map(found, (tasks) => tasks.filter((task) => state === undefined || task.state === state))
  },
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

const itemsView = ({ counts, items }: Effect.Success<ReturnType<typeof Facts.ofTask>>, now: number) => {
  if (items.length === 0) {
    return h("p")("None so far, or no more: items that were not deleted are forgotten after TASK_RETENTION.")
  }
  const texts = counts.map(
    ({ items: number, kind, verdict }) => `${Format.counted(number, kind)} ${verdictText(verdict)}`
  )
  const shown = table({
    caption: "Items",
    rows: items.slice(0, Page.mostRows),
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
  const more =
    items.length > Page.mostRows && note("There are more: use the command line, practice-data deletions show.")
  return [h("p")(texts.join(", ")), more, shown]
}

/** The commands that change a task in its state. */
const commands = ({ id: task, state }: Tasks.Task, hasUndo: boolean) => [
  ...(state === "dead" ? [`tasks replay ${task}`] : []),
  ...(state === "scheduled" || state === "dead" ? [`tasks cancel ${task}`] : []),
  ...(hasUndo ? [`deletions undo --task ${task}`] : [])
]

export const page = Page.page(
  path,
  { organization: ["Organization"], id: ["Task id"] },
  Effect.fnUntraced(function* ({ id: given = "", organization = "" }, now) {
    const task = yield* Effect.flatMap(
      Page.readTasks(Tasks.show({ organization, id: given })),
      Effect.fromOption(() => Page.problem(404, "No deletion of this organization has this id."))
    )
    const { id: target, idempotency_key, organization_id, unsettled_since } = task
    const read = yield* Effect.result(Page.readTasks(Facts.ofTask(organization_id, target, Page.mostRows + 1)))
    const counts = Result.isSuccess(read) ? read.success.counts : []
    const hasUndo = counts.some(({ verdict }) => undoable[verdict] !== undefined)
    const offered = commands(task, hasUndo)
    const content = [
      unsettled_since !== null &&
        note(
          "Transactions that were open at ",
          Format.moment(unsettled_since, now),
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
    return { title: `Deletion ${idempotency_key}`, content }
  }),
  "/ops/task"
)
