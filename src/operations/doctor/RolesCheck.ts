/** The check of the roles of a database, and of the abilities of the login of this process. */
import { Effect, Schema } from "effect"
import type { PgClient } from "@effect/sql-pg"
import type { Role } from "../Config.ts"
import { type Catalog, type Privilege, textOf } from "../../database/Catalog.ts"
import { rowsOf } from "../../database/Columns.ts"
import * as Distribution from "../../database/Distribution.ts"
import { invocation } from "../../process/Package.ts"
import { fail, facts, listed, ok, warn } from "./Check.ts"

export interface Need {
  readonly name: string
  readonly can: string
}

/** The role of the database for each role of a process. */
export const roles: Readonly<Record<Role, Need>> = {
  "data-api": { name: "practice_data_api", can: "read records" },
  intake: { name: "practice_data_intake", can: "take deliveries in" },
  worker: { name: "practice_data_worker", can: "run deletions" }
}

const Login = Schema.Struct({
  login: Schema.String,
  is_superuser: Schema.Boolean,
  may_migrate: Schema.NullOr(Schema.Boolean),
  roles: Schema.Array(Schema.String)
})

type Held = ReadonlyArray<Privilege>

const sameAs = (one: Privilege) => (other: Privilege) =>
  other.object === one.object && other.privilege === one.privilege

/** The privileges that are not held, or not on each column. */
const lacking = (needed: Held, held: Held): Held =>
  needed.filter((need) => {
    const own = held.find(sameAs(need))
    const isHeld = (column: string) => own?.columns?.includes(column) === true
    return own === undefined || (own.columns !== null && need.columns?.every(isHeld) !== true)
  })

/** The privileges on existing objects. Others come with what is missing. */
const onExisting = ({ privileges }: Catalog, { parts, schema }: Catalog): Held => {
  const existing = new Set([
    `schema ${schema}`,
    ...parts.filter(({ kind }) => kind === "function").map(({ name }) => `function ${name}`),
    ...parts
      .filter(({ kind }) => kind === "column")
      .flatMap(({ name, of }) => [`${schema}.${of}`, `${schema}.${of}.${name}`])
  ])
  return privileges
    .filter(({ object }) => existing.has(object))
    .map((each) => ({
      ...each,
      columns: each.columns?.filter((name) => existing.has(`${each.object}.${name}`)) ?? null
    }))
}

const statements = (verb: string, some: Held, whom: string) =>
  some.map((each) => `${verb} ${textOf(each)} ${whom}`).join("; ")

const ofGrantee = (some: Held, name: string) => some.filter(({ grantee }) => grantee === name)

/** @param migrated the catalog of a database that has all migrations, as far as this one needs it */
export const check = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  catalog: Catalog,
  migrated: Catalog,
  needed: ReadonlyArray<Need>
) {
  const { privileges, schema } = catalog
  const [self] = yield* rowsOf(Login)(sql`
    select current_user as login, r.rolsuper as is_superuser, array(select rolname::text from pg_roles) as roles,
      has_schema_privilege(n.oid, 'CREATE') and pg_has_role(c.relowner, 'USAGE') as may_migrate
    from pg_roles r cross join pg_namespace n left join pg_class c on c.relnamespace = n.oid and c.relname = 'organizations'
    where r.rolname = current_user and n.oid = ${schema}::regnamespace`)
  if (self === undefined) return []
  const expected = onExisting(migrated, catalog)
  const objects = new Set(expected.map(({ object }) => object))
  const nameOf = ({ object, privilege }: Privilege) => `${privilege} on ${object.replace(`${schema}.`, "")}`
  const names = (some: Held) => listed(some.map(nameOf))
  /** The privileges that a grantee holds and should not. */
  const excessOf = (name: string, kinds: RegExp) => {
    const given = ofGrantee(expected, name)
    const others = ofGrantee(privileges, name).filter((each) => !given.some(sameAs(each)))
    return others.filter(({ object, privilege }) => kinds.test(privilege) && objects.has(object))
  }
  const own = ofGrantee(privileges, self.login)
  const able: Array<string> = []
  const ofRoles = needed.map(({ can, name }) => {
    if (!self.roles.includes(name)) {
      return [fail(`The role ${name} does not exist.`, `Run: create role ${name} nologin. Then see what it lacks.`)]
    }
    const [held, given] = [ofGrantee(privileges, name), ofGrantee(expected, name)]
    const [absent, excess] = [lacking(given, held), excessOf(name, /INSERT|UPDATE|DELETE/)]
    const missed = lacking(
      held.filter((each) => given.some(sameAs(each))),
      own
    )
    if (missed.length + absent.length === 0) able.push(can)
    return facts(
      absent.length > 0 && fail(`The role ${name} lacks ${names(absent)}.`, statements("grant", absent, `to ${name}`)),
      excess.length > 0 &&
        warn(
          `The role ${name} may do more than it should: ${names(excess)}.`,
          statements("revoke", excess, `from ${name}`)
        ),
      missed.length > 0 &&
        fail(
          `The login ${self.login} cannot ${can}, which this process does: it lacks ${names(missed)}.`,
          `grant ${name} to ${self.login}`
        )
    )
  })
  const open = excessOf("public", /EXECUTE/)
  const grants = (yield* Distribution.ask(sql)) ? yield* Distribution.lackingGrants(sql) : []
  const operating = ["INSERT on api_keys", "INSERT on intake_secrets", "UPDATE on deletion_tasks"]
  const held = new Set(own.map(nameOf))
  if (operating.every((each) => held.has(each))) able.push("operate keys, secrets and tasks")
  if (self.may_migrate === true) able.push("migrate")
  return facts(
    ...ofRoles.flat(),
    open.length > 0 &&
      warn(`Every role may do more than it should: ${names(open)}.`, statements("revoke", open, "from public")),
    ...grants.map((grant) =>
      fail(`Tables that are distributed need: grant ${grant}.`, `Run: ${invocation("distribute")}`)
    ),
    ok(`The login ${self.login} may: ${able.length === 0 ? "nothing" : able.join(", ")}.`),
    self.is_superuser &&
      needed.length > 0 &&
      warn(
        `The login ${self.login} is a superuser, whom no grant limits.`,
        `Give the service a login of its own, and grant it ${needed.map(({ name }) => name).join(", ")}.`
      )
  )
})
