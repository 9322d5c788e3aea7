/** `sync`: keeps a copy of the records in step. */
import { Duration, Effect, Layer, Redacted, Result } from "effect"
import { Argument, Flag } from "effect/cli"
import * as ConnectionUrl from "../database/ConnectionUrl.ts"
import { endAtSecondSignal } from "../process/Failure.ts"
import { note } from "../process/Printed.ts"
import * as FolderTarget from "./sync/FolderTarget.ts"
import * as Formats from "./sync/Formats.ts"
import * as PostgresTarget from "./sync/PostgresTarget.ts"
import * as Source from "./sync/Source.ts"
import * as SqliteTarget from "./sync/SqliteTarget.ts"
import * as Sync from "./sync/Sync.ts"
import { tables } from "./sync/Target.ts"
import { clientOf, connection } from "./Connection.ts"
import * as Output from "./Output.ts"
import * as Progress from "./Progress.ts"
import { command, misused } from "./Usage.ts"

/** The target of `postgres://...`, `sqlite:FILE`, `parquet:FOLDER` or `ndjson:FOLDER`. */
export const targetOf = Effect.fnUntraced(function* (
  text: string,
  { compact, schema, softDelete }: Readonly<{ schema: string | undefined; compact: boolean; softDelete: boolean }>
) {
  const [, kind, given = ""] = /^(postgres(?:ql)?|sqlite|parquet|ndjson):(.+)/s.exec(text) ?? []
  if (kind === undefined) {
    return yield* misused("The target must be postgres://..., sqlite:FILE, ndjson:FOLDER or parquet:FOLDER.")
  }
  const isPostgres = kind.startsWith("postgres")
  if (schema !== undefined && !isPostgres) return yield* misused("--schema is for a postgres:// target.")
  if (compact && kind !== "ndjson") return yield* misused("--compact is for a folder of NDJSON.")
  if (softDelete && !isPostgres && kind !== "sqlite") return yield* misused("--soft-delete is for Postgres and SQLite.")
  if (isPostgres) {
    const parsed = ConnectionUrl.parse(text)
    if (Result.isFailure(parsed)) {
      return yield* misused(`The target is not a URL such as postgres://user@host:5432/database: ${parsed.failure}.`)
    }
    const ignored = parsed.success.ignored.filter((name) => name !== "schema")
    if (ignored.length > 0) yield* note(`Ignored parameters of the target: ${ignored.join(", ")}`)
    const name = schema ?? new URLSearchParams(text.split("?")[1]).get("schema") ?? "public"
    if (name === "") return yield* misused("The schema name is empty.")
    const database = ConnectionUrl.format({ ...parsed.success, user: undefined })
    return PostgresTarget.make({ url: Redacted.make(text), database, schema: name, softDelete })
  }
  if (kind === "sqlite") return SqliteTarget.make(given, text, softDelete)
  return FolderTarget.make(given, kind === "parquet" ? Formats.parquet : Formats.ndjson(compact))
})

const names = tables.map(({ resource }) => resource)

export const sync = command("sync", Layer.empty, {
  description: `Keep a copy of the records in Postgres, SQLite, NDJSON or Parquet, in step with the service.

The first run copies everything, one table or file per resource. Later runs, or --watch, apply the changes since then. In Postgres and SQLite, changes become visible in one transaction, so a query sees a consistent state: an invoice with its lines. _synced_at is the time at which a row was written.

You can kill a run at any point; the next one resumes. It never touches tables or files that it did not create. Its files are readable only by their owner.

Exit codes: 0 in step; 1 refused, such as an invalid API key or target; 2 usage error; 75 the service or the target is unavailable, at startup or for more than a minute: retry later; 130 and 143 stopped by a signal. With --watch, it retries during outages, and reloads a dropped table.`,
  examples: [
    ["PRACTICE_DATA_API_KEY=pda_demo_oakridge practice-data sync sqlite:practice.db"],
    ["practice-data sync postgres://me@localhost/warehouse --schema practice --watch 10", "PGPASSWORD: the password"],
    ["practice-data sync ndjson:copy --resource charges --compact", "The charges, one line each"]
  ],
  flags: {
    target: Argument.String("target").pipe(
      Argument.withDescription("postgres://USER@HOST/DATABASE, sqlite:FILE, or a folder: ndjson:FOLDER, parquet:FOLDER")
    ),
    tables: Flag.Literals("resource", names).pipe(
      Flag.between(0, names.length),
      Flag.withDescription(
        "Only this resource; repeatable, default all. A resource that a run omits is reloaded when a later run includes it"
      ),
      Flag.map((chosen) => tables.filter(({ resource }) => chosen.length === 0 || chosen.includes(resource)))
    ),
    watch: Output.integer("watch", 1, 86_400, "Keep running, and poll for changes at this interval in seconds").pipe(
      Flag.map(Duration.seconds),
      Output.optional
    ),
    schema: Output.text("schema", "Postgres only: the schema, default public. Created if it does not exist"),
    compact: Output.flag("compact", "NDJSON only: rewrite changed files to the last state of each record"),
    softDelete: Output.flag(
      "soft-delete",
      "Postgres and SQLite: set _removed_at on removed rows instead of deleting them"
    ),
    report: Progress.flag("notes"),
    ...connection,
    allowNewUrl: Output.flag("allow-new-url", "Accept a copy made from another URL, if the service moved")
  }
})(function* (given) {
  const source = Source.make(given.url, yield* clientOf(given))
  // Until the command ends, only their user can read files that are made.
  yield* Effect.acquireRelease(
    Effect.sync(() => process.umask(0o077)),
    (before) => Effect.sync(() => process.umask(before))
  )
  yield* Effect.sync(endAtSecondSignal)
  yield* Sync.run({ ...given, source, target: yield* targetOf(given.target, given) })
})
