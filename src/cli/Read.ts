/** `get` and `search`: records, by the filters of the API. `openapi`: the documents of the APIs. */
import { Array, Effect, Layer, Option, Predicate, Record, Stream } from "effect"
import { Argument, Flag } from "effect/cli"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../api/DataApi.ts"
import { VersionOneApi } from "../api/IntakeApi.ts"
import { type AnyResource, resources, type Verb } from "../client/index.ts"
import { sendRequest, clientOf, connection, refusalOf } from "./Connection.ts"
import * as Output from "./Output.ts"
import { command, misused } from "./Usage.ts"

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

const read = ({ all, live = false }: AnyResource, filters: object, limit: number) => {
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
  const records = read(client, filters, limit + 1).pipe(
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
