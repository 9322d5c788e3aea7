/** `load`: loads records from files. */
import { setFlagsFromString } from "node:v8"
import { DateTime, Effect, Layer, Option, Redacted, Result } from "effect"
import { Argument, Flag, TerminalCapabilities } from "effect/cli"
import * as ConnectionUrl from "../database/ConnectionUrl.ts"
import { config } from "../operations/Config.ts"
import * as Files from "./load/Files.ts"
import * as Load from "./load/Load.ts"
import * as LocalTimes from "./load/LocalTimes.ts"
import { reports } from "./load/Progress.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import * as PostgresSession from "./PostgresSession.ts"
import { command, misused, refused } from "./Usage.ts"

const refuse = (message: string) => misused(["load"], message)

export const load = command("load", Layer.empty, {
  description: `Load records from files into the Postgres of DATABASE_URL: CSV, NDJSON or Parquet, named as their tables.

A file is charges.csv, charges.ndjson (both also with .gz) or charges.parquet, from a program of yours, \`sync\`, or the export of the runbook. Fields have the names of the API or of their columns. A CSV begins with a header; an empty field is null, and a list is JSON. Each file is read and checked as a whole: all faults are listed, the first 100 with file, line and field, and nothing of such a file is applied. Then rows that differ are inserted or updated, in short transactions. A column that the file does not have stays as it is. To resume a load that was killed, run it again.

Into an empty table that the login owns, the indexes are created after the rows.

Exit codes: 0 loaded; 1 refused, such as for a fault; 2 usage error; 75 the database is unavailable: run it again later; 130 and 143 stopped by a signal.`,
  examples: [
    ["practice-data load charges.csv --organization org_1", "Rows of one organization"],
    ["practice-data load export --organization-column tenant --time-zone America/Denver", "A folder, with local times"],
    ["practice-data load products.csv --organization org_1 --missing delete", "The file is the full picture"]
  ],
  flags: {
    paths: Argument.String("path").pipe(
      Argument.withDescription("Files, or folders of files. Resources are loaded in the order of the API"),
      Argument.atLeast(1)
    ),
    organization: Output.optional(Flag.withDescription(Operators.organization, "Id of the organization of all rows")),
    organizationColumn: Output.text(
      "organization-column",
      "Column with the id of the organization, organization_id by default"
    ),
    timeZone: Output.text(
      "time-zone",
      "Time zone of times without one, such as America/Denver. Of a time that happens twice, the first is taken; one that clocks skip is a fault"
    ),
    rejects: Output.text(
      "rejects",
      "Load the good rows, and write the others to this file, as NDJSON with their faults"
    ),
    missing: Flag.Literals("missing", ["keep", "delete"]).pipe(
      Flag.withDefault("keep"),
      Flag.withDescription("`delete`: delete the records that a file lacks, of each organization that it has rows of")
    ),
    keepTimes: Output.flag("keep-times", "Keep updated_at of the file, for a first load of history"),
    progress: Flag.Literals("progress", ["text", "json", "none"]).pipe(
      Flag.optional,
      Flag.withDescription("The report: sentences on a terminal, JSON lines otherwise, or faults and notes alone")
    )
  }
})(function* ({ keepTimes, missing, organization, organizationColumn, paths, rejects, timeZone, ...given }) {
  if (organization !== undefined && organizationColumn !== undefined) {
    return yield* refuse("Give either --organization or --organization-column.")
  }
  if (rejects !== undefined && missing === "delete") {
    return yield* refuse("--missing delete needs all rows of a file: it does not go with --rejects.")
  }
  const zone = Option.flatMap(Option.fromUndefinedOr(timeZone), DateTime.zoneMakeNamed)
  if (timeZone !== undefined && Option.isNone(zone)) {
    return yield* refuse(`${timeZone} is no time zone of the IANA database.`)
  }
  const { databaseUrl } = yield* config
  if (Option.isNone(databaseUrl)) return yield* refused("Set DATABASE_URL to the Postgres to load into.")
  const parsed = ConnectionUrl.parse(Redacted.value(databaseUrl.value))
  if (Result.isFailure(parsed)) return yield* refuse(`DATABASE_URL is not a URL: ${parsed.failure}.`)
  const files = yield* Files.find(paths)
  if (files.some(({ path }) => path === rejects)) return yield* refuse("--rejects would overwrite a file of the load.")
  const { canAnimate } = yield* TerminalCapabilities.TerminalCapabilities
  const progress = Option.getOrElse(given.progress, () => (canAnimate ? "text" : "json"))
  yield* Effect.sync(() => {
    // V8 would let its heap grow, young and old, by more than a load needs.
    for (const flag of ["--semi-space-growth-factor=1", "--heap-growing-percent=30"]) setFlagsFromString(flag)
  })
  const session = yield* PostgresSession.open(databaseUrl.value, {
    name: ConnectionUrl.format({ ...parsed.success, user: undefined }),
    applicationName: "practice-data-load"
  })
  if (organization !== undefined) {
    const known = yield* session.run("select 1 from organizations where organization_id = $1", [organization])
    const create = `organizations create ${organization} --name NAME`
    if (known.length === 0) return yield* refused(`There is no organization ${organization}. Run: ${create}`)
  }
  yield* Load.run(files, {
    session,
    report: reports[progress](),
    organization,
    organizationColumn,
    times: Option.getOrUndefined(Option.map(zone, LocalTimes.make)),
    rejects,
    deletesMissing: missing === "delete",
    keepsTimes: keepTimes
  })
})
