/** `deletions`: what became of the invoices and lines that deliveries name, and the way back. */
import { Option, Record } from "effect"
import { Command, Flag } from "effect/cli"
import * as Facts from "../deletions/Facts.ts"
import * as Tasks from "../deletions/OperatorTasks.ts"
import * as Commands from "../operations/Commands.ts"
import { counted } from "../operations/Format.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import { identity, identityOf, notFound } from "./Tasks.ts"
import { command, misused, refused } from "./Usage.ts"

const organization = Operators.ofOne("deletions")

const fields = ["kind", "id", "verdict", "deleted_at", "undone_at"]

const list = command("deletions list", Operators.tasks, {
  description: `List the items of deliveries, with their verdict, newest first. Without --organization, --id searches at most ${counted(Tasks.mostOrganizations, "organization")}.`,
  examples: [
    ["practice-data deletions list --organization org_1 --id invoice_1", "Look up an invoice or line"],
    ["practice-data deletions list --verdict not_found", "List items that are deleted on arrival"]
  ],
  flags: {
    organization,
    verdict: Output.optional(
      Flag.Literals("verdict", Facts.verdicts).pipe(Flag.withDescription("Only items with this verdict"))
    ),
    id: Output.text("id", "Only the invoice or line with this id"),
    limit: Output.limit("items"),
    json: Output.json
  }
})(function* ({ json, limit, ...filter }) {
  yield* Output.rows(json, yield* Facts.list(filter, limit), [...fields, "organization_id", "task_id"])
})

const show = command("deletions show", Operators.tasks, {
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
  yield* Output.rows(false, items, [...fields, "clinic_id", "client_id", "invoice_id"])
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
    organization,
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
  Command.withSubcommands([list, show, undo])
)
