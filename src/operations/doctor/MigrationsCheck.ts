/** The check of the migrations that a database has, and of the objects and privileges that they make. */
import { Effect, Schema } from "effect"
import type { PgClient } from "@effect/sql-pg"
import * as Catalog from "../../database/Catalog.ts"
import { rowsOf } from "../../database/Columns.ts"
import { all, missing, openSchema } from "../../database/Migrations.ts"
import { invocation } from "../../process/Package.ts"
import type { Role } from "../Config.ts"
import { fail, facts, ok, warn } from "./Check.ts"
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
    parts: parts.map((part) => ({ ...part, name: there(part.name), definition: there(part.definition) })),
    privileges: privileges.map((each) => ({ ...each, object: there(each.object) }))
  } satisfies Catalog.Catalog
})

const Recorded = Schema.Struct({ id: Schema.Int, name: Schema.String })

const lastKnown = Math.max(...Object.keys(all).map((file) => Number.parseInt(file, 10)))

/** The fact about missing or unknown migrations. Without any, the objects can be compared. */
const recorded = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const run = `Run: ${invocation("migrate")}`
  const { files, isEmpty } = yield* missing(sql)
  const newer = rowsOf(Recorded)(
    sql`select migration_id as id, name from migrations where migration_id > ${lastKnown} order by 1`
  )
  const unknown = isEmpty ? [] : (yield* newer).map(({ id, name }) => `${String(id).padStart(5, "0")}_${name}`)
  return facts(
    isEmpty && fail("It is not migrated.", run),
    !isEmpty && files.length > 0 && fail(`It lacks the migrations ${files.join(", ")}.`, run),
    unknown.length > 0 &&
      warn(
        `It has migrations that this version does not know, so nothing was compared: ${unknown.join(", ")}.`,
        "Roll the newer version out here as well."
      )
  )
})

/** The part of a catalog that a login needs to look API keys up. */
const ofKeys = (catalog: Catalog.Catalog): Catalog.Catalog => ({
  ...catalog,
  privileges: catalog.privileges.filter(({ object }) => /api_key|\.migrations$|^schema /.test(object))
})

/**
 * @param needed the roles of the processes that use the database
 * @param isOfKeys true if they only look API keys up there
 */
export const check = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  needed: ReadonlyArray<Role>,
  isOfKeys = false
) {
  const catalog = yield* Catalog.read(sql)
  const expected = yield* migratedIn(catalog.schema)
  const roles = RolesCheck.check(sql, catalog, isOfKeys ? ofKeys(expected) : expected, needed)
  // To a login that may not use the schema, its tables look as if they were missing.
  if (catalog.isClosed) return yield* roles
  // The check of the roles names the privilege that is lacking.
  const incomplete = yield* Effect.catchReason(recorded(sql), "SqlError", "AuthorizationError", () =>
    Effect.succeed([])
  )
  if (incomplete.length > 0) return incomplete
  const broken = yield* SchemaCheck.check(sql, catalog, expected)
  if (broken.length > 0) return broken
  const open = yield* openSchema(sql)
  return facts(
    ok(`It has all ${Object.keys(all).length} migrations, and all that they make.`),
    open !== undefined && warn(open.message, open.statement),
    ...(yield* roles)
  )
})
