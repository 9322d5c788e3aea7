/** The check of the migrations that a database has, and of the objects and privileges that they make. */
import { Effect, Schema } from "effect"
import type { PgClient } from "@effect/sql-pg"
import * as Catalog from "../../database/Catalog.ts"
import { rowsOf } from "../../database/Columns.ts"
import { all, missing, openSchema } from "../../database/Migrations.ts"
import { invocation } from "../../process/Package.ts"
import { fail, ok, warn } from "./Check.ts"
import type { Examined } from "./DatabaseChecks.ts"
import migrated from "./migrated.json" with { type: "json" }
import * as RolesCheck from "./RolesCheck.ts"
import * as SchemaCheck from "./SchemaCheck.ts"

const Migrated = Schema.Struct({
  parts: Schema.Array(Catalog.Part),
  privileges: Schema.Array(Catalog.Privilege)
})

/** The catalog of a database that has all migrations, in this schema: `migrated.json`, which `npm run generate` writes. */
const migratedIn = Effect.fnUntraced(function* (schema: string) {
  const there = (text: string) =>
    text
      .replace(/^schema public$/, `schema ${schema}`)
      .replaceAll("public.", `${schema}.`)
      .replaceAll("'public'", `'${schema}'`)
  const { parts, privileges } = yield* Effect.orDie(Schema.decodeUnknownEffect(Migrated)(migrated))
  return {
    schema,
    isClosed: false,
    isReplica: false,
    parts: parts.map((part) => ({ ...part, name: there(part.name), definition: there(part.definition) })),
    privileges: privileges.map((each) => ({ ...each, object: there(each.object) }))
  } satisfies Catalog.Catalog
})

const isOfKeys = (...names: ReadonlyArray<string>) => names.some((text) => /api_key|\bmigrations\b|^schema /.test(text))

/** The part of a catalog that a database for API keys alone has. */
const ofKeys = (catalog: Catalog.Catalog): Catalog.Catalog => ({
  ...catalog,
  parts: catalog.parts.filter(({ name, of }) => isOfKeys(name, of)),
  privileges: catalog.privileges.filter(({ object }) => isOfKeys(object))
})

const Recorded = Schema.Struct({ id: Schema.Int, name: Schema.String })

/** The findings about missing or unknown migrations. Without any, the objects can be compared. */
const recorded = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const run = `Run: ${invocation("migrate")}`
  const { files, isEmpty } = yield* missing(sql)
  if (isEmpty) return { isIncomplete: true, facts: [fail("It is not migrated.", run)] }
  if (files.length > 0) {
    return { isIncomplete: true, facts: [fail(`It lacks the migrations ${files.join(", ")}.`, run)] }
  }
  const known = new Set(Object.keys(all).map((file) => file.slice(0, 5)))
  const newer = (yield* rowsOf(Recorded)(sql`select migration_id as id, name from migrations order by 1`))
    .map(({ id, name }) => `${String(id).padStart(5, "0")}_${name}`)
    .filter((file) => !known.has(file.slice(0, 5)))
  const message = `It has migrations that this version does not know, so its objects were not compared: ${newer.join(", ")}.`
  return {
    isIncomplete: false,
    facts: newer.length === 0 ? [] : [warn(message, "Roll the newer version out here as well.")]
  }
})

export interface Options {
  readonly needed: ReadonlyArray<RolesCheck.Need>
  /** The database is used for API keys alone. */
  readonly isOfKeys?: boolean
}

export const check = Effect.fnUntraced(function* (sql: PgClient.PgClient, options: Options) {
  const catalog = yield* Catalog.read(sql)
  const whole = yield* migratedIn(catalog.schema)
  const expected = options.isOfKeys === true ? ofKeys(whole) : whole
  const roles = RolesCheck.check(sql, catalog, expected, options.needed)
  // To a login that may not use the schema, its tables look as if they were missing.
  if (catalog.isClosed) return yield* roles
  // The check of the roles names the privilege that is lacking.
  const { facts, isIncomplete } = yield* Effect.catchReason(recorded(sql), "SqlError", "AuthorizationError", () =>
    Effect.succeed({ isIncomplete: false, facts: [] })
  )
  if (isIncomplete) return facts
  if (catalog.isReplica) return [...facts, ...(yield* roles)]
  const found = facts.length > 0 ? facts : yield* SchemaCheck.check(sql, catalog, expected)
  const open = yield* openSchema(sql)
  return [
    ...found,
    ...(found.length > 0 ? [] : [ok(`It has all ${Object.keys(all).length} migrations, and all that they make.`)]),
    ...(open === undefined ? [] : [warn(open.message, open.statement)]),
    ...(yield* roles)
  ]
})

/** The check of a database of the configuration, with what its processes need there. They own the embedded one. */
export const ofExamined = ({ settings, sql, variable }: Examined) => {
  const needed = settings.roles.map((role) => RolesCheck.roles[role])
  const reads = needed.filter((one) => one === RolesCheck.roles["data-api"])
  switch (variable) {
    case undefined:
      return check(sql, { needed: [] })
    case "DATABASE_URL":
      return check(sql, { needed })
    case "READ_DATABASE_URL":
      return check(sql, { needed: reads })
    default:
      return check(sql, { needed: reads.map(({ name }) => ({ name, can: "look API keys up" })), isOfKeys: true })
  }
}
