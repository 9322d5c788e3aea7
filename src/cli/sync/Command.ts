/** `sync`: keeps a copy of the records in step by their changes. */
import { Config, Duration, Effect, Layer, Option, Result } from "effect"
import { Argument, Flag } from "effect/cli"
import { connectionOptions } from "../../database/ConnectionUrl.ts"
import { endAtSecondSignal } from "../../process/Failure.ts"
import * as Output from "../Output.ts"
import { command, misused } from "../Usage.ts"
import * as PostgresTarget from "./PostgresTarget.ts"
import * as Source from "./Source.ts"
import * as SqliteTarget from "./SqliteTarget.ts"
import * as Sync from "./Sync.ts"
import { hasFeed, tables as allTables } from "./Target.ts"

/** The target of `postgres://...` or `sqlite:FILE`. */
export const targetOf = Effect.fnUntraced(function* (
  text: string,
  { schema, softDelete }: Readonly<{ schema: string | undefined; softDelete: boolean }>
) {
  const [, kind, given = ""] = /^(postgres(?:ql)?|sqlite):(.+)/s.exec(text) ?? []
  if (kind === undefined) return yield* misused("The target must be postgres://... or sqlite:FILE.")
  if (kind === "sqlite") {
    if (schema !== undefined) return yield* misused("--schema is for a postgres:// target.")
    return SqliteTarget.make(given, text, softDelete)
  }
  const parsed = connectionOptions(text)
  if (Result.isFailure(parsed)) {
    return yield* misused(`The target is not a URL such as postgres://user@host:5432/database: ${parsed.failure}.`)
  }
  const name = schema ?? new URLSearchParams(text.split("?")[1]).get("schema") ?? "public"
  if (name === "") return yield* misused("The schema name is empty.")
  return PostgresTarget.make({ connection: parsed.success, schema: name, softDelete })
})

const names = allTables.map(({ resource }) => resource).filter(hasFeed)

export const sync = command("sync", Layer.empty, {
  description: `Keep a copy of the records in Postgres or SQLite, in step with the service.

The first run copies everything, one table per resource. Later runs, or --watch, apply the changes since then. Changes become visible in one transaction, so a query sees a consistent state: an invoice with its lines. _synced_at is the time at which a row was written.

You can kill a run at any point; the next one resumes. It never touches tables that it did not create. A SQLite file is readable only by its owner.

Exit codes: 0 in step; 1 refused, such as an invalid API key or target; 2 usage error; 75 the service or the target is unavailable, at startup or for more than a minute: retry later; 130 and 143 stopped by a signal. With --watch, it retries during outages, and reloads a dropped table.`,
  examples: [
    ["PRACTICE_DATA_API_KEY=pda_demo_oakridge practice-data sync sqlite:practice.db"],
    ["practice-data sync postgres://me@localhost/warehouse --schema practice --watch 10", "PGPASSWORD: the password"],
    ["practice-data sync sqlite:charges.db --resource charges", "The charges and the organization"]
  ],
  flags: {
    target: Argument.String("target").pipe(Argument.withDescription("postgres://USER@HOST/DATABASE or sqlite:FILE")),
    tables: Flag.Literals("resource", names).pipe(
      Flag.between(0, names.length),
      Flag.withDescription(
        "Only this resource and the organization; repeatable, default all. A resource that a run omits is reloaded when a later run includes it"
      ),
      Flag.map((chosen) =>
        allTables.filter(
          ({ resource }) => chosen.length === 0 || !hasFeed(resource) || chosen.some((one) => one === resource)
        )
      )
    ),
    watch: Output.integer("watch", 1, 86_400, "Keep running, and poll for changes at this interval in seconds").pipe(
      Flag.map(Duration.seconds),
      Output.optional
    ),
    schema: Output.text("schema", "Postgres only: the schema, default public. Created if it does not exist"),
    softDelete: Output.flag("soft-delete", "Set _removed_at on removed rows instead of deleting them"),
    url: Flag.String("url").pipe(
      Flag.withDescription("URL of the service (PRACTICE_DATA_URL; default http://127.0.0.1:3000)"),
      Flag.withFallbackConfig(Config.NonEmptyString("PRACTICE_DATA_URL")),
      Flag.withDefault("http://127.0.0.1:3000")
    ),
    // Others on the machine see a command line.
    apiKey: Flag.Redacted("api-key").pipe(
      Flag.withDescription("API key (prefer PRACTICE_DATA_API_KEY, which other users cannot see)"),
      Flag.withFallbackConfig(Config.Redacted("PRACTICE_DATA_API_KEY")),
      Flag.optional
    ),
    allowNewUrl: Output.flag("allow-new-url", "Accept a copy made from another URL, if the service moved")
  }
})(function* (given) {
  if (Option.isNone(given.apiKey)) return yield* misused("No API key. Set PRACTICE_DATA_API_KEY or --api-key.")
  const source = yield* Source.make({ baseUrl: given.url, apiKey: given.apiKey.value }).pipe(
    Effect.mapError(({ message }) => misused(`${message}.`))
  )
  const target = yield* targetOf(given.target, given)
  // Until the command ends, only their user can read files that are made.
  yield* Effect.acquireRelease(
    Effect.sync(() => process.umask(0o077)),
    (before) => Effect.sync(() => process.umask(before))
  )
  yield* Effect.sync(endAtSecondSignal)
  yield* Sync.run({ ...given, report: yield* Output.report, source, target })
})
