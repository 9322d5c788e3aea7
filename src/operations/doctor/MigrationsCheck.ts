/** Checks which migrations a database has, and that everything is there that they make. */
import { Effect } from "effect"
import type { PgClient } from "@effect/sql-pg"
import type { SqlError } from "effect/sql/SqlError"
import * as Catalog from "../../database/Catalog.ts"
import { all, missing, openSchema } from "../../database/Migrations.ts"
import { invocation } from "../../process/Package.ts"
import { fail, ok, type Said, warn } from "./Finding.ts"
import * as Migrated from "./Migrated.ts"
import * as RolesCheck from "./RolesCheck.ts"
import * as SchemaCheck from "./SchemaCheck.ts"

const run = `Run: ${invocation("migrate")}`

/** The migrations that this version does not know. */
const unknown = (sql: PgClient.PgClient) =>
  Effect.map(sql<{ id: number; name: string }>`select migration_id as id, name from migrations order by 1`, (rows) =>
    rows
      .map(({ id, name }) => `${String(id).padStart(5, "0")}_${name}`)
      .filter((file) => !Object.keys(all).some((known) => known.startsWith(file.slice(0, 5))))
  )

/** Says which migrations are missing or unknown. With neither, the objects of the database can be compared. */
const recorded = Effect.fnUntraced(function* (
  sql: PgClient.PgClient
): Effect.fn.Return<{ readonly lacks: boolean; readonly said: ReadonlyArray<Said> }, SqlError> {
  const { files, isEmpty } = yield* missing(sql)
  if (isEmpty) return { lacks: true, said: [fail("It is not migrated.", run)] }
  if (files.length > 0) return { lacks: true, said: [fail(`It lacks the migrations ${files.join(", ")}.`, run)] }
  const newer = yield* unknown(sql)
  if (newer.length === 0) return { lacks: false, said: [] }
  const message = `It has migrations that this version does not know, so its objects were not compared: ${newer.join(", ")}.`
  return { lacks: false, said: [warn(message, "Roll the newer version out here as well.")] }
})

export interface Options {
  /** The roles of the database that this process needs. */
  readonly needed: ReadonlyArray<RolesCheck.Need>
  /** The database is used for API keys alone. */
  readonly isOfKeys?: boolean
}

/** The name is of what API keys need. */
const isOfKeys = (name: string) => /api_key|\bmigrations\b|^schema /.test(name)

/** The migrations; then the objects that they make, and the privileges. */
export const check = Effect.fnUntraced(function* (sql: PgClient.PgClient, options: Options) {
  const catalog = yield* Catalog.read(sql)
  const whole = yield* Migrated.inSchema(catalog.schema)
  const migrated: Catalog.Catalog = options.isOfKeys
    ? {
        ...whole,
        parts: whole.parts.filter(({ name, of }) => isOfKeys(of) || isOfKeys(name)),
        privileges: whole.privileges.filter(({ object }) => isOfKeys(object))
      }
    : whole
  const roles = RolesCheck.check(sql, catalog, migrated, options.needed)
  // To a login that may not use the schema, its tables look as if they were missing.
  if (catalog.isClosed) return yield* roles
  const { lacks, said } = yield* Effect.catchIf(
    recorded(sql),
    // The privilege that is lacking is among those that are said to be.
    ({ reason }) => reason._tag === "AuthorizationError",
    () => Effect.succeed({ lacks: false, said: [] })
  )
  if (lacks) return said
  if (catalog.isReplica) return [...said, ...(yield* roles)]
  const different = said.length > 0 ? [] : yield* SchemaCheck.check(sql, catalog, migrated)
  const found = [...said, ...different]
  const open = yield* openSchema(sql)
  return [
    ...found,
    ...(found.length === 0 ? [ok(`It has all ${Object.keys(all).length} migrations, and all that they make.`)] : []),
    ...(open === undefined ? [] : [warn(open.message, open.statement)]),
    ...(yield* roles)
  ]
})
