/** `tasks`: deletion tasks. `deletions`: what became of the invoices and lines that they name, and the way back. */
import { Effect, Number, Option, Predicate, Record, Schema, Struct } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { State } from "../api/DeletionTasks.ts"
import { makeTaskId } from "../deletions/Delivery.ts"
import { maximumAttempts } from "../deletions/Retries.ts"
import * as Facts from "../deletions/Facts.ts"
import * as Tasks from "../deletions/OperatorTasks.ts"
import * as Commands from "../operations/Commands.ts"
import { counted, outcomeText } from "../operations/Format.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import { command, group, misused, refused } from "./Usage.ts"

const organization = Operators.organizationFilter("deletions")

const list = command("tasks list", Operators.tasks, {
  description: "List deletion tasks, newest first",
  examples: [
    ["practice-data tasks list --state dead", "List deletions that need attention"],
    ["practice-data tasks list --organization org_1 --json | jq -r .id"]
  ],
  flags: {
    state: Output.optional(
      Flag.Literals("state", State.literals).pipe(Flag.withDescription("Only tasks in this state"))
    ),
    organization,
    limit: Output.limit("tasks"),
    json: Output.json
  }
})(function* ({ json, limit, ...filter }) {
  const tasks = yield* Tasks.list(filter, limit)
  const fields = ["id", "state", "organization_id", "idempotency_key", "scheduled_for", "attempts", "outcome"]
  yield* Output.rows(json, json ? tasks : tasks.map((task) => ({ ...task, outcome: outcomeText(task) })), fields)
})

/** The flags that name a task. */
const identity = {
  id: Argument.String("task-id").pipe(
    Argument.withDescription("Id of the task, as the intake returned it"),
    Argument.withSchema(Schema.String.check(Schema.isUUID())),
    Argument.optional,
    Argument.map(Option.getOrUndefined)
  ),
  organization,
  key: Output.text("idempotency-key", "Idempotency-Key of the delivery, instead of the id; with --organization")
}

const identify = ({ id, key, organization: owner }: Command.Command.Config.Infer<typeof identity>) => {
  if (id !== undefined && key === undefined) return Effect.succeed({ id, organization: owner })
  if (id === undefined && key !== undefined && owner !== undefined) {
    return Effect.succeed({ id: makeTaskId(owner, key), organization: owner })
  }
  return misused("Use either a task-id, or --idempotency-key with --organization.")
}

const notFound = ({ id }: Tasks.Identity) => refused(`No such task: ${id}`)

/** The refusal of a change that the state of its task does not allow. */
const notChanged =
  (which: Tasks.Identity, hint: string) =>
  ({ state }: Tasks.NotChanged) =>
    state === undefined ? notFound(which) : refused(`Task ${which.id} is ${state}. ${hint}`)

/** Refuses a change of several records that is not confirmed. */
const confirmed = (yes: boolean, change: string) =>
  yes ? Effect.void : refused(`Nothing was changed. Add --yes to ${change}.`)

const itemFields = ["kind", "id", "verdict", "deleted_at", "undone_at"]

const show = command("tasks show", Operators.tasks, {
  description: "Show a deletion task, and what became of its items; `not_found` ones are deleted on arrival",
  examples: [
    ["practice-data tasks show 6a1f7a52-6f0b-5d8e-9f43-0d7f0f0d2c11"],
    ["practice-data tasks show --organization org_1 --idempotency-key delivery-1"]
  ],
  flags: { ...identity, limit: Output.limit("items"), json: Output.json }
})(function* ({ json, limit, ...given }) {
  const which = yield* identify(given)
  const task = Option.getOrUndefined(yield* Tasks.show(which))
  if (task === undefined) return yield* notFound(which)
  const { counts, items } = yield* Facts.ofTask(task.organization_id, task.id, limit)
  const summary = {
    ...task,
    items: Record.fromIterableWith(counts, (count) => [`${count.kind}_${count.verdict}`, count.items])
  }
  if (json) return yield* Output.record({ ...summary, facts: items })
  yield* Output.shown(false, Struct.omit(summary, ["payload"]))
  if (items.length > 0) yield* Output.rows(false, items, [...itemFields, "clinic_id", "client_id", "invoice_id"])
  const more = Number.sumAll(counts.map((count) => count.items)) - items.length
  if (more > 0) yield* Output.note(`${more} more: raise --limit.`)
})

const replay = command("tasks replay", Operators.tasks, {
  description: `Replay a dead deletion task now, with ${maximumAttempts} new attempts, or all dead tasks of an organization`,
  examples: [
    ["practice-data tasks replay 6a1f7a52-6f0b-5d8e-9f43-0d7f0f0d2c11"],
    ["practice-data tasks replay --organization org_1 --yes"]
  ],
  flags: { ...identity, yes: Output.flag("yes", "Replay several tasks; without it, only count them") }
})(function* ({ yes, ...given }) {
  const { id, key, organization: owner } = given
  if (id === undefined && key === undefined && owner !== undefined) {
    const count = yield* Tasks.countDead(owner)
    if (count === 0) return yield* refused(`${owner} has no dead task.`)
    yield* confirmed(yes, `replay ${counted(count, "dead task")}`)
    return yield* Output.print(`Replaying ${counted(yield* Commands.replayDead(owner), "task")}`)
  }
  const which = yield* identify(given)
  yield* Effect.catchTag(
    Commands.replayTask(which),
    "NotChanged",
    notChanged(which, "Only dead tasks can be replayed.")
  )
  yield* Output.print(`Replaying ${which.id}`)
})

const cancel = command("tasks cancel", Operators.tasks, {
  description: "Cancel a scheduled or dead deletion task: it never runs, and its key cannot be reused",
  examples: [["practice-data tasks cancel 6a1f7a52-6f0b-5d8e-9f43-0d7f0f0d2c11"]],
  flags: identity
})(function* (given) {
  const which = yield* identify(given)
  const { undone } = yield* Effect.catchTag(
    Commands.cancelTask(which),
    "NotChanged",
    notChanged(which, "Only scheduled or dead tasks can be cancelled.")
  )
  yield* Output.print(`Cancelled ${which.id}${undone === 0 ? "" : `, and undone ${counted(undone, "item")}`}`)
})

export const tasks = group("tasks", "Deletion tasks", [list, show, replay, cancel])

const listItems = command("deletions list", Operators.tasks, {
  description: "List the items of deliveries that name an invoice or a line, with their verdict, newest first",
  examples: [["practice-data deletions list --organization org_1 --id invoice_1"]],
  flags: {
    organization: Operators.organization,
    id: Flag.String("id").pipe(Flag.withDescription("Id of the invoice or the line (required)")),
    limit: Output.limit("items"),
    json: Output.json
  }
})(function* ({ id, json, limit, organization: owner }) {
  yield* Output.rows(json, yield* Facts.list(owner, id, limit), [...itemFields, "task_id"])
})

const undo = command("deletions undo", Operators.tasks, {
  description: "Undo a deletion task, or all deletions of an invoice with its lines, or of a line",
  examples: [
    ["practice-data deletions undo --task 6a1f7a52-6f0b-5d8e-9f43-0d7f0f0d2c11 --yes"],
    ["practice-data deletions undo --organization org_1 --invoice invoice_1"]
  ],
  flags: {
    organization,
    task: Output.text("task", "Id of the task to undo"),
    invoice: Output.text("invoice", "Id of the invoice to restore with its lines; with --organization"),
    line: Output.text("line", "Id of the line to restore; with --organization"),
    yes: Output.flag("yes", "Undo a task; without it, only count its items")
  }
})(function* ({ invoice, line, organization: owner, task, yes }) {
  const wrong = misused("Use either --task, or --organization with --invoice or --line.")
  if ([invoice, line, task].filter(Predicate.isNotUndefined).length !== 1) return yield* wrong
  if (task === undefined) {
    if (owner === undefined) return yield* wrong
    const kind = line === undefined ? "invoice" : "line"
    const id = line ?? invoice ?? ""
    const undone = yield* Commands.undoDeletions({ organization: owner, kind, id })
    if (undone === 0) return yield* refused(`No deletion of ${owner} names the ${kind} ${id}, or it was undone.`)
    return yield* Output.print(`Undone: ${counted(undone, "item")}`)
  }
  const which = { id: task, organization: owner }
  const details = Option.getOrUndefined(yield* Tasks.show(which))
  if (details === undefined) return yield* notFound(which)
  const target = { organization: details.organization_id, task: details.id }
  const count = yield* Facts.countUndoable(target)
  if (count === 0) {
    const hint = details.state === "scheduled" || details.state === "dead" ? " Cancel it: tasks cancel." : ""
    return yield* refused(`Task ${task} is ${details.state} and has nothing to undo.${hint}`)
  }
  yield* confirmed(yes, `undo ${counted(count, "item")}`)
  yield* Output.print(`Undone: ${counted(yield* Commands.undoDeletions(target), "item")}`)
})

export const deletions = group("deletions", "Deletions of an invoice or a line, and undo", [listItems, undo])
