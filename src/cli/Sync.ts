/** `sync`: keeps a copy of the records in step. */
import { Duration, Effect, Layer, Option, Redacted, Result } from "effect"
import { Argument, Flag, TerminalCapabilities } from "effect/cli"
import * as ConnectionUrl from "../database/ConnectionUrl.ts"
import { endAtSecondSignal } from "../process/Failure.ts"
import { note } from "../process/Printed.ts"
import * as FolderTarget from "./sync/FolderTarget.ts"
import * as Formats from "./sync/Formats.ts"
import * as PostgresTarget from "./sync/PostgresTarget.ts"
import { reports } from "./sync/Progress.ts"
import * as Source from "./sync/Source.ts"
import * as SqliteTarget from "./sync/SqliteTarget.ts"
import * as Sync from "./sync/Sync.ts"
import { tables } from "./sync/Target.ts"
import { clientOf, connection } from "./Connection.ts"
import * as Output from "./Output.ts"
import { command, misused } from "./Usage.ts"

const refuse = (message: string) => misused(["sync"], message)

/** The target of `postgres://...`, `sqlite:FILE`, `parquet:FOLDER` or `ndjson:FOLDER`. */
export const targetOf = Effect.fnUntraced(function* (
  text: string,
  { compact, schema, softDelete }: Readonly<{ schema: Option.Option<string>; compact: boolean; softDelete: boolean }>
) {
  const [, kind, given = ""] = /^(postgres(?:ql)?|sqlite|parquet|ndjson):(.+)/s.exec(text) ?? []
  if (kind === undefined) {
    return yield* refuse("The target must be postgres://..., sqlite:FILE, ndjson:FOLDER or parquet:FOLDER.")
  }
  const isPostgres = kind.startsWith("postgres")
  if (Option.isSome(schema) && !isPostgres) return yield* refuse("--schema is for a postgres:// target.")
  if (compact && kind !== "ndjson") return yield* refuse("--compact is for a folder of NDJSON.")
  if (softDelete && !isPostgres && kind !== "sqlite") return yield* refuse("--soft-delete is for Postgres and SQLite.")
  if (isPostgres) {
    const parsed = ConnectionUrl.parse(text)
    if (Result.isFailure(parsed)) {
      return yield* refuse(`The target is not a URL such as postgres://user@host:5432/database: ${parsed.failure}.`)
    }
    const ignored = parsed.success.ignored.filter((name) => name !== "schema")
    if (ignored.length > 0) yield* note(`The target has parameters that are ignored: ${ignored.join(", ")}`)
    const inUrl = new URLSearchParams(text.split("?")[1]).get("schema") ?? "public"
    const name = Option.getOrElse(schema, () => inUrl)
    if (name === "") return yield* refuse("The schema needs a name.")
    const database = ConnectionUrl.format({ ...parsed.success, user: undefined })
    return PostgresTarget.make({ url: Redacted.make(text), database, schema: name, softDelete })
  }
  if (kind === "sqlite") return SqliteTarget.make(given, text, softDelete)
  return FolderTarget.make(given, kind === "parquet" ? Formats.parquet : Formats.ndjson(compact))
})

const names = tables.map(({ resource }) => resource)

export const sync = command("sync", Layer.empty, {
  description: `Keep a copy of the records in Postgres, SQLite, NDJSON or Parquet, in step with the service.

The first run copies everything, a table or file for each resource. Each later run, or --watch, applies what has changed since. In Postgres and SQLite, changes become visible in one transaction, so that a query sees a state that the service had: an invoice with its lines. _synced_at is the time at which a row was written.

You can kill a run at any point; the next one resumes there. A target that has something else under the same names is not touched. The files that it makes are readable by their user alone.

Exit codes: 0 in step; 1 refused, such as for the API key or the target; 2 usage error; 75 the service or the target is unavailable, at the start or for longer than a minute: run it again later; 130 and 143 stopped by a signal. With --watch, it waits until they are available again, and loads a table again that was dropped.`,
  examples: [
    ["PRACTICE_DATA_API_KEY=pda_demo_oakridge practice-data sync sqlite:practice.db"],
    ["practice-data sync postgres://me@localhost/warehouse --schema practice --watch 10", "PGPASSWORD: the password"],
    ["practice-data sync ndjson:copy --resource charges --compact", "The charges, a line for each"]
  ],
  flags: {
    target: Argument.String("target").pipe(
      Argument.withDescription("postgres://USER@HOST/DATABASE, sqlite:FILE, or a folder: ndjson:FOLDER, parquet:FOLDER")
    ),
    resource: Flag.Literals("resource", names).pipe(
      Flag.between(0, names.length),
      Flag.withDescription(
        "Only this resource. Repeatable; all of them by default. One that a run leaves out is loaded again when a later run includes it"
      )
    ),
    watch: Output.optional(
      Output.integer("watch", 1, 86_400, "Keep running, and poll for changes every so many seconds")
    ),
    schema: Flag.String("schema").pipe(
      Flag.optional,
      Flag.withDescription("The schema of a Postgres, public by default. It is made if there is none")
    ),
    compact: Output.flag("compact", "Rewrite the files of NDJSON to the last state of each record"),
    softDelete: Output.flag(
      "soft-delete",
      "Postgres and SQLite: mark removed rows with the time in _removed_at, in place of deleting them"
    ),
    progress: Flag.Literals("progress", ["text", "json", "none"]).pipe(
      Flag.optional,
      Flag.withDescription("The report: sentences on a terminal, JSON lines otherwise, or notes alone")
    ),
    ...connection,
    allowNewUrl: Output.flag("allow-new-url", "Accept a copy from another address, as the service has moved")
  }
})(function* (given) {
  const source = Source.make(given.url, yield* clientOf(["sync"], given))
  const { canAnimate } = yield* TerminalCapabilities.TerminalCapabilities
  const progress = Option.getOrElse(given.progress, () => (canAnimate ? "text" : "json"))
  // Until the command ends, only their user can read files that are made.
  yield* Effect.acquireRelease(
    Effect.sync(() => process.umask(0o077)),
    (before) => Effect.sync(() => process.umask(before))
  )
  yield* Effect.sync(endAtSecondSignal)
  yield* Sync.run({
    source,
    target: yield* targetOf(given.target, given),
    report: reports[progress](),
    tables: tables.filter(({ resource }) => given.resource.length === 0 || given.resource.includes(resource)),
    watch: given.watch === undefined ? undefined : Duration.seconds(given.watch),
    allowNewUrl: given.allowNewUrl
  })
})
