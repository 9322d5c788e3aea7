/** `send`. */
import { Clock, DateTime, Duration, Effect, Option, Redacted } from "effect"
import { Command, Flag } from "effect/cli"
import { type DeletionTask, InvoiceDeletions, type PracticeData } from "../client/index.ts"
import { invocation } from "../process/Package.ts"
import { ask, clientOf, connection, refuseSlips, variables } from "./Connection.ts"
import * as Delivery from "./Delivery.ts"
import { organization } from "./Organization.ts"
import * as Output from "./Output.ts"
import { Refused } from "./Refused.ts"
import { pairs, second } from "./Table.ts"
import * as TaskText from "./TaskText.ts"
import { misused } from "./Usage.ts"

const linesOf = (task: DeletionTask, owner: string) =>
  TaskText.lines({ ...task, id: task.task_id, organization_id: owner, last_error: null })

/** How long a task is waited for after it was to run. All its attempts may take longer. */
const patience = Duration.minutes(10)

/** Asks until the task has ended. */
const follow = Effect.fnUntraced(function* (client: PracticeData, idempotencyKey: string, scheduledFor: string) {
  const until = DateTime.toEpochMillis(DateTime.makeUnsafe(scheduledFor)) + Duration.toMillis(patience)
  const look = ask((signal) => client.invoiceDeletions.get({ idempotency_key: idempotencyKey }, { signal }))
  while (true) {
    const task = yield* look
    if (task.state === "completed" || task.state === "dead") return task
    if ((yield* Clock.currentTimeMillis) > until) {
      return yield* new Refused({ message: `The task ${task.task_id} is still ${task.state}.` })
    }
    yield* Effect.sleep("500 millis")
  }
})

const deletedNothing = ({ outcome, state }: DeletionTask) =>
  state === "dead" || (outcome !== null && outcome.invoices.deleted + outcome.invoice_lines.deleted === 0)

/** Sends a delivery to the intake, as a sender does. */
export const send = Command.make(
  "send",
  {
    organization,
    invoice: Flag.String("invoice").pipe(
      Flag.withDescription("Id of an invoice to delete with its lines; may be repeated"),
      Flag.atLeast(0)
    ),
    line: Flag.String("invoice-line").pipe(
      Flag.withDescription("Id of an invoice line to delete; may be repeated"),
      Flag.atLeast(0)
    ),
    file: Flag.String("file").pipe(
      Flag.withDescription("A file of JSON, as the intake takes it; - for standard input"),
      Flag.atLeast(0)
    ),
    key: Flag.String("key").pipe(
      Flag.withDescription("The Idempotency-Key of the delivery; a new one by default"),
      Flag.optional
    ),
    secret: Flag.Redacted("secret").pipe(
      Flag.withDescription("The signing secret, whsec_... (better: PRACTICE_DATA_SIGNING_SECRET)"),
      Flag.withFallbackConfig(variables.signingSecret),
      Flag.optional
    ),
    wait: Flag.Boolean("wait").pipe(
      Flag.withoutNegation,
      Flag.withDescription("Wait until the deletion has run, and show what it did. Needs the API key"),
      Flag.withDefault(false)
    ),
    ...connection,
    json: Output.json
  },
  Effect.fn(function* (given) {
    const delivery = yield* Delivery.of({ invoices: given.invoice, lines: given.line, files: given.file })
    yield* refuseSlips
    // Before anything is sent: a key that is missing would be found too late.
    const client = given.wait ? yield* clientOf(["send"], given) : undefined
    const sender = yield* Effect.try({
      try: () =>
        new InvoiceDeletions({
          baseUrl: given.url,
          organization: given.organization,
          secret: Option.getOrUndefined(Option.map(given.secret, (secret) => Redacted.value(secret)))
        }),
      catch: (error) => misused(["send"], `${error instanceof Error ? error.message : String(error)}.`)
    })
    const receipt = yield* ask((signal) =>
      sender.send(delivery, { signal, idempotencyKey: Option.getOrUndefined(given.key) })
    )
    if (client === undefined || !given.json) {
      yield* given.json
        ? Output.record(receipt)
        : Output.print(
            pairs([
              ["Status", receipt.status],
              ["Task", receipt.task_id],
              ["Idempotency-Key", receipt.idempotency_key],
              ["Scheduled for", `${second(receipt.scheduled_for)} UTC`]
            ])
          )
    }
    if (client === undefined) return
    yield* Output.note("Waiting until it has run ...")
    const task = yield* follow(client, receipt.idempotency_key, receipt.scheduled_for)
    yield* given.json ? Output.record(task) : Output.print(["", ...linesOf(task, given.organization)])
    if (deletedNothing(task)) return yield* new Refused({ message: "Nothing was deleted." })
  })
).pipe(
  Command.withDescription(
    "Send a delivery of invoice deletions to the intake, signed where there is a secret, and print its receipt. What it names is deleted."
  ),
  Command.withShortDescription("Send a delivery of invoice deletions"),
  Command.withExamples([
    { command: invocation("send --organization org_oakridge --invoice invoice_oakridge_0001 --key delivery-1") },
    {
      command: `PRACTICE_DATA_API_KEY=pda_demo_oakridge ${invocation("send --organization org_oakridge --invoice-line line_oakridge_0002_1 --wait")}`,
      description: "Wait for the outcome"
    },
    {
      command: `PRACTICE_DATA_SIGNING_SECRET=whsec_... ${invocation("send --organization org_1 --file delivery.json")}`
    }
  ])
)
