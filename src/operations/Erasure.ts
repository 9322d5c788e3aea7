/**
 * The deletion of rows for good, in batches that each are a transaction and wait shortly for locks; and the erasure of a
 * client with all that hangs on it. A deletion that is cut short is run again.
 */
import { Effect, Number, Record, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { clients, references } from "../api/records/index.ts"
import { rowsOf, textsOf } from "../database/Columns.ts"
import { type Database, TaskDatabase } from "../database/Database.ts"
import { inLongTransaction } from "../database/script.ts"
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

export type Client = Readonly<{ organization: string; client: string }>

/** Conditions by table that leave out the records of another client, to whom the pet belonged. */
const isTheirs = (sql: Database, { client, organization }: Client): Readonly<Record<string, Fragment>> => {
  const isOfAnother = sql`i.organization_id = ${organization} and i.client_id <> ${client}`
  const isOnTheirs = sql`not exists (select from invoices i where ${isOfAnother} and i.id = t.invoice)`
  return {
    invoices: sql`coalesce(t.client_id = ${client}, true)`,
    invoice_lines: isOnTheirs,
    charges: isOnTheirs,
    consumption_logs: sql`not exists (
      select from invoice_lines l join invoices i on i.id = l.invoice and ${isOfAnother}
      where l.organization_id = ${organization} and l.id = t.invoice_line)`
  }
}

/**
 * Visits the records that refer to a client, and those that refer to them, in batches. Each is visited after those that
 * refer to it, so that a walk that is cut short starts again. A benefit is a leaf: its logs name its pet.
 */
const walk = Effect.fnUntraced(function* <E>(
  sql: Database,
  client: Client,
  visit: (table: string, ids: ReadonlyArray<string>) => Effect.Effect<unknown, E>
) {
  const conditions = isTheirs(sql, client)
  const visitReferring = Effect.fnUntraced(function* (
    target: string,
    parents: ReadonlyArray<string>
  ): Effect.fn.Return<void, SqlError | E> {
    for (const { column, table } of references.filter((reference) => reference.target === target)) {
      const condition = sql`
        t.organization_id = ${client.organization} and t.${sql(column)} = any (${parents}::text[])
        and ${conditions[table] ?? sql`true`}`
      yield* forEachBatch(sql, table, condition, (ids) =>
        Effect.andThen(table === "pet_benefits" ? Effect.void : visitReferring(table, ids), visit(table, ids))
      )
    }
  })
  yield* visitReferring(clients, [client.client])
})

const tasksOf = rowsOf(Schema.Struct({ payload: Payload }))

/** The ids of records of a client that items of deliveries may name. */
type Named = Readonly<Record<"invoices" | "lines", ReadonlyArray<string>>>

/** The most ids that are looked for at once in all payloads. */
const mostNamed = 50_000

/** Takes the items that name a client or its records out of payloads, and deletes the facts about them. Returns both numbers. */
const eraseItems = Effect.fnUntraced(function* (sql: Database, { client, organization }: Client, named: Named) {
  const [invoiceIds, lineIds] = [new Set(named.invoices), new Set(named.lines)]
  const isKept = (item: Readonly<Record<string, string | null>>) =>
    item["client_id"] !== client &&
    !invoiceIds.has(item["invoice_id"] ?? "") &&
    !lineIds.has(item["invoice_line_id"] ?? "")
  // All payloads of the organization are read, which locks nothing and may take its time. A plan for these very ids is
  // ten times as fast.
  const after = (last: string) =>
    inLongTransaction(
      sql,
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
  let erased = 0
  const eraseIn = Effect.fnUntraced(function* (id: string) {
    const isTask = sql`organization_id = ${organization} and id = ${id}::uuid`
    const [task] = yield* tasksOf(sql`
      select payload from deletion_tasks where ${isTask} and payload is not null for update`)
    if (task === undefined) return
    const { invoice_lines = [], invoices = [] } = task.payload
    // Facts are known by the places of their items. No record has a blank id, and with a clinic a fact is about no others.
    const kept = {
      invoices: invoices.map((item) => (isKept(item) ? item : { invoice_id: "", clinic_id: "" })),
      invoice_lines: invoice_lines.map((item) => (isKept(item) ? item : { invoice_line_id: "", clinic_id: "" }))
    }
    yield* sql`update deletion_tasks set payload = ${sql.json(kept)}::jsonb where ${isTask}`
    erased += [...invoices, ...invoice_lines].filter((item) => !isKept(item)).length
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

export type Counts = Readonly<Record<string, number>>

/** The most records of a client that are counted: more are hardly those of one person. */
export const mostCounted = 100_000

export class ManyRecords extends Schema.TaggedError<ManyRecords>()("ManyRecords", {}) {}

export const countRecords = Effect.fn("Erasure.countRecords")(function* (client: Client) {
  const sql = yield* TaskDatabase
  // A record is reached in several ways, as by its pet and by its subscription.
  const counted = new Map<string, Set<string>>()
  yield* walk(sql, client, (table, ids) => {
    counted.set(table, new Set([...(counted.get(table) ?? []), ...ids]))
    const count = Number.sumAll([...counted.values()].map(({ size }) => size))
    return count > mostCounted ? Effect.fail(new ManyRecords()) : Effect.void
  })
  return Record.map(Object.fromEntries(counted), ({ size }): number => size)
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
