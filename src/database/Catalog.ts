/** The objects of a database and their privileges, from its own catalog. */
import { Effect, Schema } from "effect"
import type { PgClient } from "@effect/sql-pg"
import { rowsOf } from "./Columns.ts"
import { renderPlainly } from "./script.ts"

/** Names in its definition have their schema. */
export const Part = Schema.Struct({
  kind: Schema.Literals(["function", "table", "column", "constraint", "index", "trigger"]),
  /** Its table. */
  of: Schema.String,
  name: Schema.String,
  definition: Schema.String,
  /** `true` for a valid index or constraint; the moment at which a trigger fires. */
  state: Schema.String
})
export type Part = typeof Part.Type

/** A privilege, by any grant. */
export const Privilege = Schema.Struct({
  /** A role; `public` is everyone. */
  grantee: Schema.String,
  privilege: Schema.String,
  /** The object, as GRANT names it. */
  object: Schema.String,
  /** The columns of a privilege that is not on all. */
  columns: Schema.NullOr(Schema.Array(Schema.String))
})
export type Privilege = typeof Privilege.Type

const Home = Schema.Struct({
  /** The schema of the tables, quoted if need be. */
  schema: Schema.String,
  home: Schema.String,
  isClosed: Schema.Boolean
})

/** A privilege in the words of GRANT and REVOKE. */
export const textOf = ({ columns, object, privilege }: Omit<Privilege, "grantee">) =>
  `${privilege.toLowerCase()}${columns === null ? "" : ` (${columns.join(", ")})`} on ${object}`

const partsIn = (home: string) => `
with relations as (select oid, relname from pg_class where relnamespace = ${home} and relkind in ('r', 'p')),
columns as (
  select r.relname, a.attname, format_type(a.atttypid, a.atttypmod)
    || case when a.attcollation <> t.typcollation then ' collate ' || a.attcollation::regcollation else '' end
    || case when a.attnotnull then ' not null' else '' end
    || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') as definition
  from relations r join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
  join pg_type t on t.oid = a.atttypid left join pg_attrdef d on d.adrelid = r.oid and d.adnum = a.attnum
)
select 'function' as kind, '' as of, oid::regprocedure::text as name, pg_get_functiondef(oid) as definition, '' as state
from pg_proc where pronamespace = ${home} and prokind in ('f', 'p')
union all
select 'table', '', relname, '', '' from relations
union all
select 'column', relname, attname, definition, '' from columns
union all
select 'constraint', r.relname, c.conname, replace(pg_get_constraintdef(c.oid), ' NOT VALID', ''), c.convalidated::text
from pg_constraint c join relations r on r.oid = c.conrelid
where c.contype in ('c', 'p', 'u', 'f', 'x')
union all
select 'index', r.relname, c.relname, pg_get_indexdef(c.oid), (i.indisvalid and i.indisready)::text
from relations r join pg_index i on i.indrelid = r.oid join pg_class c on c.oid = i.indexrelid
where not exists (select from pg_constraint where conindid = c.oid and contype in ('p', 'u', 'x'))
union all
select 'trigger', r.relname, t.tgname, pg_get_triggerdef(t.oid), t.tgenabled::text
from relations r join pg_trigger t on t.tgrelid = r.oid and not t.tgisinternal
order by kind, "of", name`

const privilegesIn = (home: string) => `
with grantees as (
  select rolname::text as grantee from pg_roles where starts_with(rolname, 'practice_data_') or rolname = current_user
  union all select 'public'
), relations as (
  select g.grantee, c.oid, p.privilege, c.oid::regclass::text as object, has_table_privilege(g.grantee, c.oid, p.privilege) as has_all
  from grantees g cross join pg_class c cross join (values ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) p (privilege)
  where c.relnamespace = ${home} and c.relkind in ('r', 'p')
)
select grantee, 'USAGE' as privilege, 'schema ' || ${home} as object, null::text[] as columns
from grantees where has_schema_privilege(grantee, ${home}, 'USAGE')
union all
select grantee, privilege, object, null from relations where has_all
union all
select grantee, privilege, object, array_agg(attname::text order by attnum)
from relations join pg_attribute on attrelid = oid and attnum > 0 and not attisdropped
where not has_all and privilege <> 'DELETE' and has_column_privilege(grantee, oid, attnum, replace(privilege, 'DELETE', 'UPDATE'))
group by grantee, privilege, object
union all
select grantee, 'EXECUTE', 'function ' || oid::regprocedure, null
from grantees cross join pg_proc where pronamespace = ${home} and prokind in ('f', 'p') and has_function_privilege(grantee, oid, 'EXECUTE')
order by grantee, privilege desc, object`

/** Reads the catalog of the schema that has the tables, whether or not the login may use the schema. */
export const read = (sql: PgClient.PgClient) =>
  Effect.gen(function* () {
    yield* sql.unsafe(renderPlainly)
    const [schema] = yield* rowsOf(Home)(sql`
      select n.oid::regnamespace::text as schema, n.oid || '::oid::regnamespace' as home,
        not has_schema_privilege(n.oid, 'USAGE') as "isClosed"
      from pg_namespace n
      where n.oid = coalesce(
        (
          select relnamespace from pg_class where relname = 'intake_secrets' and relkind in ('r', 'p')
          order by pg_table_is_visible(oid) desc limit 1
        ),
        quote_ident(current_schema())::regnamespace)`)
    if (schema === undefined) return yield* Effect.die("There is no schema")
    yield* sql`select set_config('search_path', '', true)`
    const parts = yield* rowsOf(Part)(sql.unsafe(partsIn(schema.home)))
    const privileges = yield* rowsOf(Privilege)(sql.unsafe(privilegesIn(schema.home)))
    return { ...schema, parts, privileges }
  }).pipe(sql.withTransaction)

export type Catalog = Omit<Effect.Success<ReturnType<typeof read>>, "home">
