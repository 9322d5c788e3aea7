/** `load`: loads records from files. */
import { setFlagsFromString } from "node:v8"
import { DateTime, Effect, Layer, Option, Redacted, Result } from "effect"
import { Argument, Flag } from "effect/cli"
import * as ConnectionUrl from "../database/ConnectionUrl.ts"
import { readSettings } from "../operations/Settings.ts"
import * as Files from "./load/Files.ts"
import * as Load from "./load/Load.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import * as PostgresSession from "./PostgresSession.ts"
import * as Progress from "./Progress.ts"
import { command, misused, refused } from "./Usage.ts"

export const load = command("load", Layer.empty, {
  description: `Load records from files into the Postgres of DATABASE_URL: CSV, NDJSON or Parquet, named as their tables.

A file is charges.csv, charges.ndjson (or either with .gz) or charges.parquet, from your own program, \`sync\`, or the export in the runbook. Fields have the names of the API or of their columns. A CSV starts with a header; an empty field is null, and a list is JSON. Each file is validated as a whole: faults are counted, the first 100 are listed with file, line and field, and a file with faults is not applied. Then new and changed rows are upserted in short transactions. Columns missing from the file keep their values. To resume a killed load, run it again.

In an empty table that the login owns, the indexes are created after the rows.

Exit codes: 0 loaded; 1 refused, such as for a fault; 2 usage error; 75 the database is unavailable: retry later; 130 and 143 stopped by a signal.`,
  examples: [
    ["practice-data load charges.csv --organization org_1", "Rows of one organization"],
    ["practice-data load export --organization-column tenant --time-zone America/Denver", "A folder, with local times"],
    [
      "practice-data load products.csv --organization org_1 --missing delete",
      "The file is complete: delete all other records"
    ]
  ],
  flags: {
    paths: Argument.String("path").pipe(
      Argument.withDescription("Files, or folders of files. Loaded in the API's order of resources"),
      Argument.atLeast(1)
    ),
    organization: Output.optional(
      Flag.withDescription(Operators.organization, "Id of the organization that owns all rows")
    ),
    organizationColumn: Output.text("organization-column", "Column with the organization id, default organization_id"),
    timeZone: Flag.String("time-zone").pipe(
      Flag.withDescription(
        "Time zone of local times, such as America/Denver. An ambiguous time is read as the earlier one; a skipped time is a fault"
      ),
      Flag.filterMap(DateTime.zoneMakeNamed, (text) => `${text} is not an IANA time zone`),
      Output.optional
    ),
    rejects: Output.text(
      "rejects",
      "Load the valid rows, and write the others with their faults to this file, as NDJSON"
    ),
    deletesMissing: Flag.Literals("missing", ["keep", "delete"]).pipe(
      Flag.withDescription("`delete`: for each organization in a file, delete the records that the file lacks"),
      Flag.map((missing) => missing === "delete"),
      Flag.withDefault(false)
    ),
    keepsTimes: Output.flag("keep-times", "Keep the file's updated_at, for an initial load of history"),
    report: Progress.flag("faults and notes")
  }
})(function* ({ paths, ...options }) {
  const { organization, rejects } = options
  if (organization !== undefined && options.organizationColumn !== undefined) {
    return yield* misused("Use either --organization or --organization-column.")
  }
  if (rejects !== undefined && options.deletesMissing) {
    return yield* misused("--missing delete needs all rows of a file: it cannot be combined with --rejects.")
  }
  const { databaseUrl } = yield* readSettings
  if (Option.isNone(databaseUrl)) return yield* refused("Set DATABASE_URL to the Postgres to load into.")
  // The configuration has checked it.
  const parsed = Result.getOrThrow(ConnectionUrl.parse(Redacted.value(databaseUrl.value)))
  const files = yield* Files.find(paths)
  if (rejects !== undefined && (yield* Files.has(files, rejects))) {
    return yield* misused("--rejects would overwrite a file of the load.")
  }
  yield* Effect.sync(() => {
    // V8 would let its heap grow, young and old, by more than a load needs.
    for (const flag of ["--semi-space-growth-factor=1", "--heap-growing-percent=30"]) setFlagsFromString(flag)
  })
  const session = yield* PostgresSession.open(
    databaseUrl.value,
    ConnectionUrl.format({ ...parsed, user: undefined }),
    "practice-data-load"
  )
  // It would leave settings, and a table, to the session's next client, and find those of another load.
  if (session.isPooled) {
    return yield* refused(
      "DATABASE_URL leads to a connection pooler. Use the address of Postgres: a load needs a session."
    )
  }
  if (organization !== undefined) {
    const known = yield* session.run("select 1 from organizations where organization_id = $1", [organization])
    const create = `organizations create ${organization} --name NAME`
    if (known.length === 0) return yield* refused(`No organization ${organization}. Run: ${create}`)
  }
  yield* Load.run(files, { ...options, session })
})
