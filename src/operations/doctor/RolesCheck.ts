/** Checks the roles of the database, and what the login of this process may do. */
import { Effect } from "effect"
import type { PgClient } from "@effect/sql-pg"
import type { Role } from "../../app/Config.ts"
import { type Catalog, type Privilege, textOf } from "../../database/Catalog.ts"
import { lackingGrants } from "../../database/Distribute.ts"
import * as Distribution from "../../database/Distribution.ts"
import { invocation } from "../../process/Package.ts"
import { fail, listed, ok, type Said, warn } from "./Finding.ts"

/** A role of the database, and what it is for. */
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

interface Login {
  readonly login: string
  readonly is_superuser: boolean
  readonly may_migrate: boolean
  readonly roles: ReadonlyArray<string>
}

const sameAs = (one: Privilege) => (other: Privilege) =>
  other.object === one.object && other.privilege === one.privilege

/** What of the privileges is not held. */
const lacking = (needed: ReadonlyArray<Privilege>, held: ReadonlyArray<Privilege>) =>
  needed.flatMap((need) => {
    const own = held.find(sameAs(need))
    if (own === undefined) return [need]
    if (own.columns === null) return []
    const columns = need.columns?.filter((column) => !own.columns?.includes(column)) ?? null
    return columns?.length === 0 ? [] : [{ ...need, columns }]
  })

/** The privileges on what there is. Others come with what is missing. */
const onExisting = ({ privileges }: Catalog, { parts, schema }: Catalog) => {
  const existing = new Set([
    `schema ${schema}`,
    ...parts.flatMap(({ kind, name, of }) => {
      if (kind === "function") return [`function ${name}`]
      return kind === "column" ? [`${schema}.${of}`, `${schema}.${of}.${name}`] : []
    })
  ])
  return privileges.flatMap((each) => {
    const columns = each.columns?.filter((name) => existing.has(`${each.object}.${name}`)) ?? null
    return existing.has(each.object) ? [{ ...each, columns }] : []
  })
}

/**
 * The roles and the login.
 *
 * @param migrated the catalog of a database that has all migrations, as far as this one needs it
 * @param needed what this process does
 */
export const check = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  catalog: Catalog,
  migrated: Catalog,
  needed: ReadonlyArray<Need>
) {
  const { privileges, schema } = catalog
  const expected = onExisting(migrated, catalog)
  const [self] = yield* sql<Login>`
    select current_user as login, r.rolsuper as is_superuser, array(select rolname::text from pg_roles) as roles,
      has_schema_privilege(n.oid, 'CREATE') and pg_has_role(c.relowner, 'USAGE') as may_migrate
    from pg_roles r cross join pg_namespace n left join pg_class c on c.relnamespace = n.oid and c.relname = 'organizations'
    where r.rolname = current_user and n.oid = ${schema}::regnamespace`
  if (self === undefined) return []
  const names = (some: ReadonlyArray<Privilege>) =>
    listed(some.map(({ object, privilege }) => `${privilege} on ${object.replace(`${schema}.`, "")}`))
  const heldBy = (name: string) => privileges.filter(({ grantee }) => grantee === name)
  const givenTo = (name: string) => expected.filter(({ grantee }) => grantee === name)
  const own = heldBy(self.login)
  const objects = new Set(expected.map(({ object }) => object))
  const said: Array<Said> = []
  const able: Array<string> = []
  for (const { can, name } of needed) {
    if (!self.roles.includes(name)) {
      const advice = `Run: create role ${name} nologin. Then see what it lacks.`
      said.push(fail(`The role ${name} does not exist.`, advice))
      continue
    }
    const held = heldBy(name)
    const given = givenTo(name)
    const absent = lacking(given, held)
    if (absent.length > 0) {
      const grants = absent.map((each) => `grant ${textOf(each)} to ${name}`).join("; ")
      said.push(fail(`The role ${name} lacks ${names(absent)}.`, grants))
    }
    const excess = held.filter(
      (each) => /INSERT|UPDATE|DELETE/.test(each.privilege) && objects.has(each.object) && !given.some(sameAs(each))
    )
    if (excess.length > 0) {
      const revokes = excess.map((each) => `revoke ${textOf(each)} from ${name}`).join("; ")
      said.push(warn(`The role ${name} may do more than it should: ${names(excess)}.`, revokes))
    }
    const missed = lacking(
      held.filter((each) => given.some(sameAs(each))),
      own
    )
    if (missed.length > 0) {
      const message = `The login ${self.login} cannot ${can}, which this process does: it lacks ${names(missed)}.`
      said.push(fail(message, `grant ${name} to ${self.login}`))
    } else if (absent.length === 0) able.push(can)
  }
  const open = heldBy("public").filter(
    (each) => each.privilege === "EXECUTE" && objects.has(each.object) && !givenTo("public").some(sameAs(each))
  )
  if (open.length > 0) {
    const revokes = open.map((each) => `revoke ${textOf(each)} from public`).join("; ")
    said.push(warn(`Every role may do more than it should: ${names(open)}.`, revokes))
  }
  if (yield* Distribution.ask(sql)) {
    for (const grant of yield* lackingGrants(sql)) {
      said.push(fail(`Tables that are distributed need: grant ${grant}.`, `Run: ${invocation("distribute")}`))
    }
  }
  const operating = ["INSERT on api_keys", "INSERT on intake_secrets", "UPDATE on deletion_tasks"]
  if (operating.every((each) => own.some((one) => names([one]) === each))) able.push("operate keys, secrets and tasks")
  if (self.may_migrate) able.push("migrate")
  const abilities = able.length === 0 ? "nothing" : able.join(", ")
  said.push(ok(`The login ${self.login} may: ${abilities}.`))
  if (self.is_superuser) {
    said.push(
      warn(
        `The login ${self.login} is a superuser, whom no grant limits.`,
        `Give the service a login of its own, and grant it ${needed.map(({ name }) => name).join(", ")}.`
      )
    )
  }
  return said
})
