/** `search`. */
import { Effect, Option, Schema, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import type { AnyRecord, AnyResource } from "../client/index.ts"
import { invocation } from "../process/Package.ts"
import { ask, clientOf, connection, refusalOf } from "./Connection.ts"
import * as Output from "./Output.ts"
import * as RecordText from "./RecordText.ts"
import { filtersOf, resource } from "./Resources.ts"
import * as Table from "./Table.ts"
import { misused } from "./Usage.ts"

/** How many rows a table has at most before it is printed. */
const batch = 500

/** What one page has at most. */
const longestPage = ({ live }: AnyResource) => (live === true ? 100 : 1000)

const walk = ({ all }: AnyResource, filters: object) =>
  all === undefined
    ? Stream.empty
    : Stream.unwrap(
        Effect.map(Effect.abortSignal, (signal) => Stream.fromAsyncIterable(all(filters, { signal }), refusalOf))
      )

/** The records that were asked for. */
const read = (found: AnyResource, filters: object, limit: number, all: boolean) => {
  if (all) return walk(found, filters)
  if (limit > longestPage(found)) return Stream.take(walk(found, filters), limit)
  const page = ask((signal) => found.search?.({ ...filters, limit }, { signal }) ?? Promise.resolve([]))
  return Stream.fromIterableEffect(page)
}

/** The fields that fit beside each other, at least one of them. */
const fitting = (fields: ReadonlyArray<string>, rows: ReadonlyArray<AnyRecord>, width: number) => {
  const fits = fields.findIndex((_, index) => {
    const [head = ""] = Table.lines(RecordText.columnsOf(fields.slice(0, index + 1)), rows)
    return head.length > width
  })
  return fits === -1 ? fields : fields.slice(0, Math.max(1, fits))
}

const printTable = Effect.fnUntraced(function* (
  rows: ReadonlyArray<AnyRecord>,
  chosen: ReadonlyArray<string>,
  isFirst: boolean
) {
  const width = yield* Output.width
  const all = chosen.length === 0 ? Object.keys(rows[0] ?? {}) : chosen
  const fields = fitting(all, rows, width)
  const lines = Table.lines(RecordText.columnsOf(fields), rows, width)
  yield* Output.print(lines.slice(isFirst ? 0 : 1))
  if (isFirst && fields.length < all.length) {
    yield* Output.note(
      `${all.length - fields.length} more fields do not fit: choose some with --fields, or use --json.`
    )
  }
})

/** Reads the records of a resource. */
export const search = Command.make(
  "search",
  {
    resource: resource("search"),
    filter: Flag.KeyValuePair("filter").pipe(
      Flag.withAlias("f"),
      Flag.withMetavar("name=value"),
      Flag.withDescription("Only records that satisfy this filter of the API; several filters must all hold"),
      Flag.withDefault({})
    ),
    limit: Flag.Int("limit").pipe(
      Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 }))),
      Flag.withDescription("How many records at most, 100 by default"),
      Flag.optional
    ),
    all: Flag.Boolean("all").pipe(
      Flag.withoutNegation,
      Flag.withDescription("All records, page after page"),
      Flag.withDefault(false)
    ),
    fields: Flag.String("fields").pipe(
      Flag.withDescription("The fields to show, separated by commas; all by default"),
      Flag.map((text) => text.split(",").map((field) => field.trim())),
      Flag.withDefault([])
    ),
    ...connection,
    json: Output.json
  },
  Effect.fn(function* (given) {
    if (given.all && Option.isSome(given.limit)) return yield* misused(["search"], "Give either --limit or --all.")
    const filters = yield* filtersOf(given.resource, given.filter)
    const client = yield* clientOf(["search"], given)
    const found = client.resource(given.resource)
    const records = read(
      found,
      filters,
      Option.getOrElse(given.limit, () => 100),
      given.all
    )
    let count = 0
    yield* records.pipe(
      Stream.grouped(given.json ? 1 : batch),
      Stream.runForEach((rows) => {
        const isFirst = count === 0
        count += rows.length
        return given.json
          ? Effect.forEach(rows, Output.record, { discard: true })
          : printTable(rows, given.fields, isFirst)
      })
    )
    if (count === 0) yield* Output.note(`There are no ${given.resource} to show.`)
  })
).pipe(
  Command.withDescription(
    "Read records of the organization that the API key belongs to, by the filters of the API, oldest change first. Times are in UTC. To keep a copy of all, use sync."
  ),
  Command.withShortDescription("Read the records of a resource"),
  Command.withExamples([
    {
      command: `PRACTICE_DATA_API_KEY=pda_demo_oakridge ${invocation("search charges --filter status=open --limit 10")}`
    },
    { command: invocation("search invoices --fields id,status,total --filter updated_at_since=2026-01-10") },
    { command: `${invocation("search consumption-logs --all --json")} > consumption-logs.ndjson` }
  ])
)
