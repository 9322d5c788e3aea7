/**
 * `/ops/deletions`: the tasks that delete invoices, by state and organization, or by their key; and
 * `/ops/deletions/replay`: replays the dead ones that have an organization, a reason or a time in common.
 * `/ops/task`: one of them with its items; and `/ops/task/replay`, `cancel` and `undo`: its replay, its cancellation, and
 * the undoing of its deletions or of those of a record.
 */
import { Effect, Number, Result } from "effect"
import { State } from "../../api/DeletionTasks.ts"
import * as Facts from "../../deletions/Facts.ts"
import { maximumAttempts } from "../../deletions/Retries.ts"
import * as Task from "../../deletions/WorkerTasks.ts"
import * as Tasks from "../../deletions/OperatorTasks.ts"
import { type Content, h, link } from "../../http/Html.ts"
import type { Actor } from "../Commands.ts"
import * as Format from "../Format.ts"
import { badge, button, clamped, filterForm, id, pairs, section, small, table, unreadable } from "../Layout.ts"
import { OperatorStore, problem } from "../OperatorStore.ts"
import { list as listOf, page as pageOf, parametersOf, type RequestParameters } from "../Page.ts"
import * as Time from "../../process/Time.ts"
import * as Change from "./Change.ts"

const path = "/ops/deletions"
const replayPath = "/ops/deletions/replay"

const kinds = {
  scheduled: "quiet",
  running: "warning",
  completed: "fine",
  dead: "problem",
  cancelled: "quiet"
} as const

const stateBadge = (state: State) => badge(kinds[state], state)

export const linkTo = (task: Parameters<typeof parametersOf>[0]): string => link("/ops/task", parametersOf(task))

export const list = listOf<Tasks.Task>({
  place: path,
  filters: {
    q: ["Whole Idempotency-Key or task id"],
    organization: ["Organization"],
    state: ["State", ...State.literals]
  },
  read: ({ organization, q, state: given }) =>
    OperatorStore.use(({ findTasks, tasks }) => {
      const state = State.literals.find((each) => each === given)
      if (q === undefined) return tasks({ state, organization })
      return Effect.map(findTasks(q, organization), ({ isPartial, rows }) => ({
        isPartial,
        rows: rows.filter((task) => state === undefined || task.state === state)
      }))
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
    "Outcome, or last error": (task) => clamped(Format.outcomeOf(task))
  })
})

const notDeletedText = ({ count, items, reason }: ReturnType<typeof Task.notDeleted>[number]) =>
  h("div")(`${Format.count(count)} of the ${items === "invoices" ? "invoices" : "lines"}: ${reason}`)

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
    "Outcome, or last error": Format.outcomeOf(task) ?? "none so far",
    "Not deleted": task.outcome !== null && Task.notDeleted(task.outcome).map(notDeletedText)
  })
}

const note = (...content: ReadonlyArray<Content>) => h("p", { class: "note warning" })(content)

const verdictText = (verdict: string) => (verdict === "not_found" ? "remembered" : verdict.replace("_", " "))

/** The badges of the verdicts that can be undone. */
const undoable: Readonly<Partial<Record<Facts.Fact["verdict"], "fine" | "warning">>> = {
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
    key: ({ id: record, kind }) => `${kind} ${record}`,
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
        ),
      Undo: ({ id: record, kind, organization_id: organization, task_id, undone_at, verdict }) =>
        undone_at === null &&
        undoable[verdict] !== undefined &&
        h("a", { href: link("/ops/task/undo", { organization, id: task_id, kind, record }) })("Undo…")
    }
  })
  const more = isPartial && note("There are more: use the command line, practice-data deletions show.")
  return [h("p")(texts.join(", ")), more, items]
}

const requested = ({ id: task = "", organization = "" }: RequestParameters) =>
  OperatorStore.use((store) => store.task(organization, task))

const names = ["organization", "id"]

export const page = pageOf(
  path,
  names,
  Effect.fnUntraced(function* (parameters) {
    const store = yield* OperatorStore
    const task = yield* requested(parameters)
    const read = yield* Effect.result(store.items(task.organization_id, task.id))
    const counts = Result.isSuccess(read) ? read.success.counts : []
    const countOf = (verdict: string) =>
      Number.sumAll(counts.filter((each) => each.verdict === verdict).map(({ items }) => items))
    const remembered = countOf("not_found")
    const hasUndo = countOf("deleted") + remembered > 0
    const isOpen = task.state === "scheduled" || task.state === "dead"
    const offer = (text: string, action: string) => button(text, link(`/ops/task/${action}`, parametersOf(task)))
    return {
      title: `Deletion ${task.idempotency_key}`,
      view: (now) => [
        (isOpen || hasUndo) &&
          h("p", { class: "actions" })(
            task.state === "dead" && offer("Replay…", "replay"),
            isOpen && offer("Cancel it…", "cancel"),
            hasUndo && offer("Undo it…", "undo")
          ),
        remembered > 0 &&
          note(`${Format.counted(remembered, "item")} not found: deleted when the records come, while remembered.`),
        task.unsettled_since !== null &&
          note(
            "Transactions that were open at ",
            Format.moment(task.unsettled_since, now),
            " may still bring records. A worker applies this deletion to them, or its undoing, as they end."
          ),
        facts(task, now),
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

/** The routes of a change of the task that the parameters name, which a task in another state refuses. */
const changeOf = (
  action: "replay" | "cancel",
  texts: Readonly<Record<"title" | "about" | "done" | "otherwise", string>>
) =>
  Change.routesOf(path, `/ops/task/${action}`, texts.title, names, (parameters) =>
    Effect.map(requested(parameters), (task) => ({
      parameters: parametersOf(task),
      about: (now: number) => [facts(task, now), h("p")(texts.about)],
      back: linkTo(task),
      make: Effect.fnUntraced(function* (actor: Actor) {
        const store = yield* OperatorStore
        const result = yield* store[action](actor, parametersOf(task))
        if (result._tag === "Replayed" || result._tag === "Cancelled") return { text: `${texts.done} ${task.id}` }
        const state = "state" in result ? result.state : "gone"
        return yield* problem(409, `This deletion is ${state}. ${texts.otherwise}`)
      })
    }))
  )

export const replay = changeOf("replay", {
  title: "Replay this deletion",
  about: `The task becomes due now, with ${maximumAttempts} new attempts, and deletes its items. The replay is written to the audit log.`,
  done: "Replaying",
  otherwise: "Only a dead one can be replayed."
})

export const cancel = changeOf("cancel", {
  title: "Cancel this deletion",
  about:
    "The task never runs, and its Idempotency-Key stays used. What its attempts deleted is undone. The cancellation is written to the audit log.",
  done: "Cancelled",
  otherwise: "Only a scheduled or dead one can be cancelled."
})

const undoing = Effect.fnUntraced(function* (parameters: RequestParameters) {
  const store = yield* OperatorStore
  const task = yield* requested(parameters)
  const { kind: given, record } = parameters
  const kind = Facts.Fact.fields.kind.literals.find((each) => each === given)
  const organization = task.organization_id
  const isOne = record !== undefined && kind !== undefined
  if (!isOne && (record !== undefined || given !== undefined)) {
    return yield* problem(422, "A record has a kind, invoice or line, and a record, its id.")
  }
  const target = isOne ? { organization, kind, id: record } : { organization, task: task.id }
  const count = yield* store.countUndoable(target)
  return {
    parameters: { ...parametersOf(task), ...(isOne && { kind, record }) },
    about: (now: number) => [
      isOne
        ? pairs({ Organization: id(organization), [kind === "invoice" ? "Invoice" : "Line"]: id(record) })
        : facts(task, now),
      h("p")(
        isOne
          ? `Undoes ${Format.counted(count, "deletion")} of this ${kind === "invoice" ? "invoice with its lines" : "line"}, in all tasks.`
          : `Undoes the deletion of ${Format.counted(count, "item")}.`,
        " Records come back within seconds, unless another deletion or their loader deletes them.",
        " What was not found is no longer deleted when it comes. The undoing is written to the audit log."
      )
    ],
    back: linkTo(task),
    make: Effect.fnUntraced(function* (actor: Actor) {
      const undone = yield* store.undo(actor, target)
      if (undone > 0) return { text: `Undone: ${Format.counted(undone, "item")}` }
      return yield* problem(409, "There is nothing to undo. Nothing was changed.")
    })
  }
})

export const undo = Change.routesOf(path, "/ops/task/undo", "Undo this deletion", [...names, "kind", "record"], undoing)

/** A time of a parameter. A text that is none would replay more than was meant. */
const timeOf = (text: string) =>
  Effect.fromOption(Format.timeOf(text), () => problem(422, `${text} is not a time such as 2026-11-23T09:30Z.`))

/** The filter of the dead tasks that the parameters describe. */
const filterOf = Effect.fnUntraced(function* ({ before: end, organization, reason, since }: RequestParameters) {
  if ((reason ?? "").length > Tasks.longestReason) {
    return yield* problem(422, `A reason has at most ${Tasks.longestReason} characters.`)
  }
  // A task that dies while the operator decides is left alone. Postgres counts the microseconds of this millisecond.
  const before = yield* timeOf(end ?? Format.iso((yield* Time.wall) + 1))
  return { organization, reason, since: since && (yield* timeOf(since)), before }
})

/** Dead tasks that the page replays at once: more take longer than a page may. */
const mostReplayed = 1000

const filters = {
  reason: ["Text in the last error"],
  organization: ["Organization"],
  since: ["Died since (UTC)"],
  before: ["Died before (UTC)"]
} as const

const replayingAll = Effect.fnUntraced(function* (parameters: RequestParameters) {
  const store = yield* OperatorStore
  const filter = yield* filterOf(parameters)
  const count = yield* store.countDead(filter)
  return {
    parameters: filter,
    about: () => [
      filterForm(replayPath, filters, filter),
      h("p")(
        h("strong")(Format.count(count, Tasks.mostCounted)),
        ` dead ${count === 1 ? "deletion matches" : "deletions match"}.`,
        ` At most ${Format.count(mostReplayed)} are replayed at once, the first to die first.`,
        ` They become due now, with ${maximumAttempts} new attempts. The replay is written to the audit log.`
      )
    ],
    back: link(path, { state: "dead", organization: filter.organization }),
    make: Effect.fnUntraced(function* (actor: Actor) {
      const replayed = yield* store.replayDead(actor, filter, mostReplayed)
      if (replayed > 0) return { text: `Replaying ${Format.counted(replayed, "deletion")}` }
      return yield* problem(409, "No dead deletion matches. Nothing was changed.")
    })
  }
})

export const replayAll = Change.routesOf(path, replayPath, "Replay these deletions", Object.keys(filters), replayingAll)
