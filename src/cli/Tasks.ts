/** `tasks`, and the text of a deletion task. */
import { Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Outcome, State } from "../api/DeletionTasks.ts"
import { taskIdOf } from "../deletions/Delivery.ts"
import { maximumAttempts } from "../deletions/Task.ts"
import * as Tasks from "../deletions/Tasks.ts"
import * as Commands from "../operations/Commands.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import { documented, misused, Refused } from "./Usage.ts"

const organization = Operators.ofOne("tasks")

const { counted } = Output

const names = { invoices: "invoice", invoice_lines: "line" } as const

const deletedText = ({ invoices, invoice_lines, lines_of_invoices }: Outcome) => {
  const ofInvoices = `${counted(invoices.deleted, "invoice")} with ${counted(lines_of_invoices, "line")}`
  const ofLines = `${counted(invoice_lines.deleted, "line")} named by itself`
  const deleted = [...(invoices.deleted > 0 ? [ofInvoices] : []), ...(invoice_lines.deleted > 0 ? [ofLines] : [])]
  return deleted.length === 0 ? "nothing" : deleted.join(", ")
}

/** The outcome of a task in one line, or its last error. */
const inBrief = ({ last_error, outcome }: Pick<Tasks.Task, "last_error" | "outcome">) => {
  if (outcome === null) return last_error
  const { notDeleted } = Tasks.totalsOf(outcome)
  return `deleted ${deletedText(outcome)}${notDeleted === 0 ? "" : `; ${notDeleted} not`}`
}

const time = (text: string | null) => (text === null ? null : `${Output.second(text)} UTC`)

type Shown = Omit<Tasks.TaskDetails, "due_at" | "trace_parent">

/** The lines about a task. */
export const taskLines = (task: Shown): ReadonlyArray<string> => {
  const { outcome } = task
  const missed = outcome === null ? [] : Tasks.notDeleted(outcome)
  return Output.pairs([
    ["Task", task.id],
    ["Organization", task.organization_id],
    ["Idempotency-Key", task.idempotency_key],
    ["State", task.state],
    ["Names", `${counted(task.invoices_count, "invoice")} and ${counted(task.invoice_lines_count, "line")}`],
    ["Received", time(task.received_at)],
    ["Scheduled for", time(task.scheduled_for)],
    ["Started", time(task.started_at)],
    ["Finished", time(task.finished_at)],
    ["Attempts", `${task.attempts} of ${maximumAttempts}`],
    ["Last error", task.last_error],
    ["Deleted", outcome === null ? null : deletedText(outcome)],
    ["Not deleted", missed.map(({ count, items, reason }) => `${counted(count, names[items])}: ${reason}`)]
  ])
}

const columns: Output.Columns<Tasks.Task> = {
  TASK: "id",
  STATE: "state",
  ORGANIZATION: "organization_id",
  "IDEMPOTENCY-KEY": "idempotency_key",
  "SCHEDULED (UTC)": "scheduled_for",
  ATTEMPTS: "attempts",
  OUTCOME: inBrief
}

const list = Command.make(
  "list",
  {
    state: Flag.optional(Flag.Literals("state", State.literals).pipe(Flag.withDescription("Only tasks of this state"))),
    organization,
    limit: Output.limit("tasks"),
    json: Output.json
  },
  Effect.fn(function* (options) {
    const state = Option.getOrUndefined(options.state)
    const owner = Option.getOrUndefined(options.organization)
    yield* Output.rows(yield* Tasks.list({ state, organization: owner, limit: options.limit }), {
      columns,
      json: options.json,
      none: `There is no ${state === undefined ? "" : `${state} `}task${owner === undefined ? "" : ` of ${owner}`}.`
    })
  })
).pipe(
  documented(
    "List deletion tasks",
    [
      ["practice-data tasks list --state dead", "See which deletions need a look"],
      ["practice-data tasks list --organization org_1 --json | jq -r .id"]
    ],
    "List deletion tasks, those that were scheduled for the latest time first"
  )
)

/** The arguments that identify a task. */
const identity = {
  id: Argument.String("task-id").pipe(
    Argument.withDescription("Id of the task, as the intake returned it"),
    Argument.withSchema(Schema.String.check(Schema.isUUID())),
    Argument.optional
  ),
  organization,
  idempotencyKey: Flag.String("idempotency-key").pipe(
    Flag.withDescription("Instead of the id: the Idempotency-Key of the delivery, with --organization"),
    Flag.optional
  )
}

type Given = Readonly<Record<keyof typeof identity, Option.Option<string>>>

const identityOf = Effect.fnUntraced(function* (command: string, { id, idempotencyKey, organization: owner }: Given) {
  const named = Option.isSome(owner) ? ` of ${owner.value}` : ""
  if (Option.isSome(id) && Option.isNone(idempotencyKey)) {
    return { id: id.value, organization: Option.getOrUndefined(owner), name: `${id.value}${named}` }
  }
  if (Option.isNone(id) && Option.isSome(idempotencyKey) && Option.isSome(owner)) {
    const key = idempotencyKey.value
    return {
      id: taskIdOf(owner.value, key),
      organization: owner.value,
      name: `with the Idempotency-Key ${key}${named}`
    }
  }
  return yield* misused(["tasks", command], "Give either a task-id, or --idempotency-key with --organization.")
})

const notFound = (name: string) => new Refused({ message: `There is no task ${name}.` })

const show = Command.make(
  "show",
  { ...identity, json: Output.json },
  Effect.fn(function* (given) {
    const { name, ...which } = yield* identityOf("show", given)
    const found = yield* Tasks.show(which)
    if (Option.isNone(found)) return yield* notFound(name)
    yield* Output.shown(given.json, found.value, taskLines(found.value))
  })
).pipe(
  documented(
    "Show a deletion task and its outcome",
    [
      ["practice-data tasks show 6a1f7a52-6f0b-5d8e-9f43-0d7f0f0d2c11"],
      ["practice-data tasks show --organization org_1 --idempotency-key delivery-1"]
    ],
    "Show a deletion task: its times, what it deleted, and what it did not and why. With --json, also what its delivery names, while TASK_RETENTION keeps it."
  )
)

const replay = Command.make(
  "replay",
  identity,
  Effect.fn(function* (given) {
    const { name, ...which } = yield* identityOf("replay", given)
    yield* Tasks.Replay.$match(yield* Commands.replayTask(yield* Commands.commandLine, which), {
      Replayed: () => Output.print(`Replaying ${which.id}`),
      NotDead: ({ state }) =>
        Effect.fail(new Refused({ message: `Task ${which.id} is ${state}. Only a dead task can be replayed.` })),
      NotFound: () => Effect.fail(notFound(name))
    })
  })
).pipe(
  documented("Run a dead deletion task again, at once and with all its attempts", [
    ["practice-data tasks replay 6a1f7a52-6f0b-5d8e-9f43-0d7f0f0d2c11"]
  ])
)

export const tasks = Command.make("tasks").pipe(
  Command.withDescription("Deletion tasks"),
  Command.withSubcommands([list, show, replay]),
  Command.provide(Operators.tasks)
)
