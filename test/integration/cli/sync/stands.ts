/** A target of each kind, empty and of the test's own, with a reader of the copy in it. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { NodeServices } from "@effect/platform-node"
import { Effect, Redacted, type Scope } from "effect"
import type { Target } from "../../../../src/cli/sync/Target.ts"
import * as NdjsonTarget from "../../../../src/cli/sync/NdjsonTarget.ts"
import * as PostgresTarget from "../../../../src/cli/sync/PostgresTarget.ts"
import * as SqliteTarget from "../../../../src/cli/sync/SqliteTarget.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import * as Readers from "./readers.ts"

export interface Stand {
  readonly target: Target
  readonly rowsOf: (resource: string) => Effect.Effect<Readers.Rows>
  /** When the copy of charges was last in step; null before it was. */
  readonly inStepAt: Effect.Effect<unknown>
  /** Has somebody else make something with the name of charges. */
  readonly occupy: Effect.Effect<void>
  /** Removes the copy of charges. */
  readonly drop: Effect.Effect<void>
  /** Takes a column from the copy of charges, as if it had been made before the field was added. */
  readonly forget: ((column: string) => Effect.Effect<void>) | undefined
}

let schemas = 0

const postgres = Effect.gen(function* () {
  const { sql, url } = yield* TestDatabase
  const schema = `Copy ${++schemas}`
  const run = (statement: string) => Effect.orDie(Effect.asVoid(sql.unsafe(statement)))
  const stand: Stand = {
    target: PostgresTarget.make({ url: Redacted.make(url), schema, concurrency: 2 }),
    rowsOf: (resource) => Effect.orDie(Readers.inPostgres(sql, schema, resource)),
    inStepAt: Effect.orDie(
      Effect.map(
        sql.unsafe<{ at: string | null }>(
          `select in_step_at::text as at from "${schema}"._practice_data_sync_resources`
        ),
        ([row]) => row?.at
      )
    ),
    occupy: Effect.andThen(run(`create schema "${schema}"`), run(`create table "${schema}".charges (id text)`)),
    drop: run(`drop table "${schema}".charges`),
    forget: (column) => run(`alter table "${schema}".charges drop column "${column}"`)
  }
  return stand
})

const sqlite = Effect.map(temporaryFolder, (folder): Stand => {
  const file = join(folder, "copy.db")
  const run = (statement: string) =>
    Effect.sync(() => {
      const database = new DatabaseSync(file)
      database.exec(statement)
      database.close()
    })
  return {
    target: SqliteTarget.make(file, { name: "sqlite:copy.db", elsewhere: "another file" }),
    rowsOf: (resource) => Effect.sync(() => Readers.inSqlite(file, resource)),
    inStepAt: Effect.sync(() => {
      const database = new DatabaseSync(file)
      const row = database.prepare("select in_step_at as at from _practice_data_sync_resources").get()
      database.close()
      return row?.["at"]
    }),
    occupy: run("create table charges (id text)"),
    drop: run("drop table charges"),
    forget: (column) => run(`alter table charges drop column "${column}"`)
  }
})

const inStepIn = (folder: string): unknown =>
  JSON.parse(readFileSync(join(folder, "_practice_data_sync.json"), "utf8")).resources.charges.in_step_at

const ndjson = Effect.gen(function* () {
  const folder = join(yield* temporaryFolder, "copy")
  const stand: Stand = {
    target: yield* NdjsonTarget.make({ folder, compact: true }),
    rowsOf: (resource) => Effect.sync(() => Readers.inFolder(folder, resource)),
    inStepAt: Effect.sync(() => inStepIn(folder)),
    occupy: Effect.sync(() => {
      mkdirSync(folder)
      writeFileSync(join(folder, "charges.ndjson"), "")
    }),
    drop: Effect.sync(() => rmSync(join(folder, "charges.ndjson"))),
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
