/** The privileges that the statements of each role need, and those that anybody else has on the tables. */
import type { PgClient } from "@effect/sql-pg"
import { Schema } from "effect"
import { resources } from "../api/records/index.ts"
import { rowsOf, textsOf } from "../database/Columns.ts"
import * as Distribution from "../database/Distribution.ts"
import type { Role } from "./Settings.ts"

type Kind = "select" | "insert" | "update" | "delete" | "execute"

type Needed = Readonly<Partial<Record<Kind, ReadonlyArray<string>>>>

const tables = resources.map(({ table }) => table)

const feeds = {
  select: ["change_feeds", "change_marks", "removals"],
  execute: ["change_begin()", "change_mark()", "change_forget()"]
}

/** The needs of the data API by its databases, and those of the other roles. */
export const needs = {
  records: { ...feeds, select: ["migrations", ...tables, ...feeds.select] },
  credentials: { select: ["migrations", "api_keys"] },
  tasks: { ...feeds, select: [...feeds.select, "deletion_tasks", "deletions"] },
  intake: { select: ["migrations", "intake_secrets", "organizations", "deletion_tasks"], insert: ["deletion_tasks"] },
  worker: {
    select: [
      "migrations",
      "change_feeds",
      "invoices",
      "invoice_lines",
      "deletion_tasks",
      "deletions",
      "deletion_work",
      "organizations"
    ],
    insert: ["deletions", "deletions_unsettled"],
    update: ["invoices", "invoice_lines", "deletion_tasks", "deletions"],
    delete: ["deletions", "deletions_unsettled"],
    execute: feeds.execute
  }
} satisfies Readonly<Record<string, Needed>>

/** The group role that has the privileges of a role. */
export const groupOf: Readonly<Record<Role, string>> = {
  "data-api": "practice_data_api",
  intake: "practice_data_intake",
  worker: "practice_data_worker"
}

/** The privileges that a login lacks, such as `insert on deletion_tasks`. A grant on some columns suffices. */
export const lacking = (sql: PgClient.PgClient, ...needed: ReadonlyArray<Needed>) => {
  const all = needed.flatMap((each) =>
    Object.entries(each).flatMap(([kind, objects]) => objects.map((object) => ({ kind, object })))
  )
  return textsOf(sql`
    select distinct format('%s on %s', kind, object) as text
    from jsonb_to_recordset(${sql.json(all)}::jsonb) as needed (kind text, object text)
    where case kind
      when 'execute' then has_function_privilege(to_regprocedure(object), kind)
      when 'delete' then has_table_privilege(to_regclass(object), kind)
      else has_any_column_privilege(to_regclass(object), kind)
    end is not true
    order by text`)
}

const Grant = Schema.Struct({ grantee: Schema.String, tables: Schema.Array(Schema.String) })

/** The grants on the tables, or on columns of them, to anybody but their owner and the roles of the service. */
export const grantsToOthers = (sql: PgClient.PgClient) => {
  const all = [...Distribution.byOrganization(tables), ...Distribution.references, ...Distribution.local]
  const roles = [...Object.values(groupOf), "practice_data_writer"]
  return rowsOf(Grant)(sql`
    with own as (select oid, relname, relowner, relacl from pg_class where oid in (
      select to_regclass(name) from unnest(${[...all, "columns_of_records"]}::text[]) name
    )), granted as (
      select relname, relowner, grantee from own, aclexplode(relacl)
      union
      select relname, relowner, grantee from own join pg_attribute on attrelid = own.oid, aclexplode(attacl)
    )
    select case grantee when 0 then 'public' else grantee::regrole::text end as grantee,
      array_agg(relname::text order by relname) as tables
    from granted
    where grantee <> relowner and grantee not in (select oid from pg_roles where rolname = any (${roles}::text[]))
    group by grantee order by 1`)
}
