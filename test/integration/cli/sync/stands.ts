/** A target of each kind, empty and of the test's own, with a reader of the copy in it. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Effect, Redacted, type Scope } from "effect"
import * as FolderTarget from "../../../../src/cli/sync/FolderTarget.ts"
import * as Formats from "../../../../src/cli/sync/Formats.ts"
import * as PostgresTarget from "../../../../src/cli/sync/PostgresTarget.ts"
import * as SqliteTarget from "../../../../src/cli/sync/SqliteTarget.ts"
import type { Target } from "../../../../src/cli/sync/Target.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import * as Readers from "./readers.ts"

type Rows = ReadonlyArray<Readonly<Record<string, unknown>>>
type Run = (statement: string) => Effect.Effect<Rows>

export interface Stand {
  readonly target: Target
  readonly rowsOf: (resource: string) => Effect.Effect<Readers.Rows>
  /** The time at which a resource was last in step; null before it was. */
  readonly inStepAt: (resource: string) => Effect.Effect<unknown>
  /** Makes something else with the name of charges. */
  readonly occupy: Effect.Effect<void>
  /** Removes the copy of charges. */
  readonly drop: Effect.Effect<void>
  /** The tables of the copy, if its readers query it. */
  readonly tables?: {
    readonly softDeleting: Target
    /** Runs a statement in which `@` stands before the name of a table. */
    readonly run: Run
  }
}

const inSql = (target: Target, softDeleting: Target, rowsOf: Stand["rowsOf"], run: Run): Stand => ({
  target,
  rowsOf,
  inStepAt: (resource) =>
    Effect.map(
      run(`select cast(in_step_at as text) as at from @_practice_data_sync_resources where resource = '${resource}'`),
      ([row]) => row?.["at"]
    ),
  occupy: Effect.asVoid(run("create table @charges (id text)")),
  drop: Effect.asVoid(run("drop table @charges")),
  tables: { softDeleting, run }
})

let schemas = 0

const postgres = Effect.gen(function* () {
  const { sql, url } = yield* TestDatabase
  const schema = `Copy "${++schemas}`
  const escaped = schema.replaceAll('"', '""')
  const run: Run = (statement) => Effect.orDie(sql.unsafe(statement.replaceAll("@", `"${escaped}".`)))
  const make = (softDelete: boolean) =>
    PostgresTarget.make({ url: Redacted.make(url), database: "postgres://db", schema, softDelete })
  const stand = inSql(make(false), make(true), (name) => Effect.orDie(Readers.inPostgres(sql, escaped, name)), run)
  return { ...stand, occupy: Effect.andThen(run(`create schema "${escaped}"`), stand.occupy) }
})

const runIn =
  (file: string): Run =>
  (statement) =>
    Effect.sync(() => {
      const database = new DatabaseSync(file)
      const rows = database.prepare(statement.replaceAll("@", "")).all()
      database.close()
      return rows
    })

const sqlite = Effect.map(temporaryFolder, (folder): Stand => {
  const file = join(folder, "copy.db")
  return inSql(
    SqliteTarget.make(file, "sqlite:copy.db"),
    SqliteTarget.make(file, "sqlite:copy.db", true),
    (name) => Effect.sync(() => Readers.inSqlite(file, name)),
    runIn(file)
  )
})

const inFolder = (format: Formats.Format, rowsOf: (folder: string, resource: string) => Effect.Effect<Readers.Rows>) =>
  Effect.map(temporaryFolder, (parent): Stand => {
    const folder = join(parent, "copy")
    const target = FolderTarget.make(folder, format)
    const run = runIn(join(folder, "_practice_data_sync.db"))
    const { tables: _, ...stand } = inSql(target, target, (resource) => rowsOf(folder, resource), run)
    const occupy = Effect.sync(() => {
      mkdirSync(folder)
      writeFileSync(join(folder, `charges.${format.kind}`), "")
    })
    return { ...stand, occupy }
  })

const ndjson = inFolder(Formats.ndjson(false), (folder, resource) =>
  Effect.sync(() => Readers.inFolder(folder, resource))
)

const parquet = inFolder(Formats.parquet, (folder, resource) =>
  Effect.promise(() => Readers.inParquet(folder, resource))
)

/** The kinds of target. */
export const stands: ReadonlyArray<{
  readonly kind: string
  readonly make: Effect.Effect<Stand, never, TestDatabase | Scope.Scope>
}> = [
  { kind: "Postgres", make: postgres },
  { kind: "SQLite", make: sqlite },
  { kind: "NDJSON", make: ndjson },
  { kind: "Parquet", make: parquet }
]
