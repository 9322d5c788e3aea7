/**
 * The deletion of rows for good, in batches that each are a transaction and wait shortly for locks; and the erasure of a
 * client with all that hangs on it. A deletion that is cut short is run again.
 */
import { Effect, Number, Record, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { rowsOf, textsOf } from "../database/Columns.ts"
import { type Database, TaskDatabase } from "../database/Database.ts"
import { Payload } from "../deletions/OperatorTasks.ts"
import { type Actor, log } from "./Commands.ts"

/** The rows of a batch. It holds its locks for a fraction of a second. */
const batch = 1000

/** Runs statements in a transaction that fails soon where another one holds a lock. */
export const briefly = <A, E, R>(sql: Database, statements: Effect.Effect<A, E, R>) =>
  sql.withTransaction(Effect.andThen(sql`set local lock_timeout = '1s'`, statements))

/** The ids of rows of an organization in batches, each after the one before. */
export const forEachBatch = Effect.fnUntraced(function* <E>(
  sql: Database,
  table: string,
  condition: Fragment,
  run: (ids: ReadonlyArray<string>) => Effect.Effect<unknown, E>
): Effect.fn.Return<void, SqlError | E> {
  for (let last = ""; ;) {
    const ids: ReadonlyArray<string> = yield* textsOf(sql`
      select t.id as text from ${sql(table)} t where ${condition} and t.id > ${last}
      order by t.id limit ${sql.literal(String(batch))}`)
    const next = ids.at(-1)
    if (next === undefined) return
    yield* run(ids)
    last = next
  }
})

/** Deletes records of an organization, and returns their number. Readers of changes see each as removed. */
export const deleteRecords = (sql: Database, table: string, organization: string, ids: ReadonlyArray<string>) =>
  Effect.map(
    briefly(
      sql,
      sql`delete from ${sql(table)} where organization_id = ${organization} and id = any (${ids}::text[]) returning 1`
    ),
    ({ length }) => length
  )

/** Runs the deletion of a batch until nothing is left, and returns the number of rows. */
export const deleteRest = Effect.fnUntraced(function* (
  sql: Database,
  deletion: Effect.Effect<ReadonlyArray<unknown>, SqlError>
) {
  for (let count = 0; ;) {
    const { length } = yield* briefly(sql, deletion)
    if (length === 0) return count
    count += length
  }
})

/** A client of an organization. */
export type Client = Readonly<{ organization: string; client: string }>

/** Records that refer to others by a column, but for those of another client. Records of the last list refer to them. */
interface Node {
  readonly table: string
  readonly by: string
  readonly unless?: (sql: Database, client: Client) => Fragment
  readonly children: ReadonlyArray<Node>
}

const node = (table: string, by: string, children: ReadonlyArray<Node> = [], unless?: Node["unless"]): Node =>
  unless === undefined ? { table, by, children } : { table, by, children, unless }

/** The invoice is that of another client, to whom its pet belonged. */
const ofAnother: Node["unless"] = (sql, { client, organization }) => sql`
  exists (
    select from invoices i where i.organization_id = ${organization} and i.id = t.invoice and i.client_id <> ${client}
  )`

/** The line is on an invoice of another client. */
const onAnother: Node["unless"] = (sql, { client, organization }) => sql`
  exists (
    select from invoice_lines l
    join invoices i on i.organization_id = ${organization} and i.id = l.invoice and i.client_id <> ${client}
    where l.organization_id = ${organization} and l.id = t.invoice_line
  )`

const ofCharge = ["charge_payments", "charge_adjustments", "charge_refunds"].map((table) => node(table, "charge"))
const ofLine = [node("consumption_logs", "invoice_line")]
const ofInvoice = [node("invoice_lines", "invoice", ofLine), node("charges", "invoice", ofCharge)]
const plans = ["payment_plans", "payment_intents", "cancellation_payment_intents", "pet_benefits"]
const ofSubscription = [
  node("consumption_logs", "subscription", [], onAnother),
  ...plans.map((table) => node(table, "subscription"))
]
const ofPet = [
  node("invoices", "pet", ofInvoice, (sql) => sql`t.client_id is not null`),
  node("invoice_lines", "pet", ofLine, ofAnother),
  node("charges", "pet", ofCharge, ofAnother),
  node("consumption_logs", "pet", [], onAnother),
  ...plans.map((table) => node(table, "pet")),
  node("subscriptions", "pet", ofSubscription)
]

const ofClient = [node("invoices", "client_id", ofInvoice), node("pets", "client_id", ofPet)]

/** Visits records in batches. Each is visited after those that refer to it, so that a walk that is cut short starts again. */
const walk = Effect.fnUntraced(function* <E>(
  sql: Database,
  client: Client,
  visit: (table: string, ids: ReadonlyArray<string>) => Effect.Effect<unknown, E>,
  nodes: ReadonlyArray<Node> = ofClient,
  parents: ReadonlyArray<string> = [client.client]
): Effect.fn.Return<void, SqlError | E> {
  for (const { by, children, table, unless } of nodes) {
    const isTheirs = unless === undefined ? sql`true` : sql`not ${unless(sql, client)}`
    const condition = sql`
      t.organization_id = ${client.organization} and t.${sql(by)} = any (${parents}::text[]) and ${isTheirs}`
    yield* forEachBatch(sql, table, condition, (ids) =>
      Effect.andThen(walk(sql, client, visit, children, ids), visit(table, ids))
    )
  }
})

const tasksOf = rowsOf(Schema.Struct({ payload: Payload }))

/** The ids of records of a client that items of deliveries may name. */
type Named = Readonly<Record<"invoices" | "lines", ReadonlyArray<string>>>

/** The most ids that are looked for at once in all payloads. */
const mostNamed = 50_000

/**
 * Takes the items that name a client, or records of it, out of the payloads of tasks, and deletes the facts about them.
 * Returns the numbers of both by their table.
 */
const eraseItems = Effect.fnUntraced(function* (sql: Database, { client, organization }: Client, named: Named) {
  const [invoices, lines] = [new Set(named.invoices), new Set(named.lines)]
  const isKept = (item: Readonly<Record<string, string | null>>) =>
    item["client_id"] !== client && !invoices.has(item["invoice_id"] ?? "") && !lines.has(item["invoice_line_id"] ?? "")
  // All payloads of the organization are read, which locks nothing and may take its time. A plan for these very ids is
  // ten times as fast.
  const after = (last: string) =>
    sql.withTransaction(
      Effect.andThen(
        sql`set local statement_timeout = 0`,
        textsOf(
          sql`
          select id::text as text from deletion_tasks
          where organization_id = ${organization} and id > ${last}::uuid and payload is not null and exists (
            select from jsonb_array_elements(
              coalesce(payload -> 'invoices', '[]') || coalesce(payload -> 'invoice_lines', '[]')
            ) item
            where item ->> 'client_id' = ${client} or item ->> 'invoice_id' = any (${named.invoices}::text[])
              or item ->> 'invoice_line_id' = any (${named.lines}::text[])
          )
          order by id limit ${sql.literal(String(batch))}`.unprepared
        )
      )
    )
  let erased = 0
  const eraseIn = Effect.fnUntraced(function* (id: string) {
    const isTask = sql`organization_id = ${organization} and id = ${id}::uuid`
    const [task] = yield* tasksOf(sql`
      select payload from deletion_tasks where ${isTask} and payload is not null for update`)
    if (task === undefined) return
    const { invoice_lines = [], invoices: found = [] } = task.payload
    const kept = { invoices: found.filter(isKept), invoice_lines: invoice_lines.filter(isKept) }
    yield* sql`update deletion_tasks set payload = ${sql.json(kept)}::jsonb where ${isTask}`
    erased += found.length + invoice_lines.length - kept.invoices.length - kept.invoice_lines.length
  })
  const facts = sql`
    delete from deletions where organization_id = ${organization} and (task_id, kind, item) in (
      select task_id, kind, item from deletions
      where organization_id = ${organization} and (
        client_id = ${client} or invoice_id = any (${named.invoices}::text[])
        or (kind = 'invoice' and id = any (${named.invoices}::text[])) or (kind = 'line' and id = any (${named.lines}::text[]))
      )
      limit ${sql.literal(String(batch))}
    ) returning 1`.unprepared
  let ids = yield* after("00000000-0000-0000-0000-000000000000")
  while (ids.length > 0) {
    for (const id of ids) yield* briefly(sql, eraseIn(id))
    ids = yield* after(ids.at(-1) ?? "")
  }
  return { deletion_tasks: erased, deletions: yield* deleteRest(sql, facts) }
})

/** Records by their table. */
export type Counts = Readonly<Record<string, number>>

/** The most records of a client that are counted: more are hardly those of one person. */
export const mostCounted = 100_000

/** A client has more than `mostCounted` records. */
export class ManyRecords extends Schema.TaggedError<ManyRecords>()("ManyRecords", {}) {}

/** Counts the records of a client by their table. */
export const countRecords = Effect.fn("Erasure.countRecords")(function* (client: Client) {
  const sql = yield* TaskDatabase
  // A record is reached in several ways, as by its pet and by its subscription.
  const found = new Map<string, Set<string>>()
  yield* walk(sql, client, (table, ids) => {
    found.set(table, new Set([...(found.get(table) ?? []), ...ids]))
    const count = Number.sumAll([...found.values()].map(({ size }) => size))
    return count > mostCounted ? Effect.fail(new ManyRecords()) : Effect.void
  })
  return Record.map(Object.fromEntries(found), ({ size }): number => size)
})

/**
 * Deletes the records of a client for good, and what deliveries of deletions said of them. Returns the records by their
 * table; for `deletion_tasks` the items, for `deletions` the facts. Logs its start and its end.
 */
export const eraseClient = Effect.fn("Erasure.eraseClient")(function* (actor: Actor, client: Client) {
  const sql = yield* TaskDatabase
  const logged = (result: string) => log(sql, actor, "client.erase", [client.organization, client.client, result])
  const erased: Record<string, number> = {}
  const add = (table: string, count: number) => {
    if (count > 0) erased[table] = (erased[table] ?? 0) + count
  }
  yield* logged("started")
  // These are found by the records, so they go first.
  let named: Record<keyof Named, Array<string>> = { invoices: [], lines: [] }
  const eraseNamed = Effect.suspend(() => {
    const erasing = eraseItems(sql, client, named)
    named = { invoices: [], lines: [] }
    return Effect.map(erasing, (counts) => Object.entries(counts).forEach(([table, count]) => add(table, count)))
  })
  yield* walk(sql, client, (table, ids) => {
    if (table === "invoices") named.invoices.push(...ids)
    if (table === "invoice_lines") named.lines.push(...ids)
    return named.invoices.length + named.lines.length < mostNamed ? Effect.void : eraseNamed
  })
  yield* eraseNamed
  yield* walk(sql, client, (table, ids) =>
    Effect.map(deleteRecords(sql, table, client.organization, ids), (count) => add(table, count))
  )
  yield* logged(`erased ${Number.sumAll(Object.values(erased))}`)
  return erased
})
