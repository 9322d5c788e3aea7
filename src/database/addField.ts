/**
 * Adds a field to the JSON of a record, in a table that is in use.
 *
 * 1. One transaction of milliseconds adds the column, its check, and the field to the trigger that renders records. Rows
 *    that are written from here on have the field. It locks the table (ACCESS EXCLUSIVE): it waits at most 200 ms, and
 *    retries after a second.
 * 2. A transaction for each 1,000 rows renders the older rows. Rows that a writer holds come later, so that no batch waits
 *    for a writer, and there is no deadlock.
 * 3. The indexes are built concurrently.
 *
 * A service of the version before keeps running: it reads each row without the field or with it. The new version is ready
 * once all rows have it. The migration is idempotent, and may run in any number of processes at once.
 */
import { Data, Effect, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { columnOf } from "../api/records/Field.ts"
import { rowsOf, textsOf } from "./Columns.ts"
import * as Distribution from "./Distribution.ts"
import { inLongTransaction, literalOf, script } from "./script.ts"
import { codeOf } from "./SqlFailure.ts"

export interface Field {
  readonly table: string
  /** Its name in the JSON. Its column has the same name in snake case. */
  readonly field: string
  /** The type of the column, with a constant default if it has one: `boolean not null default false`. */
  readonly type: string
  /** The comment on the column. */
  readonly description: string
  /** An index for each filter, by its name: `(organization_id, weight, updated_at, id)`, and a `where` if it has one. */
  readonly indexes?: Readonly<Record<string, string>>
}

/** The options are wrong, or the table is distributed. */
class FieldRefused extends Data.TaggedError("FieldRefused")<{ readonly message: string }> {}

/** Writers hold rows that lack the field. */
export class RowsLocked extends Data.TaggedError("RowsLocked")<{ readonly message: string }> {}

export type AddFieldError = SqlError | FieldRefused | RowsLocked

const batch = 1000

/**
 * "tuple concurrently updated". Postgres releases the lock of a concurrent build just before it commits that the index is
 * valid. In between, the index looks broken and cannot be dropped.
 */
const concurrentlyUpdated = "XX000"

const isContended = (error: AddFieldError) =>
  error._tag === "RowsLocked" ||
  (error._tag === "SqlError" &&
    (/^(LockTimeout|Deadlock)Error$/.test(error.reason._tag) || codeOf(error) === concurrentlyUpdated))

/** Retries a step that other users of the table block, for at least ten minutes. */
const retried = <A, R>(step: Effect.Effect<A, AddFieldError, R>) =>
  Effect.retry(step, { while: isContended, schedule: Schedule.spaced("1 second"), times: 600 })

/**
 * Runs statements that lock a table exclusively, in a transaction. It first waits for other changes of the table: readers
 * and writers do not queue behind that, and Postgres ends an autovacuum for it. Then it waits for others, at most 200 ms.
 */
const locking = Effect.fnUntraced(function* <E, R>(table: string, statements: Effect.Effect<void, E, R>) {
  const sql = yield* SqlClient.SqlClient
  const transaction = Effect.gen(function* () {
    yield* sql`set local lock_timeout = '3s'`
    yield* sql.unsafe(`lock table ${table} in share update exclusive mode`)
    yield* sql`set local lock_timeout = '200ms'`
    yield* statements
  })
  // The check of a new column reads the whole table.
  yield* inLongTransaction(sql, transaction)
})

/** Runs a long statement, which cannot run in a transaction. */
const unhurried = (statement: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const session = yield* sql.reserve
    const run = (text: string) => session.executeUnprepared(text, [], undefined)
    yield* Effect.acquireRelease(run("set statement_timeout = 0"), () => Effect.ignore(run("reset statement_timeout")))
    yield* run(statement)
  }).pipe(Effect.scoped)

const keyOf = ({ field }: Field) => `,"${field}":`

/** Renders the rows that are written from here on with the field, unless that is done. */
const renderNewRows = Effect.fnUntraced(function* ({ description, field, table, type }: Field) {
  const sql = yield* SqlClient.SqlClient
  const done = yield* sql`select from change_feeds where table_name = ${table} and ${field} = any (fields)`
  if (done.length > 0) return
  if (yield* Distribution.hasDistributedTable(sql, table)) {
    return yield* new FieldRefused({
      message: `The table ${table} is distributed, and Citus cannot change its trigger. Run: select undistribute_table('${table}'). Then migrate, and then distribute.`
    })
  }
  const file = textsOf(sql`select pg_relation_filenode(${table}::regclass)::text as text`)
  const [before] = yield* file
  const column = columnOf(field)
  yield* script(`
    lock table ${table} in access exclusive mode;
    alter table ${table} add column if not exists ${column} ${type};
    comment on column ${table}.${column} is ${literalOf(description)};
    call describe_records('${table}');
    update change_feeds set fields = fields || '${field}'::text where table_name = '${table}';
    call render('${table}');`)
  const [after] = yield* file
  if (after !== before) {
    return yield* new FieldRefused({ message: `The column ${column} ${type} would rewrite the table ${table}` })
  }
})

/** A page: its last row, and the numbers of rows that lacked the field and that have it now. */
const pages = rowsOf(
  Schema.Struct({ organization_id: Schema.String, id: Schema.String, lacking: Schema.Int, rendered: Schema.Int })
)

/** Renders the rows that lack the field. Fails if writers held some of them. */
const renderOldRows = Effect.fnUntraced(function* (added: Field) {
  const { field, table } = added
  const sql = yield* SqlClient.SqlClient
  const pageAfter = (organization: string, id: string) =>
    pages(
      sql.unsafe(
        `with page as materialized (
         select organization_id, id, strpos(record, $3) = 0 as lacks from ${table}
         where (organization_id, id) > ($1, $2) order by organization_id, id limit ${batch}
       ), free as materialized (
         select organization_id, id from ${table} t
         where (organization_id, id) in (select organization_id, id from page where lacks) and strpos(record, $3) = 0
         for no key update skip locked
       ), rendered as (
         update ${table} t set record = '' from free
         where t.organization_id = free.organization_id and t.id = free.id
         returning 1
       )
       select organization_id, id, (select count(*)::int from page where lacks) as lacking,
         (select count(*)::int from rendered) as rendered
       from page order by organization_id desc, id desc limit 1`,
        [organization, id, keyOf(added)]
      )
    )
  let [held, rendered] = [0, 0]
  let [page] = yield* pageAfter("", "")
  while (page !== undefined) {
    held += page.lacking - page.rendered
    rendered += page.rendered
    ;[page] = yield* pageAfter(page.organization_id, page.id)
  }
  if (rendered > 0) yield* Effect.log(`${rendered} rows of ${table} have the new field ${field}`)
  if (held > 0) return yield* new RowsLocked({ message: `Writers lock ${held} rows of ${table}` })
})

/** The bytes of a table whose index is built within milliseconds, so that its writers may wait. */
const small = 8 * 1024 * 1024

const buildIndex = Effect.fnUntraced(function* (table: string, name: string, columns: string) {
  const sql = yield* SqlClient.SqlClient
  // The lock waits for another process that builds the index. If it is invalid after that, its build was cut short.
  const prepare = Effect.gen(function* () {
    const broken = yield* sql`select from pg_index where indexrelid = to_regclass(${name}) and not indisvalid`
    if (broken.length > 0) yield* sql.unsafe(`drop index ${name}`)
    // Processes that build one concurrently wait for each other's snapshots. A distributed table has no rows here.
    const isSmall = yield* sql`select where pg_relation_size(${table}::regclass) <= ${small}`
    const isElsewhere = yield* Distribution.hasDistributedTable(sql, table)
    if (isSmall.length > 0 && !isElsewhere) {
      yield* sql.unsafe(`create index if not exists ${name} on ${table} ${columns}`)
    }
  })
  yield* locking(table, prepare)
  const built = yield* sql`select from pg_index where indexrelid = to_regclass(${name})`
  if (built.length > 0) return
  yield* unhurried(`create index concurrently if not exists ${name} on ${table} ${columns}`)
})

/**
 * A migration that adds a field to a record. Fails with `FieldRefused`, or with `SqlError` or `RowsLocked` where others
 * used the table for ten minutes without a gap.
 *
 * @example
 *   // src/database/own/index.ts, and the field in src/api/records/Pets.ts
 *   const own = {
 *     microchip: addField({
 *       table: "pets",
 *       field: "microchip",
 *       type: `text collate "C"`,
 *       description: "Number of the chip",
 *       indexes: { pets_microchip: "(organization_id, microchip, updated_at, id)" }
 *     })
 *   }
 */
export const addField = (added: Field) => ({
  online: Effect.gen(function* () {
    yield* retried(locking(added.table, renderNewRows(added)))
    yield* retried(renderOldRows(added))
    yield* retried(locking(added.table, script(`call validate_records('${added.table}');`)))
    for (const [name, columns] of Object.entries(added.indexes ?? {})) {
      yield* retried(buildIndex(added.table, name, columns))
    }
  })
})

export interface Index {
  readonly table: string
  readonly name: string
  readonly columns: string
}

/**
 * A migration that builds an index while its table is read and written. Fails as `addField` does.
 *
 * @example
 *   export default addIndex({ table: "pets", name: "pets_breed", columns: "(organization_id, breed, updated_at, id)" })
 */
export const addIndex = ({ columns, name, table }: Index) => ({ online: retried(buildIndex(table, name, columns)) })
