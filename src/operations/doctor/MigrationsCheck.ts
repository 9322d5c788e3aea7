/** The check of the migrations that a database has, and of the objects and privileges that they make. */
import { Effect, Schema } from "effect"
import type { PgClient } from "@effect/sql-pg"
import type { Settings } from "../Config.ts"
import * as Catalog from "../../database/Catalog.ts"
import { all, missing, openSchema } from "../../database/Migrations.ts"
import { invocation } from "../../process/Package.ts"
import { fail, ok, rows, type Said, warn } from "./Check.ts"
import migrated from "./migrated.json" with { type: "json" }
import * as RolesCheck from "./RolesCheck.ts"
import * as SchemaCheck from "./SchemaCheck.ts"

const Kind = Schema.Literals(["domain", "function", "column", "default", "not null", "constraint", "index", "trigger"])

const File = Schema.Struct({
  parts: Schema.Array(Schema.Tuple([Kind, Schema.String, Schema.String, Schema.String, Schema.String])),
  privileges: Schema.Array(
    Schema.Tuple([Schema.String, Schema.String, Schema.String, Schema.NullOr(Schema.Array(Schema.String))])
  )
})

const isOfKeys = (name: string) => /api_key|\bmigrations\b|^schema /.test(name)

/** The catalog of a database that has all migrations, in this schema: `migrated.json`, which `npm run generate` writes. */
const expectedIn = Effect.fnUntraced(function* (schema: string, onlyKeys: boolean) {
  const file = yield* Effect.orDie(Schema.decodeUnknownEffect(File)(migrated))
  const there = (text: string) =>
    text
      .replace(/^schema public$/, `schema ${schema}`)
      .replaceAll("public.", `${schema}.`)
      .replaceAll("'public'", `'${schema}'`)
  const parts = file.parts.map(([kind, of, name, definition, state]) => ({
    kind,
    of,
    name: there(name),
    definition: there(definition),
    state
  }))
  const privileges = file.privileges.map(([grantee, privilege, object, columns]) => ({
    grantee,
    privilege,
    object: there(object),
    columns
  }))
  return {
    schema,
    isClosed: false,
    isReplica: false,
    parts: onlyKeys ? parts.filter(({ name, of }) => isOfKeys(of) || isOfKeys(name)) : parts,
    privileges: onlyKeys ? privileges.filter(({ object }) => isOfKeys(object)) : privileges
  } satisfies Catalog.Catalog
})

const Recorded = Schema.Struct({ id: Schema.Int, name: Schema.String })

/** The findings about missing or unknown migrations. Without any, the objects can be compared. */
const recorded = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const run = `Run: ${invocation("migrate")}`
  const { files, isEmpty } = yield* missing(sql)
  if (isEmpty) return { isIncomplete: true, said: [fail("It is not migrated.", run)] }
  if (files.length > 0) {
    return { isIncomplete: true, said: [fail(`It lacks the migrations ${files.join(", ")}.`, run)] }
  }
  const known = new Set(Object.keys(all).map((file) => file.slice(0, 5)))
  const newer = (yield* rows(Recorded, sql`select migration_id as id, name from migrations order by 1`))
    .map(({ id, name }) => `${String(id).padStart(5, "0")}_${name}`)
    .filter((file) => !known.has(file.slice(0, 5)))
  const message = `It has migrations that this version does not know, so its objects were not compared: ${newer.join(", ")}.`
  return {
    isIncomplete: false,
    said: newer.length === 0 ? [] : [warn(message, "Roll the newer version out here as well.")]
  }
})

export interface Options {
  /** The roles of the database that this process needs. */
  readonly needed: ReadonlyArray<RolesCheck.Need>
  /** The database is used for API keys alone. */
  readonly isOfKeys?: boolean
}

/** The needs of a process in the database of a variable. It owns the embedded database. */
export const neededOf = (variable: string | undefined, { roles }: Settings): Options => {
  if (variable === undefined) return { needed: [] }
  const reads = roles.includes("data-api") ? [RolesCheck.roles["data-api"]] : []
  if (variable === "READ_DATABASE_URL") return { needed: reads }
  return variable === "DATABASE_URL"
    ? { needed: roles.map((role) => RolesCheck.roles[role]) }
    : { needed: reads.map(({ name }) => ({ name, can: "look API keys up" })), isOfKeys: true }
}

export const check = Effect.fnUntraced(function* (sql: PgClient.PgClient, options: Options) {
  const catalog = yield* Catalog.read(sql)
  const expected = yield* expectedIn(catalog.schema, options.isOfKeys === true)
  const roles = RolesCheck.check(sql, catalog, expected, options.needed)
  // To a login that may not use the schema, its tables look as if they were missing.
  if (catalog.isClosed) return yield* roles
  // The check of the roles names the privilege that is lacking.
  const { isIncomplete, said } = yield* Effect.catchReason(recorded(sql), "SqlError", "AuthorizationError", () =>
    Effect.succeed({ isIncomplete: false, said: [] })
  )
  if (isIncomplete) return said
  if (catalog.isReplica) return [...said, ...(yield* roles)]
  const found = said.length > 0 ? said : yield* SchemaCheck.check(sql, catalog, expected)
  const open = yield* openSchema(sql)
  const whole: ReadonlyArray<Said> =
    found.length > 0 ? [] : [ok(`It has all ${Object.keys(all).length} migrations, and all that they make.`)]
  return [...found, ...whole, ...(open === undefined ? [] : [warn(open.message, open.statement)]), ...(yield* roles)]
})
