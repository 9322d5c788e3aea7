/** Checks the roles of the database, and what the login of this process may do. */
import { Effect } from "effect"
import type { PgClient } from "@effect/sql-pg"
import type { Role } from "../Config.ts"
import { lackingGrants } from "../database/Distribute.ts"
import * as Distribution from "../database/Distribution.ts"
import { invocation } from "../process/Invocation.ts"
import { fail, listed, ok, type Said, warn } from "./Finding.ts"

/** What each role of the database is for, and what it must never do. */
const roles = {
  "data-api": { name: "practice_data_api", can: "read records", forbidden: ["INSERT", "UPDATE", "DELETE"] },
  intake: { name: "practice_data_intake", can: "take deliveries in", forbidden: ["UPDATE", "DELETE"] },
  worker: { name: "practice_data_worker", can: "run deletions", forbidden: ["DELETE"] }
} as const satisfies Record<Role, unknown>

interface Login {
  readonly login: string
  readonly is_superuser: boolean
  readonly may_operate: boolean
  readonly may_migrate: boolean
}

const login = (sql: PgClient.PgClient) => sql<Login>`
  select current_user as login, r.rolsuper as is_superuser,
    has_table_privilege('api_keys', 'INSERT') and has_table_privilege('intake_secrets', 'INSERT')
      and has_table_privilege('deletion_tasks', 'UPDATE') as may_operate,
    has_schema_privilege(current_schema(), 'CREATE')
      and pg_has_role((select relowner from pg_class where oid = 'organizations'::regclass), 'USAGE') as may_migrate
  from pg_roles r where r.rolname = current_user`

const privileges = ["SELECT", "INSERT", "UPDATE", "DELETE"]

/** The privileges on tables that a role has, such as `SELECT on charges`. Of some columns counts as of the table. */
const privilegesOf = (sql: PgClient.PgClient, role: string) =>
  Effect.map(
    sql<{ privilege: string; name: string }>`
      select p.privilege, c.relname as name
      from pg_class c cross join unnest(${sql.literal(`array['${privileges.join("', '")}']`)}) p (privilege)
      where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'
        and case p.privilege
          when 'DELETE' then has_table_privilege(${role}, c.oid, 'DELETE')
          else has_any_column_privilege(${role}, c.oid, p.privilege) end
      order by c.relname, p.privilege`,
    (rows) => rows.map(({ name, privilege }) => ({ privilege, text: `${privilege} on ${name}` }))
  )

/** The roles and the login. `needed`: what this process does. */
export const check = Effect.fnUntraced(function* (sql: PgClient.PgClient, needed: ReadonlyArray<Role>) {
  const [self] = yield* login(sql)
  if (self === undefined) return []
  const there = yield* sql<{ name: string }>`select rolname as name from pg_roles where rolname like 'practice_data_%'`
  const own = new Set((yield* privilegesOf(sql, self.login)).map(({ text }) => text))
  const said: Array<Said> = []
  const able: Array<string> = []
  for (const role of needed) {
    const { can, forbidden, name } = roles[role]
    if (!there.some((found) => found.name === name)) {
      said.push(
        fail(`The role ${name} does not exist.`, `Run: ${invocation("migrate")}, as a login that may create roles.`)
      )
      continue
    }
    const granted = yield* privilegesOf(sql, name)
    if (granted.length === 0) {
      said.push(
        fail(
          `The role ${name} has no grants, as after a restore without privileges.`,
          "Restore with privileges, or grant them as the files of the migrations do."
        )
      )
      continue
    }
    const excess = granted.filter(({ privilege }) => forbidden.some((each) => each === privilege))
    if (excess.length > 0) {
      const texts = listed(excess.map(({ text }) => text))
      said.push(warn(`The role ${name} may do more than it should: ${texts}.`, `Revoke it from ${name}.`))
    }
    const lacking = granted.filter(({ text }) => !own.has(text)).map(({ text }) => text)
    if (lacking.length === 0) able.push(can)
    else {
      said.push(
        fail(
          `The login ${self.login} cannot ${can}, which ROLES asks for: it lacks ${listed(lacking)}.`,
          `grant ${name} to ${self.login}`
        )
      )
    }
  }
  if (yield* Distribution.ask(sql)) {
    for (const grant of yield* lackingGrants(sql)) {
      said.push(fail(`Tables that are distributed need: grant ${grant}.`, `Run: ${invocation("distribute")}`))
    }
  }
  if (self.may_operate) able.push("operate keys, secrets and tasks")
  if (self.may_migrate) able.push("migrate")
  const abilities = able.length === 0 ? "nothing" : able.join(", ")
  said.push(ok(`The login ${self.login} may: ${abilities}.`))
  if (self.is_superuser) {
    said.push(
      warn(
        `The login ${self.login} is a superuser, whom no grant limits.`,
        `Give the service a login of its own, and grant it ${needed.map((role) => roles[role].name).join(", ")}.`
      )
    )
  }
  return said
})

/** Whether the login may look keys up, where they have a database of their own. */
export const keys = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const [found] = yield* sql<{ login: string; may_read: boolean }>`
    select current_user as login, has_table_privilege('api_keys', 'SELECT') as may_read`
  return found === undefined || found.may_read
    ? [ok("The login may look API keys up.")]
    : [fail(`The login ${found.login} may not look API keys up.`, `grant practice_data_api to ${found.login}`)]
})
