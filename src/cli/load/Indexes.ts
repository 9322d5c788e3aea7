/**
 * The indexes of a table that is loaded for the first time: dropped before, and created afterwards, which is faster and
 * leaves smaller ones. Their definitions are those of the migrations, so that the next load, or `doctor`, finds what a load
 * that was killed has left out.
 */
import { Effect, Schema } from "effect"
import { migratedIn } from "../../operations/doctor/MigrationsCheck.ts"
import type { Session } from "../PostgresSession.ts"
import { quoteName } from "../sync/SqlCopy.ts"

const Home = Schema.Struct({ schema: Schema.String, isOwner: Schema.Boolean })
const Index = Schema.Struct({ name: Schema.String, definition: Schema.String, isValid: Schema.Boolean })

/** Drops the indexes of a table if it is empty and this login owns it. Returns what creates all that are missing then. */
export const drop = Effect.fnUntraced(function* ({ rows, run }: Session, name: string) {
  const table = quoteName(name)
  const [home] = yield* rows(
    Home,
    `select relnamespace::regnamespace::text as schema, pg_has_role(relowner, 'USAGE') as "isOwner"
     from pg_class where oid = to_regclass($1)`,
    [table]
  )
  const isEmpty = Effect.map(run(`select from ${table} limit 1`), ({ length }) => length === 0)
  const isFirst = yield* isEmpty
  if (home?.isOwner !== true) return { isFirst, isDropped: false, create: Effect.void }
  const { parts } = yield* migratedIn(home.schema)
  const expected = parts.filter(({ kind, of }) => kind === "index" && of === name)
  const indexes = rows(
    Index,
    `select relname as name, pg_get_indexdef(indexrelid) as definition, indisvalid as "isValid"
     from pg_index join pg_class c on c.oid = indexrelid where indrelid = to_regclass($1)`,
    [table]
  )
  const qualified = (index: string) => `${home.schema}.${quoteName(index)}`

  const dropAll = Effect.gen(function* () {
    const there = new Map((yield* indexes).map((index) => [index.name, index.definition]))
    // Readers of changes need theirs.
    const own = expected.filter(
      (index) =>
        index.name !== `${name}_changes` &&
        there.get(index.name)?.replaceAll('"', "") === index.definition.replaceAll('"', "") &&
        !index.definition.includes("UNIQUE")
    )
    if (own.length === 0) return false
    yield* run("begin; set local lock_timeout = '1s'")
    yield* run(`lock table ${table} in access exclusive mode`)
    const isDropped = yield* isEmpty
    if (isDropped) yield* run(`drop index ${own.map((index) => qualified(index.name)).join(", ")}`)
    yield* run("commit")
    return isDropped
  }).pipe(
    // Another session uses the table.
    Effect.catch(() => Effect.as(run("rollback"), false))
  )
  const isDropped = isFirst && (yield* dropAll)

  const create = Effect.gen(function* () {
    const there = yield* indexes
    const missing = expected.filter((index) => !there.some((one) => one.name === index.name && one.isValid))
    for (const index of missing) {
      const isInvalid = there.some((one) => one.name === index.name)
      if (isInvalid) yield* run(`drop index concurrently ${qualified(index.name)}`)
      // A table that was empty has no other writers.
      yield* run(isDropped ? index.definition : index.definition.replace("INDEX", "INDEX CONCURRENTLY"))
    }
    if (missing.length > 0) yield* run(`analyze ${table}`)
  })
  return { isFirst, isDropped, create }
})
