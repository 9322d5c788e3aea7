/** The privileges that the statements of each role need, and those that anybody else has on the tables. */
import type { PgClient } from "@effect/sql-pg"
import { Schema } from "effect"
import { resources } from "../api/records/index.ts"
import { decodeRows, decodeTexts } from "../database/Columns.ts"
import type { Role } from "./Settings.ts"

const kinds = ["select", "insert", "update", "delete", "execute"] as const

/** The tables and functions that the statements of a role need in a database. */
export interface Need extends Readonly<Partial<Record<(typeof kinds)[number], ReadonlyArray<string>>>> {
  readonly role: Role
  readonly database: "records" | "credentials" | "tasks"
}

const records = resources.map(({ table }) => table)
const feeds = ["change_feeds", "change_marks", "removals"]
const feedFunctions = ["change_begin()", "change_mark()", "change_forget()"]
const tasks = ["deletion_tasks", "deletions"]
const deleted = ["invoices", "invoice_lines"]

const needs: ReadonlyArray<Need> = [
  { role: "data-api", database: "records", select: ["migrations", ...records, ...feeds], execute: feedFunctions },
  { role: "data-api", database: "credentials", select: ["migrations", "api_keys"] },
  { role: "data-api", database: "tasks", select: [...feeds, ...tasks], execute: feedFunctions },
  {
    role: "intake",
    database: "tasks",
    select: ["migrations", "intake_secrets", "organizations", "deletion_tasks"],
    insert: ["deletion_tasks"]
  },
  {
    role: "worker",
    database: "tasks",
    select: ["migrations", "change_feeds", "organizations", "deletion_work", ...deleted, ...tasks],
    insert: ["deletions", "deletions_unsettled"],
    update: [...deleted, ...tasks],
    delete: ["deletions", "deletions_unsettled"],
    execute: feedFunctions
  }
]

export const neededBy = (roles: ReadonlyArray<Role>) => needs.filter(({ role }) => roles.includes(role))

/** The end of the name of the group role that has the privileges of a role. */
export const groupSuffix = (role: Role) => `_${role.replace("data-", "")}`

/** The privileges that a login lacks, such as `insert on deletion_tasks`. A grant on some columns suffices. */
export const lacking = (sql: PgClient.PgClient, needed: ReadonlyArray<Need>) => {
  const all = needed.flatMap((need) => kinds.flatMap((kind) => (need[kind] ?? []).map((object) => ({ kind, object }))))
  return decodeTexts(sql`
    select distinct format('%s on %s', kind, object) as text
    from jsonb_to_recordset(${sql.json(all)}::jsonb) as needed (kind text, object text)
    where case kind
      when 'execute' then has_function_privilege(to_regprocedure(object), kind)
      when 'delete' then has_table_privilege(to_regclass(object), kind)
      else has_any_column_privilege(to_regclass(object), kind)
    end is not true
    order by text`)
}

const Grant = Schema.Struct({ grantee: Schema.String, objects: Schema.Array(Schema.String) })

/** The grants to anybody but the owner and the roles of the service. */
export const grantsToOthers = (sql: PgClient.PgClient) =>
  decodeRows(Grant)(sql`
    select grantee, array_agg(object order by object) as objects from grants_to_others() group by grantee order by 1`)

/** The other databases of the server in which the roles have privileges, so that their logins have these here, too. */
export const sharedWith = (sql: PgClient.PgClient) =>
  decodeTexts(sql`
    select distinct datname as text from pg_shdepend
    join pg_database d on d.oid = dbid and datname <> current_database()
    where refclassid = 'pg_authid'::regclass
      and refobjid = (select to_regrole(min(roles) || '_worker')::oid from migrations) order by 1`)
