/** Loaders: the ways in which others write the rows of a deletion, each in a session that a test steps through. */
import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { errorCode } from "../../../src/database/SqlFailure.ts"
import { type elsewhere, empty, openTransaction, settler, unsettled } from "../../support/deletions/sessions.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"

/** The invoice `x` of the client `k`, and its line `x1`: what a loader writes of each. */
export const tables = {
  invoices: { id: "x", other: "y", link: "client_id", to: "k", field: "status" },
  invoice_lines: { id: "x1", other: "y1", link: "invoice", to: "x", field: "product_code" }
} as const

export type Table = keyof typeof tables

/** A way to write the row of a table. */
interface Way {
  /** The id of the row that is there before; undefined if none may be. */
  readonly from: (table: Table) => string | undefined
  readonly statements: (table: Table, value: string) => ReadonlyArray<string>
}

const columnsOf = (table: Table) => `organization_id, id, ${tables[table].link}, ${tables[table].field}`

const row = (table: Table, value: string, id: string = tables[table].id) =>
  `('org_a', '${id}', '${tables[table].to}', '${value}')`

const insert = (table: Table, value: string) => `insert into ${table} (${columnsOf(table)}) values ${row(table, value)}`
const isRow = (table: Table) => `organization_id = 'org_a' and id = '${tables[table].id}'`
const remove = (table: Table) => `delete from ${table} where ${isRow(table)}`
const update = (table: Table, changes: string) => `update ${table} set ${changes} where ${isRow(table)}`
const served = "is_deleted = false, deleted_at = null"
const asReplica = (statement: string) => ["set local session_replication_role = replica", statement]

const none = () => undefined
const itself = (table: Table) => tables[table].id
const another = () => "z"

const way = (from: Way["from"], statements: (table: Table, value: string) => string | ReadonlyArray<string>): Way => ({
  from,
  statements: (table, value) => [statements(table, value)].flat()
})

export const ways = {
  insert: way(none, insert),
  "insert of several": way(
    none,
    (table, value) =>
      `insert into ${table} (${columnsOf(table)})
       select * from (values ${row(table, value)}, ${row(table, value, "n")}) n where true`
  ),
  copy: way(none, copy),
  upsert: way(itself, (table, value) => upsert(table, value)),
  "merge of a new row": way(none, (table, value) => merge(table, value)),
  merge: way(itself, (table, value) => merge(table, value)),
  "update of the mark": way(itself, (table, value) => update(table, `${served}, ${tables[table].field} = '${value}'`)),
  "update of another column": way(itself, (table, value) => update(table, `${tables[table].field} = '${value}'`)),
  "update of the id": way(
    another,
    (table, value) =>
      `update ${table} set id = '${tables[table].id}', ${tables[table].link} = '${tables[table].to}',
       ${tables[table].field} = '${value}' where organization_id = 'org_a' and id = 'z'`
  ),
  "delete and insert": way(itself, (table, value) => [remove(table), insert(table, value)]),
  "replicated insert": way(none, (table, value) => asReplica(insert(table, value))),
  "replicated update": way(itself, (table, value) =>
    asReplica(update(table, `${served}, ${tables[table].field} = '${value}'`))
  ),
  "replicated delete and insert": way(itself, (table, value) => [...asReplica(remove(table)), insert(table, value)])
} as const satisfies Record<string, Way>

/** Truncates and loads again. It waits for all who read the table, as all who read wait for it. */
export const reload = way(itself, (table, value) => [`truncate ${table}`, insert(table, value)])

function copy(table: Table, value: string): string {
  const line = (id: string) => `org_a,${id},${tables[table].to},${value}`
  return `copy ${table} (${columnsOf(table)}) from program 'printf ''${line(tables[table].id)}\\n${line("n")}\\n''' (format csv)`
}

function upsert(table: Table, value: string): string {
  const { field, link } = tables[table]
  return `${insert(table, value)} on conflict (organization_id, id) do update set ${link} = excluded.${link},
    ${field} = excluded.${field}, is_deleted = excluded.is_deleted, deleted_at = excluded.deleted_at`
}

function merge(table: Table, value: string): string {
  const { field, link } = tables[table]
  return `merge into ${table} t using (values ${row(table, value)}) n (${columnsOf(table)})
    on t.organization_id = n.organization_id and t.id = n.id
    when matched then update set ${link} = n.${link}, ${field} = n.${field}, ${served}
    when not matched then insert (${columnsOf(table)}) values (n.organization_id, n.id, n.${link}, n.${field})`
}

/** Empties the tables, and writes the rows that are there before: those of the ways, and others that stay. */
export const begin = Effect.fnUntraced(function* (from: Readonly<Partial<Record<Table, string | undefined>>> = {}) {
  const { sql } = yield* TestDatabase
  yield* empty(sql, ...Object.keys(tables))
  for (const table of ["invoices", "invoice_lines"] as const) {
    const { other } = tables[table]
    yield* sql.unsafe(`insert into ${table} (${columnsOf(table)}) values ('org_a', '${other}', 'y', 'old')`)
    // It is of another client or invoice, if it is another row.
    const to = from[table] === tables[table].id ? tables[table].to : "y"
    if (from[table] !== undefined)
      yield* sql.unsafe(`insert into ${table} (${columnsOf(table)}) values ('org_a', '${from[table]}', '${to}', 'old')`)
  }
  return sql
})

type Row = Readonly<Record<"id" | "field" | "position", string> & Record<"is_deleted" | "agrees", boolean>>

/** The rows of both tables by their ids. `agrees`: the JSON has the mark of the columns. */
export const rows = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  const [invoices, lines] = (["invoices", "invoice_lines"] as const).map(
    (table) => `
      select id, ${tables[table].field} as field, is_deleted, change_position::text as position,
        (record::json ->> 'is_deleted')::boolean = is_deleted and (record::json ->> 'deleted_at' is null) = (deleted_at is null)
          as agrees
      from ${table}`
  )
  const found = yield* sql.unsafe<Row>(`${invoices} union all ${lines} order by 1`)
  return new Map(found.map((each) => [each.id, each]))
})

const rowCount = Schema.decodeUnknownEffect(Schema.Struct({ rowCount: Schema.NullOr(Schema.Int) }))

/** A session of a loader. Statements return the number of their rows. */
export const session = Effect.gen(function* () {
  const { url } = yield* TestDatabase
  const client = yield* clientOf(url, { settings: { lock_timeout: "5s", idle_in_transaction_session_timeout: "0" } })
  const connection = yield* client.reserve
  return (statement: string) =>
    connection.executeRaw(statement, []).pipe(
      Effect.flatMap((result) => Effect.orDie(rowCount(result))),
      Effect.map((result) => result.rowCount ?? 0)
    )
})

/** True if another transaction has changed a row since the snapshot was taken. The loader tries again. */
export const isStale = (error: SqlError) => errorCode(error) === "40001"

/** Settles what is left to be settled. */
export const settled = Effect.gen(function* () {
  const { step } = yield* settler
  yield* Effect.repeat(step, { until: () => Effect.map(unsettled, (count) => count === 0), times: 5 })
  assert.strictEqual(yield* unsettled, 0)
})

/** Runs statements of a loader, each in a transaction, and settles what they bring. */
export const loaded = Effect.fnUntraced(function* (...statements: ReadonlyArray<ReadonlyArray<string>>) {
  const write = yield* session
  for (const transaction of statements) yield* Effect.forEach(["begin", ...transaction, "commit"], write)
  yield* settled
  const found = yield* rows
  return [found.get("x")?.is_deleted, found.get("x1")?.is_deleted]
})

/** Deliveries that name the invoice, the invoice if its client fits, and the line. */
export const invoice = { invoices: [{ invoice_id: "x" }] }
export const fits = { invoices: [{ invoice_id: "x", client_id: "k" }] }
export const line = { invoice_lines: [{ invoice_line_id: "x1" }] }

/** The statements that insert the invoice, and the line. */
export const [insertX, insertX1] = [
  ways.insert.statements("invoices", "new"),
  ways.insert.statements("invoice_lines", "new")
]

/** Inserts the invoice in a transaction of another session, which stays open. */
export const inserting = (loader: Effect.Success<typeof elsewhere>) =>
  openTransaction(
    loader,
    Effect.forEach(insertX, (statement) => loader.unsafe(statement))
  )
