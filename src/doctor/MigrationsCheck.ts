/** Checks which migrations a database has. */
import { Effect } from "effect"
import type { PgClient } from "@effect/sql-pg"
import { all, missing } from "../database/Migrations.ts"
import { invocation } from "../process/Invocation.ts"
import { fail, ok, warn } from "./Finding.ts"

const numberOf = (file: string) => Number.parseInt(file, 10)

/** The migrations. */
export const check = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const { files, isEmpty } = yield* missing(sql)
  const run = `Run: ${invocation("migrate")}`
  if (isEmpty) return [fail("It is not migrated.", run)]
  const rows = yield* sql<{ id: number; name: string }>`
    select migration_id as id, name from migrations order by migration_id`
  const known = Object.keys(all)
  const recorded = new Set(rows.map(({ id }) => id))
  const skipped = known.filter((file) => !files.includes(file) && !recorded.has(numberOf(file)))
  const unknown = rows.filter(({ id }) => !known.some((file) => numberOf(file) === id))
  const newest = unknown.map(({ id, name }) => `${String(id).padStart(5, "0")}_${name}`)
  return [
    ...(files.length === 0 ? [] : [fail(`It lacks the migrations ${files.join(", ")}.`, run)]),
    ...(skipped.length === 0
      ? []
      : [
          fail(
            `It lacks the migrations ${skipped.join(", ")}, and has later ones: these are never applied any more.`,
            "Restore the table migrations, or the database, from where it was whole."
          )
        ]),
    ...(newest.length === 0
      ? []
      : [
          warn(
            `It has migrations that this version does not know: ${newest.join(", ")}.`,
            "Roll the newer version out here as well."
          )
        ]),
    ...(files.length + skipped.length + newest.length === 0 ? [ok(`It has all ${known.length} migrations.`)] : [])
  ]
})
