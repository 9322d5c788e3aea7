/**
 * Adds a field to the JSON of a record, in a table that is read and written meanwhile.
 *
 * Postgres changes the expression of a generated column by rewriting the table, which nobody can read until it is done.
 * So the column `record` becomes a plain one, which a trigger fills:
 *
 * 1. In one transaction of milliseconds: the new column, the new function and the trigger. From here on, every row that
 *    is written has the new field. It locks the table (ACCESS EXCLUSIVE), and waits at most 200 ms for that before it
 *    tries again a second later, so that nobody queues behind it for longer.
 * 2. In a transaction for each 1,000 rows: the rows from before get the new field. A writer of one of these rows waits
 *    until they are done. Rows that a writer holds come later, so no batch waits for a writer, and there is no deadlock.
 * 3. The indexes, built concurrently, and the check of the column's values. Readers and writers do not wait.
 *
 * A service of the version before runs on: it finds each row without the field or with it. The new version is not ready
 * before all rows have it. It can be cut short and run again, in any number of processes at once.
 *
 * With 1,000,000 pets it took 35 s, in which a reader waited 33 ms at most and a writer
 * 90 ms. A rewrite of the table took 21 s, in which both waited to its end.
 */
import { Data, Effect, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import * as Distribution from "../Distribution.ts"
import { codeOf } from "../SqlFailure.ts"
import { compileRecord } from "./compileRecord.ts"
import { script } from "./script.ts"

export interface Field {
  readonly table: string
  /** The name of the field in the JSON. */
  readonly field: string
  /** The name of its column. */
  readonly column: string
  /** The type of the column, with a constant default if it has one: `boolean not null default false`. */
  readonly type: string
  /** The domain whose check the values must pass, such as `api_decimal`. As the `type`, it would rewrite the table. */
  readonly domain?: string
  /**
   * The table's function that renders, with the new column as an argument, as `create or replace function`. It may be SQL
   * with a `return`, of which `compileRecord` makes PL/pgSQL.
   */
  readonly record: string
  /** An index for each filter, by its name: `(organization_id, weight, updated_at, id)`, and a `where` if it has one. */
  readonly indexes?: Readonly<Record<string, string>>
}

/** A field cannot be added in this way. */
export class FieldRefused extends Data.TaggedError("FieldRefused")<{ readonly message: string }> {}

/** Writers hold rows that lack the field. */
export class RowsLocked extends Data.TaggedError("RowsLocked")<{ readonly message: string }> {}

export type AddFieldError = SqlError | FieldRefused | RowsLocked

const batch = 1000

/**
 * "tuple concurrently updated". Postgres releases the lock of a concurrent build just before it commits that the index is
 * valid: who looks in between finds an index that looks broken, and cannot drop it.
 */
const concurrentlyUpdated = "XX000"

const isContended = (error: AddFieldError) =>
  error._tag === "RowsLocked" ||
  (error._tag === "SqlError" &&
    (/^(LockTimeout|Deadlock)Error$/.test(error.reason._tag) || codeOf(error) === concurrentlyUpdated))

/** Tries again, for ten minutes or longer, what others that use the table did not let through. */
export const retried = <A, R>(step: Effect.Effect<A, AddFieldError, R>) =>
  Effect.retry(step, { while: isContended, schedule: Schedule.spaced("1 second"), times: 600 })

/**
 * Runs statements that lock a table for themselves, in a transaction. It first waits for what else changes the table:
 * readers and writers do not queue behind that, and Postgres ends an autovacuum for it. Then for others, at most 200 ms.
 */
export const locking = Effect.fnUntraced(function* <E, R>(table: string, statements: Effect.Effect<void, E, R>) {
  const sql = yield* SqlClient.SqlClient
  const transaction = Effect.gen(function* () {
    yield* sql`set local lock_timeout = '3s'`
    yield* sql.unsafe(`lock table ${table} in share update exclusive mode`)
    yield* sql`set local lock_timeout = '200ms'`
    yield* statements
  })
  yield* sql.withTransaction(transaction)
})

/** Runs a statement that takes its time, and cannot run in a transaction. */
const unhurried = (statement: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const session = yield* sql.reserve
    const run = (text: string) => session.executeUnprepared(text, [], undefined)
    yield* Effect.acquireRelease(run("set statement_timeout = 0"), () => Effect.ignore(run("reset statement_timeout")))
    yield* run(statement)
  }).pipe(Effect.scoped)

const constraintOf = ({ column, table }: Field) => `${table}_${column}_fits`

const checks = (added: Field) =>
  added.domain === undefined
    ? ""
    : `alter table ${added.table} add constraint ${constraintOf(added)}
         check (${added.column}::${added.domain} is not distinct from ${added.column}) not valid;`

const keyOf = ({ field }: Field) => `,"${field}":`

/** Has every row that is written from here on rendered with the field, unless that is done. */
const renderNewRows = Effect.fnUntraced(function* (added: Field) {
  const { column, field, record, table, type } = added
  const sql = yield* SqlClient.SqlClient
  const functions = sql<{
    signature: string
    name: string
    columns: ReadonlyArray<string>
    values: string
    isNew: boolean
  }>`
    select oid::regprocedure::text as signature, pronamespace::regnamespace || '.' || proname as name,
      proargnames as columns, (
        -- Of exactly these types: no overload fits better.
        select string_agg(format('new.%I::%s', proargnames[n], type::regtype), ', ' order by n)
        from unnest(proargtypes) with ordinality a (type, n)
      ) as values, strpos(pg_get_functiondef(oid), ${keyOf(added)}) > 0 as "isNew"
    from pg_proc where proname = ${`${table}_record`} and pronamespace = current_schema()::regnamespace`
  const file = sql<{ file: number }>`select pg_relation_filenode(${table}::regclass)::int as file`

  if ((yield* functions).some(({ isNew }) => isNew)) return
  if (yield* Distribution.has(sql, table)) {
    return yield* new FieldRefused({
      message: `The table ${table} is distributed, and Citus cannot change its column record. Run: select undistribute_table('${table}'). Then migrate, and then distribute.`
    })
  }
  yield* sql.unsafe(record)
  yield* compileRecord(table)
  const all = yield* functions
  const [render, ...others] = all.filter(({ isNew }) => isNew)
  if (render === undefined || others.length > 0 || !render.columns.includes(column)) {
    return yield* new FieldRefused({ message: `No ${table}_record renders ${field} from an argument ${column}` })
  }
  const [before] = yield* file
  yield* script(`
    create or replace function ${table}_render() returns trigger language plpgsql as $render$
    begin
      new.record := ${render.name}(${render.values});
      return new;
    end $render$;

    lock table ${table} in access exclusive mode;
    alter table ${table} add column if not exists ${column} ${type};
    ${checks(added)}
    alter table ${table} alter column record drop expression if exists;
    -- Triggers fire in the order of their names: this one comes last, and renders what others have changed.
    create or replace trigger zz_render before insert or update on ${table}
      for each row execute function ${table}_render();
    -- Rows that logical replication writes are rendered too.
    alter table ${table} enable always trigger zz_render;
    ${all.flatMap(({ isNew, signature }) => (isNew ? [] : [`drop function ${signature};`])).join("\n")}`)
  const [after] = yield* file
  if (after?.file !== before?.file) {
    return yield* new FieldRefused({ message: `The column ${column} ${type} would rewrite the table ${table}` })
  }
})

/** The last row of a page, how many rows of the page lacked the field, and how many of these have it now. */
interface Page {
  readonly organization_id: string
  readonly id: string
  readonly lacking: number
  readonly rendered: number
}

/** Renders the rows that lack the field. Fails when writers held some of them. */
const renderOldRows = Effect.fnUntraced(function* (added: Field) {
  const { field, table } = added
  const sql = yield* SqlClient.SqlClient
  const counts = { lacking: 0, rendered: 0 }
  let last: Pick<Page, "organization_id" | "id"> | undefined = { organization_id: "", id: "" }
  while (last !== undefined) {
    const [page]: ReadonlyArray<Page> = yield* sql.unsafe<Page>(
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
      [last.organization_id, last.id, keyOf(added)]
    )
    counts.lacking += page?.lacking ?? 0
    counts.rendered += page?.rendered ?? 0
    last = page
  }
  const { lacking, rendered } = counts
  if (rendered > 0) yield* Effect.log(`${rendered} rows of ${table} have the new field ${field}`)
  if (lacking > rendered) {
    return yield* new RowsLocked({ message: `Writers hold ${lacking - rendered} rows of ${table}` })
  }
})

/** A table of up to so many bytes has its index within milliseconds, so that its writers may wait. */
const small = 8 * 1024 * 1024

export const buildIndex = Effect.fnUntraced(function* (table: string, name: string, columns: string) {
  const sql = yield* SqlClient.SqlClient
  // The lock waits for another process that builds it. An index that is not valid after that was cut short.
  const prepare = Effect.gen(function* () {
    const broken = yield* sql`select from pg_index where indexrelid = to_regclass(${name}) and not indisvalid`
    if (broken.length > 0) yield* sql.unsafe(`drop index ${name}`)
    // Several processes that build one concurrently wait for each other's snapshots. Of a table that is distributed, no
    // row is here, however many there are.
    const isSmall = yield* sql`select where pg_relation_size(${table}::regclass) <= ${small}`
    const isElsewhere = yield* Distribution.has(sql, table)
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
 * A migration that adds a field to a record. It commits as it goes, and everything that it does it finds done the next
 * time.
 *
 * Fails with `FieldRefused` where the options are wrong or the table is distributed, with `SqlError` or `RowsLocked`
 * where others used the table for ten minutes without a gap.
 *
 * @example
 *   // src/database/migrations/00015_microchip.ts, a line in Migrations.ts, and the field in src/api/records/Pets.ts
 *   export default addField({
 *     table: "pets",
 *     field: "microchip",
 *     column: "microchip",
 *     type: `text collate "C"`,
 *     record: `create or replace function pets_record(id text, ..., microchip text) returns text ...`,
 *     indexes: { pets_microchip: "(organization_id, microchip, updated_at, id)" }
 *   })
 */
export const addField = (added: Field) => ({
  online: Effect.gen(function* () {
    yield* retried(locking(added.table, renderNewRows(added)))
    yield* retried(renderOldRows(added))
    if (added.domain !== undefined) {
      yield* retried(unhurried(`alter table ${added.table} validate constraint ${constraintOf(added)}`))
    }
    for (const [name, columns] of Object.entries(added.indexes ?? {})) {
      yield* retried(buildIndex(added.table, name, columns))
    }
  })
})

const dropIndexes = (table: string, names: ReadonlyArray<string>) =>
  locking(
    table,
    Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(`drop index if exists ${names.join(", ")}`))
  )

/** An index to add. */
export interface Index {
  readonly table: string
  readonly name: string
  readonly columns: string
  /** The names of indexes that this one makes needless. They are dropped as soon as this one is there. */
  readonly replaces?: ReadonlyArray<string>
}

/**
 * A migration that builds an index while its table is read and written. Fails as `addField` does.
 *
 * @example
 *   export default addIndex({ table: "pets", name: "pets_breed", columns: "(organization_id, breed, updated_at, id)" })
 */
export const addIndex = ({ columns, name, replaces = [], table }: Index) => ({
  online: Effect.gen(function* () {
    yield* retried(buildIndex(table, name, columns))
    if (replaces.length > 0) yield* retried(dropIndexes(table, replaces))
  })
})
