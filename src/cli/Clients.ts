/** The commands of clients, by HTTP and the public client: `get` and `search`, `send`, and the connection that they share. */
import {
  Array,
  Config,
  Duration,
  Effect,
  FileSystem,
  Layer,
  Option,
  Predicate,
  Record,
  Redacted,
  Schema,
  Stdio,
  Stream
} from "effect"
import { Argument, Flag } from "effect/cli"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../api/DataApi.ts"
import { InvoiceDeletions as Delivery, VersionOneApi } from "../api/IntakeApi.ts"
import { type AnyResource, InvoiceDeletions, PracticeData, resources, type Verb } from "../client/index.ts"
import { totalsOf } from "../deletions/WorkerTasks.ts"
import { reasonOf, reasonOfFile } from "../process/Failure.ts"
import * as Variable from "../process/Variable.ts"
import { organization } from "./Operators.ts"
import * as Output from "./Output.ts"
import { command, misused, refused } from "./Usage.ts"

export const variables = {
  url: Config.NonEmptyString("PRACTICE_DATA_URL"),
  apiKey: Config.Redacted("PRACTICE_DATA_API_KEY"),
  signingSecret: Config.Redacted("PRACTICE_DATA_SIGNING_SECRET")
}

/** Fails if a variable is set whose name is a slip of one of these. */
export const refuseSlips = Variable.refuseSlips(
  Config.all(Object.values<Config.Config<unknown>>(variables).map(Config.option))
)

export const connection = {
  url: Flag.String("url").pipe(
    Flag.withDescription("URL of the service (PRACTICE_DATA_URL; default http://127.0.0.1:3000)"),
    Flag.withFallbackConfig(variables.url),
    Flag.withDefault("http://127.0.0.1:3000")
  ),
  // Others on the machine see a command line.
  apiKey: Flag.Redacted("api-key").pipe(
    Flag.withDescription("API key (prefer PRACTICE_DATA_API_KEY, which other users cannot see)"),
    Flag.withFallbackConfig(variables.apiKey),
    Flag.optional
  )
}

/** Makes a client. Arguments that it refuses are a usage error. */
const made = <A>(build: () => A) => Effect.try({ try: build, catch: (error) => misused(`${reasonOf(error)}.`) })

export const clientOf = Effect.fnUntraced(function* ({
  apiKey,
  url
}: Readonly<{ url: string; apiKey: Option.Option<Redacted.Redacted> }>) {
  yield* refuseSlips
  if (Option.isNone(apiKey)) {
    return yield* misused("No API key. Set PRACTICE_DATA_API_KEY or --api-key.")
  }
  return yield* made(() => new PracticeData({ baseUrl: url, apiKey: Redacted.value(apiKey.value) }))
})

const refusalOf = (error: unknown) => refused(reasonOf(error))

/** Sends a request. Interrupting it aborts the request. */
const sendRequest = <A>(request: (signal: AbortSignal) => Promise<A>) =>
  Effect.tryPromise({ try: request, catch: refusalOf })

const resource = (verb: Verb) =>
  Argument.Literals(
    "resource",
    resources.filter(({ verbs }) => verbs.includes(verb)).map(({ name }) => name)
  ).pipe(Argument.withMetavar("resource"), Argument.withDescription("Resource, as in the API's paths"))

export const get = command("get", Layer.empty, {
  description: "Read one record of the API key's organization. Times are in UTC.",
  examples: [
    ["PRACTICE_DATA_API_KEY=pda_demo_oakridge practice-data get charges charge_oakridge_0001"],
    ["practice-data get organization --json"],
    ["practice-data get invoice-deletions --idempotency-key delivery-1"]
  ],
  flags: {
    resource: resource("get"),
    id: Argument.String("id").pipe(
      Argument.withDescription("Id of the record; omit it for organization"),
      Argument.optional
    ),
    idempotencyKey: Flag.String("idempotency-key").pipe(
      Flag.withDescription("invoice-deletions only: the Idempotency-Key of the delivery, instead of the id"),
      Flag.optional
    ),
    ...connection,
    json: Output.json
  }
})(function* ({ id, idempotencyKey, resource: name, ...given }) {
  const key = Record.getSomes({ id, idempotency_key: idempotencyKey })
  const { get: read } = (yield* clientOf(given)).resource(name)
  yield* Output.shown(given.json, yield* sendRequest((signal) => read?.(key, { signal }) ?? Promise.resolve({})))
})

const dig = (value: unknown, ...path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((member, key) => (Predicate.hasProperty(member, key) ? member[key] : undefined), value)

/** The filters with their types, as the OpenAPI document has them. The service refuses those that are wrong. */
const filtersOf = (name: string, given: Readonly<Record<string, string>>) => {
  const body = dig(OpenApi.fromApi(DataApi), "paths", `/${name}/search`, "post", "requestBody")
  return Record.map(given, (text, field) => {
    const types = Array.ensure(dig(body, "content", "application/json", "schema", "properties", field, "type"))
    if (types.includes("boolean") && /^(true|false)$/.test(text)) return text === "true"
    return types.includes("integer") && /^-?\d{1,15}$/.test(text) ? Number(text) : text
  })
}

/** A filter. Its value may be empty, which finds records whose field is. */
const pairOf = (text: string) => {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  return name === undefined || value === undefined ? Option.none() : Option.some([name, value] as const)
}

/** A page has fields of its own in a request, and a request has a field once: what is given would be lost. */
const mistakesIn = (filters: ReadonlyArray<readonly [name: string, value: string]>) =>
  filters.flatMap(([name], at) => {
    if (["limit", "offset", "starting_after"].includes(name)) return [`${name} is no filter. Use --limit or --all.`]
    return filters.findIndex(([first]) => first === name) < at ? [`The filter ${name} is given twice.`] : []
  })

const recordsOf = ({ all, live = false }: AnyResource, filters: object, limit: number) => {
  const pageSize = Math.max(2, Math.min(limit, live ? 100 : 1000))
  if (all === undefined) return Stream.empty
  const pages = Effect.map(Effect.abortSignal, (signal) =>
    Stream.fromAsyncIterable(all(filters, { signal, pageSize }), refusalOf)
  )
  return Stream.take(Stream.unwrap(pages), limit)
}

export const search = command("search", Layer.empty, {
  description:
    "Search records of the API key's organization with the API's filters, oldest change first. Times are in UTC. To keep a full copy, use sync.",
  examples: [
    ["PRACTICE_DATA_API_KEY=pda_demo_oakridge practice-data search charges --filter status=open --limit 10"],
    ["practice-data search invoices --fields id,status,total --filter updated_at_since=2026-01-10"],
    ["practice-data search consumption-logs --all --json > consumption-logs.ndjson"]
  ],
  flags: {
    resource: resource("search"),
    filter: Flag.String("filter").pipe(
      Flag.withAlias("f"),
      Flag.withMetavar("name=value"),
      Flag.withDescription("An API filter; repeatable, filters combine with AND"),
      Flag.filterMap(pairOf, (text) => `Expected name=value, got: ${text}`),
      Flag.atLeast(0)
    ),
    limit: Output.optional(Output.integer("limit", 1, 1_000_000, "Maximum number of records, default 100")),
    all: Output.flag("all", "Fetch all records, page by page"),
    fields: Flag.String("fields").pipe(
      Flag.withDescription("Fields to show, separated by commas; default all"),
      Flag.map((text) => text.split(",").map((field) => field.trim())),
      Flag.withDefault([])
    ),
    ...connection,
    json: Output.json
  }
})(function* ({ fields, ...given }) {
  if (given.all && given.limit !== undefined) return yield* misused("Use either --limit or --all.")
  const [mistake] = mistakesIn(given.filter)
  if (mistake !== undefined) return yield* misused(mistake)
  const filters = filtersOf(given.resource, Record.fromEntries(given.filter))
  const client = (yield* clientOf(given)).resource(given.resource)
  const limit = given.limit ?? (given.all ? Infinity : 100)
  let hits = 0
  const records = recordsOf(client, filters, limit + 1).pipe(
    Stream.filter(() => ++hits <= limit),
    Stream.map((record) =>
      fields.length === 0 ? record : Object.fromEntries(fields.map((field) => [field, record[field] ?? null]))
    )
  )
  yield* given.json
    ? Stream.runForEach(records, Output.record)
    : // A table for so many at once.
      Stream.runForEach(Stream.grouped(records, 500), (rows) =>
        Output.print(Output.lines(Object.keys(rows[0] ?? {}), rows))
      )
  if (hits === 0) yield* Output.nothing
  if (hits > limit) yield* Output.note(`More than ${limit} records match. Raise --limit or use --all.`)
})

/** Prints an OpenAPI document, as the service does at `/api/v3/openapi.json` and `/api/v1/openapi.json`. */
export const openapi = command("openapi", Layer.empty, {
  description: "Print the OpenAPI 3.1 document of an API",
  examples: [["practice-data openapi v3 > openapi.json"]],
  flags: {
    version: Argument.Literals("version", ["v3", "v1"]).pipe(
      Argument.withDescription("v3: the data API (default). v1: the intake and health"),
      Argument.withDefault("v3")
    )
  }
})(function* ({ version }) {
  const document = version === "v3" ? OpenApi.fromApi(DataApi) : OpenApi.fromApi(VersionOneApi)
  yield* Output.print(JSON.stringify(document, null, 2).split("\n"))
})

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
  const sender = yield* made(
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
