/** `tasks`: deletion tasks. `deletions`: what became of the invoices and lines that they name, and the way back. */
import { Effect, Option, Record, Schema, Struct } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { State } from "../api/DeletionTasks.ts"
import { taskIdOf } from "../deletions/Delivery.ts"
import { maximumAttempts } from "../deletions/Retries.ts"
import * as Facts from "../deletions/Facts.ts"
import * as Tasks from "../deletions/OperatorTasks.ts"
import * as Commands from "../operations/Commands.ts"
import { counted, outcomeOf, timeOf } from "../operations/Format.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import { command, misused, refused } from "./Usage.ts"

const organization = Operators.ofOne("tasks")

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
  yield* Output.rows(json, json ? tasks : tasks.map((task) => ({ ...task, outcome: outcomeOf(task) })), fields)
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
  idempotencyKey: Output.text(
    "idempotency-key",
    "Idempotency-Key of the delivery, instead of the id; with --organization"
  )
}

type Given = Readonly<Record<keyof typeof identity, string | undefined>>

const identityOf = Effect.fnUntraced(function* (given: Given) {
  const { id, idempotencyKey: key, organization: owner } = given
  if (id !== undefined && key === undefined) return { id, organization: owner }
  if (id === undefined && key !== undefined && owner !== undefined) {
    return { id: taskIdOf(owner, key), organization: owner }
  }
  return yield* misused("Use either a task-id, or --idempotency-key with --organization.")
})

const notFound = ({ id }: Tasks.Identity) => refused(`No such task: ${id}`)

const show = command("tasks show", Operators.tasks, {
  description:
    "Show a deletion task: its times, and the items that it deleted or skipped, and why. With --json, also the items of its delivery, during TASK_RETENTION.",
  examples: [
    ["practice-data tasks show 6a1f7a52-6f0b-5d8e-9f43-0d7f0f0d2c11"],
    ["practice-data tasks show --organization org_1 --idempotency-key delivery-1"]
  ],
  flags: { ...identity, json: Output.json }
})(function* (given) {
  const which = yield* identityOf(given)
  const task = yield* Tasks.show(which)
  if (Option.isNone(task)) return yield* notFound(which)
  yield* Output.shown(given.json, task.value, Struct.omit(task.value, ["payload"]))
})

const instant = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(`${description}: a time such as 2026-11-23T09:30Z`),
    Flag.filterMap(timeOf, () => "a time such as 2026-11-23T09:30Z"),
    Output.optional
  )

const replay = command("tasks replay", Operators.tasks, {
  description: `Replay a dead deletion task now, with ${maximumAttempts} new attempts, or all dead tasks that match an organization, a reason or a time, at most ${counted(Tasks.mostCounted, "task")}`,
  examples: [
    ["practice-data tasks replay 6a1f7a52-6f0b-5d8e-9f43-0d7f0f0d2c11"],
    ["practice-data tasks replay --reason invoices_total_check --before 2026-11-23T09:30Z --yes"]
  ],
  flags: {
    ...identity,
    reason: Flag.String("reason").pipe(
      Flag.withDescription("All dead tasks whose last error contains this text"),
      Flag.withSchema(Schema.NonEmptyString.check(Schema.isMaxLength(Tasks.longestReason))),
      Output.optional
    ),
    since: instant("since", "All dead tasks that died at or after this time"),
    before: instant("before", "All dead tasks that died before this time"),
    yes: Output.flag("yes", "Replay several tasks; without it, only count them")
  }
})(function* ({ before, reason, since, yes, ...given }) {
  const filter = { before, organization: given.organization, reason, since }
  const isOne = given.id !== undefined || given.idempotencyKey !== undefined
  const isBounded = [before, reason, since].some((bound) => bound !== undefined)
  if (isOne ? isBounded : !isBounded && given.organization === undefined) {
    return yield* misused("Use either a task-id, or any of --organization, --reason, --since and --before.")
  }
  const actor = yield* Commands.commandLine
  if (isOne) {
    const which = yield* identityOf(given)
    return yield* Tasks.Replay.$match(yield* Commands.replayTask(actor, which), {
      Replayed: () => Output.print(`Replaying ${which.id}`),
      NotDead: ({ state }) => refused(`Task ${which.id} is ${state}. Only dead tasks can be replayed.`),
      NotFound: () => notFound(which)
    })
  }
  if (!yes) {
    const count = Math.min(yield* Tasks.countDead(filter), Tasks.mostCounted)
    if (count === 0) return yield* refused("No dead task matches.")
    return yield* refused(`Nothing was changed. Add --yes to replay ${counted(count, "dead task")}.`)
  }
  yield* Output.print(`Replaying ${counted(yield* Commands.replayDead(actor, filter, Tasks.mostCounted), "task")}`)
})

const cancel = command("tasks cancel", Operators.tasks, {
  description: "Cancel a scheduled or dead deletion task: it never runs, and its key cannot be reused",
  examples: [["practice-data tasks cancel 6a1f7a52-6f0b-5d8e-9f43-0d7f0f0d2c11"]],
  flags: identity
})(function* (given) {
  const which = yield* identityOf(given)
  yield* Facts.Cancel.$match(yield* Commands.cancelTask(yield* Commands.commandLine, which), {
    Cancelled: ({ undone }) =>
      Output.print(`Cancelled ${which.id}${undone === 0 ? "" : `, and undone ${counted(undone, "item")}`}`),
    NotOpen: ({ state }) => refused(`Task ${which.id} is ${state}. Only scheduled or dead tasks can be cancelled.`),
    NotFound: () => notFound(which)
  })
})

export const tasks = Command.make("tasks").pipe(
  Command.withDescription("Deletion tasks"),
  Command.withSubcommands([list, show, replay, cancel])
)

const itemFields = ["kind", "id", "verdict", "deleted_at", "undone_at"]

const listItems = command("deletions list", Operators.tasks, {
  description: `List the items of deliveries, with their verdict, newest first. Without --organization, --id searches at most ${counted(Tasks.mostOrganizations, "organization")}.`,
  examples: [
    ["practice-data deletions list --organization org_1 --id invoice_1", "Look up an invoice or line"],
    ["practice-data deletions list --verdict not_found", "List items that are deleted on arrival"]
  ],
  flags: {
    organization: Operators.ofOne("deletions"),
    verdict: Output.optional(
      Flag.Literals("verdict", Facts.verdicts).pipe(Flag.withDescription("Only items with this verdict"))
    ),
    id: Output.text("id", "Only the invoice or line with this id"),
    limit: Output.limit("items"),
    json: Output.json
  }
})(function* ({ json, limit, ...filter }) {
  yield* Output.rows(json, yield* Facts.list(filter, limit), [...itemFields, "organization_id", "task_id"])
})

const showItems = command("deletions show", Operators.tasks, {
  description:
    "Show the verdict of each item of a deletion task: deleted, not_found (deleted on arrival, while it is remembered), or the id that does not match. Skipped items are kept for TASK_RETENTION. `unsettled_since`: open transactions may still add rows.",
  examples: [["practice-data deletions show 6a1f7a52-6f0b-5d8e-9f43-0d7f0f0d2c11"]],
  flags: { ...identity, limit: Output.limit("items"), json: Output.json }
})(function* ({ json, limit, ...given }) {
  const which = yield* identityOf(given)
  const task = Option.getOrUndefined(yield* Tasks.details(which))
  if (task === undefined) return yield* notFound(which)
  const { counts, items } = yield* Facts.ofTask(task.organization_id, task.id, limit)
  const { idempotency_key, organization_id, state, unsettled_since } = task
  const summary = {
    id: task.id,
    organization_id,
    idempotency_key,
    state,
    unsettled_since,
    items: Record.fromIterableWith(counts, (count) => [`${count.kind}_${count.verdict}`, count.items])
  }
  if (json) return yield* Output.record({ ...summary, facts: items })
  yield* Output.shown(false, summary)
  yield* Output.rows(false, items, [...itemFields, "clinic_id", "client_id", "invoice_id"])
  const all = counts.reduce((sum, count) => sum + count.items, 0)
  if (all > items.length) yield* Output.note(`${all - items.length} more: raise --limit.`)
})

const undo = command("deletions undo", Operators.tasks, {
  description:
    "Undo a deletion task, or all deletions of an invoice with its lines, or of a line. Records reappear within seconds, unless another deletion or their loader deletes them. Items that were not found are no longer deleted on arrival.",
  examples: [
    ["practice-data deletions undo --task 6a1f7a52-6f0b-5d8e-9f43-0d7f0f0d2c11 --yes"],
    ["practice-data deletions undo --organization org_1 --invoice invoice_1"]
  ],
  flags: {
    organization: Operators.ofOne("deletions"),
    task: Output.text("task", "Id of the task to undo"),
    invoice: Output.text("invoice", "Id of the invoice to restore with its lines; with --organization"),
    line: Output.text("line", "Id of the line to restore; with --organization"),
    yes: Output.flag("yes", "Undo a task; without it, only count its items")
  }
})(function* ({ invoice, line, organization: owner, task, yes }) {
  const wrong = misused("Use either --task, or --organization with --invoice or --line.")
  if ([invoice, line, task].filter((each) => each !== undefined).length !== 1) return yield* wrong
  const actor = yield* Commands.commandLine
  if (task !== undefined) {
    const details = Option.getOrUndefined(yield* Tasks.details({ id: task, organization: owner }))
    if (details === undefined) return yield* notFound({ id: task, organization: owner })
    const target = { organization: details.organization_id, task: details.id }
    const count = yield* Facts.countUndoable(target)
    if (count === 0) {
      const hint = details.state === "scheduled" || details.state === "dead" ? " Cancel it: tasks cancel." : ""
      return yield* refused(`Task ${task} is ${details.state} and has nothing to undo.${hint}`)
    }
    if (!yes) return yield* refused(`Nothing was changed. Add --yes to undo ${counted(count, "item")}.`)
    return yield* Output.print(`Undone: ${counted(yield* Commands.undoDeletions(actor, target), "item")}`)
  }
  if (owner === undefined) return yield* wrong
  const target = {
    organization: owner,
    kind: line === undefined ? "invoice" : "line",
    id: line ?? invoice ?? ""
  } as const
  const count = yield* Commands.undoDeletions(actor, target)
  if (count === 0) {
    return yield* refused(`No deletion of ${owner} names the ${target.kind} ${target.id}, or it was undone.`)
  }
  yield* Output.print(`Undone: ${counted(count, "item")}`)
})

export const deletions = Command.make("deletions").pipe(
  Command.withDescription("Deleted items of deliveries, and undo"),
  Command.withSubcommands([listItems, showItems, undo])
)
