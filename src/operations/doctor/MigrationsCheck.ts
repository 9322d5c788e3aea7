/**
 * The check of a database against the migrations: those that it has, the objects that they make, with the statements that
 * mend them, and the privileges of the roles and of the login of this process.
 */
import { Effect, Schema } from "effect"
import type { PgClient } from "@effect/sql-pg"
import * as Catalog from "../../database/Catalog.ts"
import { rowsOf, textsOf } from "../../database/Columns.ts"
import * as Distribution from "../../database/Distribution.ts"
import { all, missing } from "../../database/Migrations.ts"
import { invocation } from "../../process/Package.ts"
import { printable } from "../../process/Printed.ts"
import type { Role } from "../Settings.ts"
import { fail, facts, listed, ok, warn } from "../Check.ts"
import migrated from "./migrated.json" with { type: "json" }

const Migrated = Schema.Struct({ parts: Schema.Array(Catalog.Part), privileges: Schema.Array(Catalog.Privilege) })

/** The catalog of a database that has all migrations, in this schema: `migrated.json`, which `npm run generate` writes. */
export const migratedIn = Effect.fnUntraced(function* (schema: string) {
  const there = (text: string) =>
    text
      .replace(/^schema public$/, `schema ${schema}`)
      .replaceAll("public.", `${schema}.`)
      .replaceAll("'public'", `'${schema}'`)
  const { parts, privileges } = yield* Effect.orDie(Schema.decodeUnknownEffect(Migrated)(migrated))
  return {
    schema,
    isClosed: false,
    parts: parts.map((part) => ({ ...part, name: there(part.name), definition: there(part.definition) })),
    privileges: privileges.map((each) => ({ ...each, object: there(each.object) }))
  } satisfies Catalog.Catalog
})

/** The fact about missing or unknown migrations. Without any, the objects can be compared. */
const comparedMigrations = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const run = `Run: ${invocation("migrate")}`
  const { isEmpty, names } = yield* missing(sql)
  const recorded = isEmpty ? [] : yield* textsOf(sql`select name as text from migrations order by 1`)
  const unknown = recorded.filter((name) => !(name in all))
  return facts(
    isEmpty && fail("It is not migrated.", run),
    !isEmpty && names.length > 0 && fail(`It lacks the migrations ${names.join(", ")}.`, run),
    unknown.length > 0 &&
      warn(
        `It has migrations that this version does not know, so nothing was compared: ${unknown.join(", ")}.`,
        "Deploy the newer version here as well."
      )
  )
})

type Part = Catalog.Part

const keyOf = ({ kind, name, of }: Part) => `${kind} ${of} ${name}`

/** A definition without what differs between databases: the base of the order of changes, and the login that migrated. */
const comparable = ({ definition, name }: Part) =>
  (name.endsWith(".change_base()") ? definition.replace(/RETURN .*/, "") : definition).replace("TO '$user', ", "TO ")

const isSame = (one: Part, part: Part) => comparable(one) === comparable(part) && one.state === part.state

const isOfFeed = ({ definition, kind }: Part) =>
  kind === "trigger" && /\.(\w+_(written|inserted)|records?_(removed|truncated)|keep_deleted)\(/.test(definition)

/** True of a trigger that distributing the tables drops. */
const isDropped = ({ kind, name }: Part) => kind === "trigger" && name !== "zz_written"

const nameOf = ({ kind, name, of }: Part) => {
  if (kind === "column") return `column ${of}.${name}`
  return `${kind} ${name}${kind === "constraint" || kind === "trigger" ? ` of ${of}` : ""}`
}

const quoted = /"(?:[^"]|"")*"|'(?:[^']|'')*'/g

/** A definition whose literals mean the same in every session, and when they are printed. */
const portable = (definition: string) =>
  definition.includes("AS $")
    ? definition
    : definition.replace(quoted, (text) => {
        const escaped = printable(text.replaceAll("\\", "\\\\"))
        return escaped === text || text.startsWith('"') ? text : `E${escaped}`
      })

/** The statement that makes a part as the migrations do, in the place of one that differs. */
const remedyOf = (part: Part, isThere: boolean, { privileges, schema }: Catalog.Catalog): string => {
  const { kind, name, of, state } = part
  const definition = portable(part.definition)
  const alter = `alter table ${schema}.${of}`
  switch (kind) {
    case "index":
      return `${isThere ? `drop index concurrently ${schema}.${name}; ` : ""}${definition.replace("INDEX", "INDEX CONCURRENTLY")}`
    case "constraint":
      return `${isThere ? `${alter} drop constraint ${name}; ` : ""}${alter} add constraint ${name} ${definition}`
    case "trigger": {
      // What was written while a trigger of the feed was off is no change, so the order restarts.
      const enabled = `${alter} enable ${{ A: "always ", R: "replica " }[state] ?? ""}trigger ${name}`
      const enable = isOfFeed(part) ? `select ${schema}.change_begin()` : enabled
      // Rows that were written without it have no JSON, or an older one.
      const render = name === "zz_written" ? `; update ${schema}.${of} set record = ''` : ""
      return `${definition.replace("TRIGGER", "OR REPLACE TRIGGER")}; ${enable}${render}`
    }
    case "function": {
      const granted = privileges.filter(({ object }) => object === `function ${name}`)
      const grants = granted.map((each) => `grant ${Catalog.textOf(each)} to ${each.grantee}`)
      // Everyone may call a new function.
      const isPublic = granted.some(({ grantee }) => grantee === "public")
      return [definition, ...(isPublic ? [] : [`revoke all on function ${name} from public`, ...grants])].join(";\n")
    }
    default:
      return isThere ? `Alter it to: ${definition}` : "Restore it from a backup: it had data."
  }
}

/** A part without its name: a table that was made like another one has its keys and indexes under names of their own. */
const nameless = ({ definition, kind, of, state }: Part) =>
  `${kind} ${of} ${state} ${definition.replace(/ INDEX \S+ ON /, " INDEX ON ")}`

const renaming = (other: Part, { kind, name, of }: Part, schema: string) =>
  kind === "index"
    ? `alter index ${schema}."${other.name}" rename to ${name}`
    : `alter table ${schema}.${of} rename constraint "${other.name}" to ${name}`

/** The objects that are missing or different. Others are the operator's own. */
const compare = (catalog: Catalog.Catalog, expected: Catalog.Catalog, isDistributed: boolean) => {
  const present = new Map(catalog.parts.map((part) => [keyOf(part), part]))
  /** Tables, whose parts are missing too. */
  const absent = new Set(
    expected.parts.flatMap((part) => (part.of === "" && !present.has(keyOf(part)) ? [part.name] : []))
  )
  const keys = new Set(expected.parts.map(keyOf))
  const others = catalog.parts.filter((part) => ["constraint", "index"].includes(part.kind) && !keys.has(keyOf(part)))
  const misnamed = new Map(others.map((part) => [nameless(part), part]))
  return expected.parts.flatMap((part) => {
    if (absent.has(part.of) || (isDistributed && isDropped(part))) return []
    const now = present.get(keyOf(part))
    if (now !== undefined && isSame(now, part)) return []
    const other = now === undefined ? misnamed.get(nameless(part)) : undefined
    if (other !== undefined) {
      return [fail(`The ${nameOf(part)} is named ${other.name}.`, renaming(other, part, expected.schema))]
    }
    const problem = now === undefined ? "is missing" : "differs from the migrations"
    return [fail(`The ${nameOf(part)} ${problem}.`, remedyOf(part, now !== undefined, expected))]
  })
}

export const roleOf: Readonly<Record<Role, string>> = {
  "data-api": "practice_data_api",
  intake: "practice_data_intake",
  worker: "practice_data_worker"
}

const Login = Schema.Struct({ login: Schema.String, is_superuser: Schema.Boolean })

type Privileges = ReadonlyArray<Catalog.Privilege>

const sameAs = (one: Catalog.Privilege) => (other: Catalog.Privilege) =>
  other.object === one.object && other.privilege === one.privilege

/** The privileges that are not held, or not on each column. */
const lacking = (needed: Privileges, held: Privileges) =>
  needed.filter((need) => {
    const own = held.find(sameAs(need))
    const isHeld = (column: string) => own?.columns?.includes(column) === true
    return own === undefined || (own.columns !== null && need.columns?.every(isHeld) !== true)
  })

const statements = (verb: string, some: Privileges, whom: string) =>
  some.map((each) => `${verb} ${Catalog.textOf(each)} ${whom}`).join("; ")

/** The findings about the roles that processes need, and the privileges of the login of this one. */
const examineRoles = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  { privileges, schema }: Catalog.Catalog,
  expected: Privileges,
  needed: ReadonlyArray<Role>
) {
  const [self] = yield* rowsOf(Login)(sql`
    select rolname as login, rolsuper as is_superuser from pg_roles where rolname = current_user`)
  if (self === undefined) return []
  const { is_superuser, login } = self
  const objects = new Set(expected.map(({ object }) => object))
  const names = (some: Privileges) =>
    listed(some.map(({ object, privilege }) => `${privilege} on ${object.replace(`${schema}.`, "")}`))
  const of = (grantee: string) => ({
    held: privileges.filter((each) => each.grantee === grantee),
    given: expected.filter((each) => each.grantee === grantee || each.grantee === "public")
  })
  /** The warning of privileges that a grantee holds and should not. */
  const excess = (subject: string, grantee: string, kinds: RegExp) => {
    const { given, held } = of(grantee)
    const others = held.filter((each) => !given.some(sameAs(each)))
    const some = others.filter(({ object, privilege }) => kinds.test(privilege) && objects.has(object))
    const remedy = statements("revoke", some, `from ${grantee}`)
    return some.length > 0 && warn(`${subject} has excess privileges: ${names(some)}.`, remedy)
  }
  const ofRoles = needed.flatMap((one) => {
    const role = roleOf[one]
    // Everyone may call some functions.
    if (!privileges.some(({ grantee }) => grantee === role)) {
      return [fail(`The role ${role} does not exist.`, `Run: create role ${role} nologin. Then run the doctor again.`)]
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
  // Of loaders: no process needs it.
  const writer = "practice_data_writer"
  const unwritable = needed.length > 0 ? lacking(of(writer).given, of(writer).held) : []
  const grants = (yield* Distribution.hasDistributedTable(sql)) ? yield* Distribution.lackingGrants(sql) : []
  return facts(
    ...ofRoles,
    unwritable.length > 0 &&
      warn(`The role ${writer} lacks ${names(unwritable)}.`, statements("grant", unwritable, `to ${writer}`)),
    excess("Every role", "public", /EXECUTE/),
    ...grants.map((grant) => fail(`Distributed tables need: grant ${grant}.`, `Run: ${invocation("distribute")}`)),
    is_superuser &&
      needed.length > 0 &&
      warn(
        `The login ${login} is a superuser: grants do not restrict it.`,
        `Give the service a dedicated login, and grant it ${needed.map((one) => roleOf[one]).join(", ")}.`
      )
  )
})

/** For processes of the needed roles, or for those that only look API keys up there. */
export const check = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  needed: ReadonlyArray<Role>,
  isOfKeys = false
) {
  const catalog = yield* Catalog.read(sql)
  const expected = yield* migratedIn(catalog.schema)
  const ofKeys = /api_key|\.migrations$|^schema /
  const privileges = expected.privileges.filter(({ object }) => !isOfKeys || ofKeys.test(object))
  const roles = examineRoles(sql, catalog, privileges, needed)
  // To a login that may not use the schema, its tables look as if they were missing.
  if (catalog.isClosed) return yield* roles
  // The check of the roles names the privilege that is lacking.
  const incomplete = yield* Effect.catchReason(comparedMigrations(sql), "SqlError", "AuthorizationError", () =>
    Effect.succeed([])
  )
  if (incomplete.length > 0) return incomplete
  const broken = compare(catalog, expected, yield* Distribution.hasDistributedTable(sql))
  if (broken.length > 0) return broken
  return facts(ok(`It has all ${Object.keys(all).length} migrations, and all of their objects.`), ...(yield* roles))
})
