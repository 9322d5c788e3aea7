/**
 * The rows of a file in a temporary table: loaded by COPY, checked as a whole, and then applied to the table of their
 * resource in short transactions. Rows that the table has already are skipped, so that a load that was killed resumes.
 */
import { Duration, Effect, Predicate, Schedule, Schema } from "effect"
import type { Session } from "../PostgresSession.ts"
import { quoteName } from "../sync/SqlCopy.ts"
import { type Failed, refused } from "../Usage.ts"
import type { Fault, Rejected } from "./Decoder.ts"

const staging = "pg_temp.practice_data_load"

const TableColumn = Schema.Struct({
  name: Schema.String,
  type: Schema.String,
  isRequired: Schema.Boolean,
  /** The expression of its default. */
  value: Schema.NullOr(Schema.String)
})

export interface Table {
  readonly name: string
  /** The columns that a writer may give, `organization_id` excepted. */
  readonly columns: ReadonlyArray<typeof TableColumn.Type>
}

export const tableOf = Effect.fnUntraced(function* ({ rows }: Session, name: string) {
  const columns = yield* rows(
    TableColumn,
    `select attname as name, attnotnull as "isRequired", pg_get_expr(adbin, adrelid) as value,
       format_type(coalesce(nullif(typbasetype, 0), t.oid), null) as type
     from pg_attribute a join pg_type t on t.oid = atttypid left join pg_attrdef on adrelid = attrelid and adnum = attnum
     where attrelid = to_regclass($1) and attnum > 0 and not attisdropped and attgenerated = ''
       and attname not in ('organization_id', 'record', 'change_position')
     order by attnum`,
    [quoteName(name)]
  )
  if (columns.length > 0) return { name, columns } satisfies Table
  return yield* refused(`The database has no table ${name}. Run: practice-data migrate`)
})

type Reject = (row: Rejected) => Effect.Effect<void, Failed>

const RejectedRow = Schema.Struct({ line: Schema.Int, row: Schema.Unknown })
const Counts = Schema.Struct({ inserted: Schema.Int, updated: Schema.Int, deleted: Schema.Int })
const Count = Schema.Struct({ count: Schema.Int })
const Organization = Schema.Struct({ id: Schema.String })
const DeletedPage = Schema.Struct({ id: Schema.NullOr(Schema.String), count: Schema.Int })

export interface Writing {
  readonly columns: Table["columns"]
  /** True if the times of the last changes are those of the file. */
  readonly keepsTimes: boolean
  /** True if `plan_name` may have the parts behind it too. */
  readonly hasComposed: boolean
  /** True if the table was empty: rows are inserted without a look for old ones, unless that fails. */
  readonly isFirst: boolean
}

const lastChanges = new Set(["updated_at", "modified_at"])

/** The milliseconds that a transaction is to take. */
const target = 300

const rowsAtOnce = 10_000

const sameKey = (one: string, other: string) =>
  `${one}.organization_id = ${other}.organization_id and ${one}.id = ${other}.id`

/** The value of a column after the load, of its staged row `s` and of the row `old`, unless there is none. */
const valueOf = (
  { isRequired, name, value }: Table["columns"][number],
  { hasComposed, isFirst, keepsTimes }: Writing
) => {
  const [staged, old] = [`s.${quoteName(name)}`, ...(isFirst ? [] : [`old.${quoteName(name)}`])]
  // A row that leaves the column out keeps its value.
  const given = isRequired ? `coalesce(${[staged, old, value].filter(Predicate.isNotNullish).join(", ")})` : staged
  if (old === undefined) return given
  if (hasComposed && ["plan_name", "species", "plan_header"].includes(name)) {
    // Parts that compose the same are kept.
    const isSame = "s.plan_name = concat_ws(' ', old.plan_name, old.species, old.plan_header)"
    return `case when ${isSame} and s.species is null and s.plan_header is null then ${old} else ${staged} end`
  }
  return keepsTimes && lastChanges.has(name) ? `greatest(${given}, ${old})` : given
}

/** Makes the staging table for a file, until the scope closes. */
export const open = Effect.fnUntraced(function* (session: Session, { columns, name }: Table) {
  const { run } = session
  const table = quoteName(name)
  const discard = run(`drop table if exists ${staging}`)
  yield* discard
  const declared = columns.map(
    (column) => `${quoteName(column.name)} ${column.type}${column.type === "text" ? ' collate "C"' : ""}`
  )
  yield* run(
    `create temporary table practice_data_load (_line bigint, _removed boolean, organization_id text collate "C", ${declared.join(", ")})`
  )
  yield* Effect.addFinalizer(() => Effect.ignore(discard))
  const names = ["_line", "_removed", "organization_id", ...columns.map((column) => quoteName(column.name))].join(", ")

  const countOf = (statement: string) => Effect.map(session.rows(Count, statement), ([row]) => row?.count ?? 0)

  /** Hands over the rows of a condition, and removes them. Returns their number. */
  const remove = Effect.fnUntraced(function* (condition: string, fault: Fault, reject: Reject) {
    // All are marked first: a duplicate is none once the other one is gone.
    const count = yield* countOf(
      `with marked as (update ${staging} s set _removed = null where ${condition} returning 1)
       select count(*)::int as count from marked`
    )
    for (let [after, left] = [0, count]; left > 0; left -= rowsAtOnce) {
      const rows = yield* session.rows(
        RejectedRow,
        `select _line::int as line, to_jsonb(s) - '_line' - '_removed' as row from ${staging} s
         where _removed is null and _line > $1 order by _line limit ${rowsAtOnce}`,
        [after]
      )
      for (const row of rows) yield* reject({ ...row, faults: [fault] })
      after = rows.at(-1)?.line ?? after
    }
    if (count > 0) yield* run(`delete from ${staging} where _removed is null`)
    return count
  })

  /** Runs a statement over the staged rows, some blocks at a time. */
  const walk = Effect.fnUntraced(function* (
    statement: (rows: string) => Effect.Effect<ReadonlyArray<typeof Counts.Type>, Failed>,
    applied: (counts: typeof Counts.Type, part: number) => Effect.Effect<void>
  ) {
    const end = yield* countOf(
      `select (pg_relation_size('${staging}') / current_setting('block_size')::int)::int as count`
    )
    let blocks = 16
    for (let from = 0; from < end;) {
      const to = Math.min(from + blocks, end)
      // As after a deadlock with another writer.
      const retried = Effect.retry(statement(`s.ctid >= '(${from},0)' and s.ctid < '(${to},0)'`), {
        while: ({ _tag }) => _tag === "Unavailable",
        times: 3,
        schedule: Schedule.spaced("1 second")
      })
      const [took, rows] = yield* Effect.timed(retried)
      for (const row of rows) yield* applied(row, to / end)
      const next = Math.round((blocks * target) / Math.max(Duration.toMillis(took), 1))
      blocks = Math.max(1, Math.min(blocks * 2, next))
      from = to
    }
  })

  return {
    /** Appends lines of COPY: line, true for a removal, organization, and the columns of the table. */
    append: (lines: string) => session.copyIn(`copy ${staging} (${names}) from stdin`, lines),

    /** Removes the rows of unknown organizations and those whose id comes twice, or all but the last one of an id. */
    check: Effect.fnUntraced(function* (knowsOrganizations: boolean, lastCounts: boolean, reject: Reject) {
      let count = 0
      if (!knowsOrganizations) {
        const unknown = "not exists (select from organizations o where o.organization_id = s.organization_id)"
        count += yield* remove(unknown, { field: "organization_id", reason: "does not exist" }, reject)
      }
      const index = "index on practice_data_load (organization_id, id)"
      if (yield* Effect.isSuccess(run(`create unique ${index}`))) return count
      yield* run(`create ${index}`)
      const other = (lines: string) => `exists (select from ${staging} o where ${sameKey("o", "s")} and ${lines})`
      if (lastCounts) yield* run(`delete from ${staging} s where ${other("o._line > s._line")}`)
      else count += yield* remove(other("o._line <> s._line"), { field: "id", reason: "is a duplicate" }, reject)
      return count
    }),

    /** Writes the rows that differ from those of the table, and deletes those that the file says are gone. */
    apply: Effect.fnUntraced(function* (
      writing: Writing,
      applied: (counts: typeof Counts.Type, part: number) => Effect.Effect<void>
    ) {
      const written = writing.columns.filter(
        (column) => column.name !== "id" && (writing.keepsTimes || !lastChanges.has(column.name))
      )
      const quoted = written.map((column) => quoteName(column.name))
      const row = (of: string) => `row(${quoted.map((column) => `${of}.${column}`).join(", ")})`
      const listed = (prefix: string) => quoted.map((column) => `, ${prefix}${column}`).join("")
      const changed = quoted.map((column) => `${column} = excluded.${column}`).join(", ")
      const conflict =
        quoted.length === 0 ? "nothing" : `update set ${changed} where ${row("t")} is distinct from ${row("excluded")}`

      /** Only inserts rows, or also updates existing ones. */
      const statement = (rows: string, isFirst: boolean) => {
        const values = written.map(
          (column) => `${valueOf(column, { ...writing, isFirst })} as ${quoteName(column.name)}`
        )
        const [join, differs, update] = isFirst
          ? ["", "", ""]
          : [
              `left join ${table} old on ${sameKey("old", "s")}`,
              `and (old.id is null or ${row("old")} is distinct from ${row("v")})`,
              `on conflict (organization_id, id) do ${conflict}`
            ]
        return session.rows(
          Counts,
          `with gone as (
             delete from ${table} t using ${staging} s where ${rows} and s._removed and ${sameKey("t", "s")} returning 1
           ), written as (
             insert into ${table} as t (organization_id, id${listed("")})
             select s.organization_id, s.id${listed("v.")}
             from ${staging} s ${join} cross join lateral (select ${values.join(", ")}) v
             where ${rows} and not s._removed ${differs} ${update} returning xmax = 0 as is_new
           )
           select (count(*) filter (where is_new))::int as inserted,
             (count(*) filter (where not is_new))::int as updated,
             (select count(*) from gone)::int as deleted from written`
        )
      }
      const upsert = (rows: string) => statement(rows, false)
      // Another session may have written to the table.
      const insert = (rows: string) => Effect.catchTag(statement(rows, true), "Refused", () => upsert(rows))
      // Staged rows are then looked up by the key.
      yield* run(
        `select set_config(name, 'off', false)
         from unnest(array['enable_hashjoin', 'enable_mergejoin', 'enable_seqscan', 'jit']) name`
      )
      yield* run("select set_config('practice_data.keep_times', $1, false)", [writing.keepsTimes ? "on" : "off"])
      yield* walk(writing.isFirst ? insert : upsert, applied)
    }),

    organizations: Effect.map(
      session.rows(Organization, `select distinct organization_id as id from ${staging}`),
      (rows) => rows.map(({ id }) => id)
    ),

    /** Deletes the rows of organizations that the file does not have. Returns their number. */
    deleteMissing: Effect.fnUntraced(function* (organizations: ReadonlyArray<string>) {
      let deleted = 0
      for (const organization of organizations) {
        let after: string | null = ""
        while (after !== null) {
          const [page]: ReadonlyArray<typeof DeletedPage.Type> = yield* session.rows(
            DeletedPage,
            `with page as materialized (
               select id from ${table} where organization_id = $1 and id > $2 order by id limit 5000
             ), gone as (
               delete from ${table} t using page
               where t.organization_id = $1 and t.id = page.id
                 and not exists (select from ${staging} s where s.organization_id = $1 and s.id = page.id)
               returning 1
             )
             select (select max(id) from page) as id, (select count(*) from gone)::int as count`,
            [organization, after]
          )
          deleted += page?.count ?? 0
          after = page?.id ?? null
        }
      }
      return deleted
    })
  }
})

export type Staging = Effect.Success<ReturnType<typeof open>>
