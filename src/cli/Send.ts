/** `send`. */
import { Duration, Effect, FileSystem, Layer, Option, Redacted, Schema, Stdio, Stream } from "effect"
import { Flag } from "effect/cli"
import { InvoiceDeletions as Delivery } from "../api/IntakeApi.ts"
import { InvoiceDeletions, type PracticeData } from "../client/index.ts"
import { totalsOf } from "../deletions/WorkerTasks.ts"
import { reasonOfFile } from "../process/Failure.ts"
import { sendRequest, clientOf, connection, make, refuseSlips, variables } from "./Connection.ts"
import { organization } from "./Operators.ts"
import * as Output from "./Output.ts"
import { command, misused, refused } from "./Usage.ts"

const decode = Schema.decodeEffect(Schema.fromJsonString(Delivery))

const textOf = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const { stdin } = yield* Stdio.Stdio
  return yield* file === "-" ? Stream.mkString(Stream.decodeText(stdin)) : fs.readFileString(file)
})

const readFile = (file: string) =>
  Effect.catchTags(Effect.flatMap(textOf(file), decode), {
    PlatformError: (error) => refused(`Cannot read ${file}: ${reasonOfFile(error)}`),
    SchemaError: ({ message }) => refused(`${file} is not a valid delivery. ${message.replaceAll(/\s+/g, " ")}`)
  })

/** Polls a task until it has ended, for ten minutes after it is due. All its attempts may take longer. */
const follow = Effect.fnUntraced(function* (client: PracticeData, idempotencyKey: string, scheduledFor: string) {
  const until = Date.parse(scheduledFor) + Duration.toMillis("10 minutes")
  while (true) {
    const { data: task, headers } = yield* sendRequest((signal) =>
      client.invoiceDeletions.get({ idempotency_key: idempotencyKey }, { signal }).withResponse()
    )
    if (task.state !== "scheduled" && task.state !== "running") return task
    // Both times are of the service's clock.
    if (Date.parse(headers.get("date") ?? "") > until) {
      return yield* refused(`The task ${task.task_id} is still ${task.state}.`)
    }
    yield* Effect.sleep("500 millis")
  }
})

const several = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.withDescription(description), Flag.atLeast(0))

export const send = command("send", Layer.empty, {
  description:
    "Send a delivery of invoice deletions to the intake, signed if a secret is set, and print its receipt. The items that it names are deleted.",
  examples: [
    ["practice-data send --organization org_oakridge --invoice invoice_oakridge_0001 --key delivery-1"],
    ["practice-data send --organization org_oakridge --invoice-line line_oakridge_0002_1 --wait"],
    ["PRACTICE_DATA_SIGNING_SECRET=whsec_... practice-data send --organization org_1 --file delivery.json"]
  ],
  flags: {
    organization,
    invoice: several("invoice", "Id of an invoice to delete with its lines; repeatable"),
    line: several("invoice-line", "Id of an invoice line to delete; repeatable"),
    file: several("file", "JSON file with the body of the delivery; - for standard input"),
    key: Output.text("key", "Idempotency-Key of the delivery; default a new one"),
    secret: Flag.Redacted("secret").pipe(
      Flag.withDescription("Signing secret, whsec_... (prefer PRACTICE_DATA_SIGNING_SECRET)"),
      Flag.withFallbackConfig(variables.signingSecret),
      Flag.optional
    ),
    wait: Output.flag("wait", "Wait until the deletion has run and show its outcome. Requires an API key"),
    ...connection,
    json: Output.json
  }
})(function* (given) {
  const read = yield* Effect.forEach(given.file, readFile)
  const delivery = {
    invoices: [
      ...given.invoice.map((invoice_id) => ({ invoice_id })),
      ...read.flatMap(({ invoices }) => invoices ?? [])
    ],
    invoice_lines: [
      ...given.line.map((invoice_line_id) => ({ invoice_line_id })),
      ...read.flatMap(({ invoice_lines }) => invoice_lines ?? [])
    ]
  }
  if (delivery.invoices.length + delivery.invoice_lines.length === 0) {
    return yield* misused("Nothing to delete. Use --invoice, --invoice-line or --file.")
  }
  yield* refuseSlips
  // Before anything is sent: a missing key would be found too late.
  const client = given.wait ? yield* clientOf(given) : undefined
  const secret = Option.getOrUndefined(Option.map(given.secret, (text) => Redacted.value(text)))
  const sender = yield* make(
    () => new InvoiceDeletions({ baseUrl: given.url, organization: given.organization, secret })
  )
  const receipt = yield* sendRequest((signal) => sender.send(delivery, { signal, idempotencyKey: given.key }))
  if (client === undefined) return yield* Output.shown(given.json, receipt)
  if (!given.json) yield* Output.shown(false, receipt)
  yield* Output.note("Waiting for the deletion to run ...")
  const task = yield* follow(client, receipt.idempotency_key, receipt.scheduled_for)
  yield* Output.shown(given.json, task)
  const { invoices, lines } = task.outcome === null ? { invoices: 0, lines: 0 } : totalsOf(task.outcome)
  if (invoices + lines === 0) return yield* refused("Nothing was deleted.")
})
