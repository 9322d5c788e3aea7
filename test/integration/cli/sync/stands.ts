/** A target of each kind, empty and of the test's own, with a reader of the copy in it. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { NodeServices } from "@effect/platform-node"
import { Effect, Redacted, type Scope } from "effect"
import * as NdjsonTarget from "../../../../src/cli/sync/NdjsonTarget.ts"
import * as PostgresTarget from "../../../../src/cli/sync/PostgresTarget.ts"
import * as SqliteTarget from "../../../../src/cli/sync/SqliteTarget.ts"
import type { Target } from "../../../../src/cli/sync/Target.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import * as Readers from "./readers.ts"

export interface Stand {
  readonly target: Target
  readonly rowsOf: (resource: string) => Effect.Effect<Readers.Rows>
  /** The time at which the copy of charges was last in step; null before it was. */
  readonly inStepAt: Effect.Effect<unknown>
  /** Makes something else with the name of charges. */
  readonly occupy: Effect.Effect<void>
  /** Removes the copy of charges. */
  readonly drop: Effect.Effect<void>
  /** Takes a column from the copy of charges, as if it had been made before the field was added. */
  readonly forget: ((column: string) => Effect.Effect<void>) | undefined
}

type Run = (statement: string) => Effect.Effect<ReadonlyArray<Readonly<Record<string, unknown>>>>

const inSql = (target: Target, rowsOf: Stand["rowsOf"], prefix: string, run: Run): Stand => ({
  target,
  rowsOf,
  inStepAt: Effect.map(
    run(`select cast(in_step_at as text) as at from ${prefix}_practice_data_sync_resources`),
    ([row]) => row?.["at"]
  ),
  occupy: Effect.asVoid(run(`create table ${prefix}charges (id text)`)),
  drop: Effect.asVoid(run(`drop table ${prefix}charges`)),
  forget: (column) => Effect.asVoid(run(`alter table ${prefix}charges drop column "${column}"`))
})

let schemas = 0

const postgres = Effect.gen(function* () {
  const { sql, url } = yield* TestDatabase
  const schema = `Copy ${++schemas}`
  const run: Run = (statement) => Effect.orDie(sql.unsafe(statement))
  const target = PostgresTarget.make({ url: Redacted.make(url), database: "postgres://db", schema, concurrency: 2 })
  const stand = inSql(target, (name) => Effect.orDie(Readers.inPostgres(sql, schema, name)), `"${schema}".`, run)
  return { ...stand, occupy: Effect.andThen(run(`create schema "${schema}"`), stand.occupy) }
})

const sqlite = Effect.map(temporaryFolder, (folder): Stand => {
  const file = join(folder, "copy.db")
  const run: Run = (statement) =>
    Effect.sync(() => {
      const database = new DatabaseSync(file)
      const rows = database.prepare(statement).all()
      database.close()
      return rows
    })
  const target = SqliteTarget.make(file, { name: "sqlite:copy.db", elsewhere: "another file" })
  return inSql(target, (name) => Effect.sync(() => Readers.inSqlite(file, name)), "", run)
})

const ndjson = Effect.gen(function* () {
  const folder = join(yield* temporaryFolder, "copy")
  const file = join(folder, "charges.ndjson")
  const stand: Stand = {
    target: yield* NdjsonTarget.make(folder, true),
    rowsOf: (resource) => Effect.sync(() => Readers.inFolder(folder, resource)),
    inStepAt: Effect.sync(() => Readers.stateIn(folder).resources.charges.in_step_at),
    occupy: Effect.sync(() => {
      mkdirSync(folder)
      writeFileSync(file, "")
    }),
    drop: Effect.sync(() => rmSync(file)),
    forget: undefined
  }
  return stand
}).pipe(Effect.provide(NodeServices.layer))

/** The kinds of target. */
export const stands: ReadonlyArray<{
  readonly kind: string
  readonly make: Effect.Effect<Stand, never, TestDatabase | Scope.Scope>
}> = [
  { kind: "Postgres", make: postgres },
  { kind: "SQLite", make: sqlite },
  { kind: "a folder", make: ndjson }
]
