/** The check of the roles of a database, and of the privileges of the login of this process. */
import { Effect, Schema } from "effect"
import type { PgClient } from "@effect/sql-pg"
import type { Role } from "../Config.ts"
import { type Catalog, type Privilege, textOf } from "../../database/Catalog.ts"
import { rowsOf } from "../../database/Columns.ts"
import * as Distribution from "../../database/Distribution.ts"
import { invocation } from "../../process/Package.ts"
import { fail, facts, listed, ok, warn } from "./Check.ts"

/** The role of the database for each role of a process. */
const roles: Readonly<Record<Role, string>> = {
  "data-api": "practice_data_api",
  intake: "practice_data_intake",
  worker: "practice_data_worker"
}

const Login = Schema.Struct({ login: Schema.String, is_superuser: Schema.Boolean, roles: Schema.Array(Schema.String) })

type Privileges = ReadonlyArray<Privilege>

const sameAs = (one: Privilege) => (other: Privilege) =>
  other.object === one.object && other.privilege === one.privilege

/** The privileges that are not held, or not on each column. */
const lacking = (needed: Privileges, held: Privileges) =>
  needed.filter((need) => {
    const own = held.find(sameAs(need))
    const isHeld = (column: string) => own?.columns?.includes(column) === true
    return own === undefined || (own.columns !== null && need.columns?.every(isHeld) !== true)
  })

const statements = (verb: string, some: Privileges, whom: string) =>
  some.map((each) => `${verb} ${textOf(each)} ${whom}`).join("; ")

/** @param migrated the catalog of a database that has all migrations */
export const check = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  { privileges, schema }: Catalog,
  migrated: Catalog,
  needed: ReadonlyArray<Role>
) {
  const [self] = yield* rowsOf(Login)(sql`
    select rolname as login, rolsuper as is_superuser, array(select rolname::text from pg_roles) as roles
    from pg_roles where rolname = current_user`)
  if (self === undefined) return []
  const { is_superuser, login } = self
  const objects = new Set(migrated.privileges.map(({ object }) => object))
  const names = (some: Privileges) =>
    listed(some.map(({ object, privilege }) => `${privilege} on ${object.replace(`${schema}.`, "")}`))
  const of = (grantee: string) => ({
    held: privileges.filter((each) => each.grantee === grantee),
    given: migrated.privileges.filter((each) => each.grantee === grantee)
  })
  /** The warning of privileges that a grantee holds and should not. */
  const excess = (subject: string, grantee: string, kinds: RegExp) => {
    const { given, held } = of(grantee)
    const others = held.filter((each) => !given.some(sameAs(each)))
    const some = others.filter(({ object, privilege }) => kinds.test(privilege) && objects.has(object))
    const remedy = statements("revoke", some, `from ${grantee}`)
    return some.length > 0 && warn(`${subject} may do more than it should: ${names(some)}.`, remedy)
  }
  const ofRoles = needed.flatMap((one) => {
    const role = roles[one]
    if (!self.roles.includes(role)) {
      return [fail(`The role ${role} does not exist.`, `Run: create role ${role} nologin. Then see what it lacks.`)]
    }
    const { given, held } = of(role)
    const absent = lacking(given, held)
    const ofGiven = held.filter((each) => given.some(sameAs(each)))
    const missed = lacking(ofGiven, of(login).held)
    return facts(
      absent.length > 0 && fail(`The role ${role} lacks ${names(absent)}.`, statements("grant", absent, `to ${role}`)),
      excess(`The role ${role}`, role, /INSERT|UPDATE|DELETE/),
      missed.length === 0
        ? ok(`The login ${login} has the privileges of ${role}.`)
        : fail(`The login ${login} lacks ${names(missed)}, which ROLES=${one} needs.`, `grant ${role} to ${login}`)
    )
  })
  const grants = (yield* Distribution.ask(sql)) ? yield* Distribution.lackingGrants(sql) : []
  return facts(
    ...ofRoles,
    excess("Every role", "public", /EXECUTE/),
    ...grants.map((grant) =>
      fail(`Tables that are distributed need: grant ${grant}.`, `Run: ${invocation("distribute")}`)
    ),
    is_superuser &&
      needed.length > 0 &&
      warn(
        `The login ${login} is a superuser, whom no grant limits.`,
        `Give the service a login of its own, and grant it ${needed.map((one) => roles[one]).join(", ")}.`
      )
  )
})
