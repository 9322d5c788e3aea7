/** `tasks`: deletion tasks. */
import { DateTime, Effect, Option, Record, Schema, Struct } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { State } from "../api/DeletionTasks.ts"
import { taskIdOf } from "../deletions/Delivery.ts"
import { maximumAttempts } from "../deletions/Retries.ts"
import { totalsOf } from "../deletions/WorkerTasks.ts"
import * as Facts from "../deletions/Facts.ts"
import * as Tasks from "../deletions/OperatorTasks.ts"
import * as Commands from "../operations/Commands.ts"
import { counted } from "../operations/Format.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import { command, misused, refused } from "./Usage.ts"

const organization = Operators.ofOne("tasks")

/** A task with its outcome in one line, or its last error. */
const inBrief = (task: Tasks.Task) => {
  if (task.outcome === null) return { ...task, outcome: task.last_error }
  const { invoices, lines, notDeleted } = totalsOf(task.outcome)
  return {
    ...task,
    outcome: `deleted ${counted(invoices, "invoice")} and ${counted(lines, "line")}; ${notDeleted} not`
  }
}

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
  yield* Output.rows(json, json ? tasks : tasks.map(inBrief), fields)
})

/** The flags that name a task. */
export const identity = {
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

export const identityOf = Effect.fnUntraced(function* (given: Given) {
  const { id, idempotencyKey: key, organization: owner } = given
  if (id !== undefined && key === undefined) return { id, organization: owner }
  if (id === undefined && key !== undefined && owner !== undefined) {
    return { id: taskIdOf(owner, key), organization: owner }
  }
  return yield* misused("Use either a task-id, or --idempotency-key with --organization.")
})

export const notFound = ({ id }: Tasks.Identity) => refused(`No such task: ${id}`)

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
    Flag.withSchema(Schema.DateTimeUtcFromString),
    Flag.map(DateTime.formatIso),
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
