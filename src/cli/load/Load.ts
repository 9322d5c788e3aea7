/** `load`: loads files into the tables of their resources. Each is read and checked as a whole, and then applied. */
import * as fs from "node:fs"
import { setFlagsFromString } from "node:v8"
import { DateTime, Duration, Effect, Layer, Option, Predicate, Redacted, Result, Stream } from "effect"
import { Argument, type Command, Flag } from "effect/cli"
import * as ConnectionUrl from "../../database/ConnectionUrl.ts"
import { count, counted } from "../../operations/Format.ts"
import { readSettings } from "../../operations/Settings.ts"
import * as Failure from "../../process/Failure.ts"
import * as Operators from "../Operators.ts"
import * as Output from "../Output.ts"
import * as PostgresSession from "../PostgresSession.ts"
import { command, misused, refused } from "../Usage.ts"
import * as Decoder from "./Decoder.ts"
import * as Files from "./Files.ts"
import * as Indexes from "./Indexes.ts"
import * as Staging from "./Staging.ts"

const flags = {
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
  report: Output.progress("faults and notes")
}

type Options = Omit<Command.Command.Config.Infer<typeof flags>, "paths"> & { readonly session: PostgresSession.Session }

const mostListed = 100

const lineOf = (entry: object) => `${JSON.stringify(entry)}\n`

const openRejects = (path: string) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => fs.openSync(path, "w", 0o600),
      catch: (cause) => refused(`Cannot write ${path}: ${Failure.reasonOfFile(cause)}`)
    }),
    (handle) => Effect.sync(() => fs.closeSync(handle))
  )

const secondFile = ({ path, resource }: Files.File, organization: string) =>
  refused(`A second file has ${resource.name} of ${organization}: ${path}. --missing delete needs all in one.`)

/** Loads files. Fails if there is a fault, after the last file. */
export const run = Effect.fnUntraced(function* (files: ReadonlyArray<Files.File>, options: Options) {
  const { organization: owner, report, session } = options
  // What it has is not deleted first. Without an organization, the rows tell whose they are.
  const second = files.find(({ resource }, index) => resource === files[index - 1]?.resource)
  if (options.deletesMissing && owner !== undefined && second !== undefined) return yield* secondFile(second, owner)
  const rejects = options.rejects === undefined ? undefined : yield* openRejects(options.rejects)
  let faults = 0
  let rejected = 0
  const notLoaded: Array<string> = []
  /** The tables of organizations whose file had all of their records. */
  const complete = new Set<string>()

  const limited = Output.everySecond()
  /** Reports that a part of a file, 0 to 1, was read or applied. */
  const advanced = (event: "read" | "applied", file: string, rows: number, part: number) => {
    const sentence = `${file}: ${Math.floor(part * 100)} % ${event}, ${counted(rows, "row")}`
    return limited(report({ event, file, rows, part }, sentence))
  }

  /** Reports the faults of a row, up to a number, and writes it to the rejects. */
  const reject = Effect.fnUntraced(function* (file: string, { faults: ofRow, line, row }: Decoder.Rejected) {
    for (const one of ofRow) {
      faults += 1
      if (faults > mostListed) continue
      const words = [`${file}:${line}`, one.field, one.reason].filter(Predicate.isNotUndefined)
      yield* report({ event: "fault", file, line, ...one }, words.join(": "), true)
    }
    if (rejects === undefined) return
    yield* Effect.try({
      try: () => fs.writeFileSync(rejects, lineOf({ file, line, faults: ofRow, row })),
      catch: (cause) => refused(`Cannot write the rejects: ${Failure.reasonOfFile(cause)}`)
    })
  })

  const stage = Effect.fnUntraced(function* (file: Files.File, decoder: Decoder.Decoder, staging: Staging.Staging) {
    const counts = { rows: 0, rejected: 0, isReadable: true, hasOperations: false }
    const decode = ({ part, rows }: Files.Batch) => {
      const lines: Array<string> = []
      const bad: Array<Decoder.Rejected> = []
      let isLast = false
      for (const row of rows) {
        if ("operation" in row) counts.hasOperations = true
        const decoded = decoder.decode(row)
        if ("line" in decoded) {
          lines.push(`${decoded.line}\n`)
          continue
        }
        bad.push(decoded.rejected)
        isLast = decoded.isLast
        if (isLast) break
      }
      return { lines: lines.join(""), bad, rows: rows.length, part, isLast }
    }
    const batches = Files.read(file).pipe(
      Stream.map(decode),
      Stream.takeUntil(({ isLast }) => isLast),
      // Rows are decoded while the database takes others.
      Stream.buffer({ capacity: 1 })
    )
    yield* Stream.runForEach(batches, ({ bad, isLast, lines, part, rows }) =>
      Effect.gen(function* () {
        for (const row of bad) yield* reject(file.path, row)
        if (lines !== "") yield* staging.append(lines)
        counts.rows += rows
        counts.rejected += bad.length
        if (isLast) counts.isReadable = false
        yield* advanced("read", file.path, counts.rows, part)
      })
    )
    const knowsOrganizations = options.organization !== undefined || file.resource.table === "organizations"
    counts.rejected += yield* staging.check(knowsOrganizations, counts.hasOperations, (row) => reject(file.path, row))
    return counts
  })

  const load = Effect.fnUntraced(function* (file: Files.File) {
    const { resource } = file
    const table = yield* Staging.tableOf(session, resource.table)
    if (!(yield* session.takeLock(`practice-data load ${table.name}`))) {
      return yield* refused(`Another load of ${table.name} is running. Wait until it ends.`)
    }
    const decoder = Decoder.make({ ...options, resource, columns: table.columns })
    const staging = yield* Staging.open(session, table)
    const staged = yield* stage(file, decoder, staging)
    if (!staged.isReadable || (rejects === undefined && staged.rejected > 0)) {
      notLoaded.push(file.path)
      return undefined
    }
    rejected += staged.rejected
    const organizations = options.deletesMissing ? yield* staging.organizations : []
    for (const organization of organizations) {
      const owned = `${table.name} ${organization}`
      if (complete.has(owned)) return yield* secondFile(file, organization)
      complete.add(owned)
    }
    const indexes = yield* Indexes.drop(session, table.name)
    const result = { rows: staged.rows, inserted: 0, updated: 0, unchanged: 0, deleted: 0, rejected: staged.rejected }
    const writing = {
      columns: decoder.seen(table.columns),
      hasComposed: decoder.hasComposed(),
      isFirst: indexes.isFirst,
      keepsTimes: options.keepsTimes
    }
    const apply = staging.apply(writing, ({ deleted, inserted, updated }, part) => {
      result.inserted += inserted
      result.updated += updated
      result.deleted += deleted
      return advanced("applied", file.path, Math.round(staged.rows * part), part)
    })
    const missing = `Indexes of ${table.name} may be missing. Run the load again: it creates them.`
    // Also a load that fails leaves the indexes.
    yield* Effect.tapError(apply, () => Effect.ignore(indexes.create)).pipe(
      Effect.andThen(indexes.create),
      Effect.onInterrupt(() => (indexes.isDropped ? Output.warn(report, missing) : Effect.void))
    )
    result.deleted += yield* staging.deleteMissing(organizations)
    return result
  }, Effect.scoped)

  for (const file of files) {
    const [took, result] = yield* Effect.timed(load(file))
    if (result === undefined) continue
    const { deleted, inserted, rejected: refusedRows, rows, updated } = result
    const unchanged = Math.max(0, rows - refusedRows - inserted - updated)
    const seconds = Duration.toSeconds(took)
    const outcomes = Object.entries({ inserted, updated, unchanged, deleted, rejected: refusedRows })
    const words = outcomes.flatMap(([name, number]) => (number === 0 ? [] : [`${count(number)} ${name}`]))
    yield* report(
      { event: "loaded", file: file.path, ...result, unchanged, seconds },
      `${file.path}: ${[counted(rows, "row"), ...words].join(", ")}, after ${seconds.toFixed(1)} s.`
    )
  }
  if (faults > mostListed) yield* Output.warn(report, `${count(faults - mostListed)} more faults are not listed.`)
  if (notLoaded.length > 0) {
    return yield* refused(`${counted(faults, "fault")}. Nothing was loaded of: ${notLoaded.join(", ")}.`)
  }
  if (rejected > 0) {
    return yield* refused(`${counted(rejected, "row")} rejected, see ${options.rejects}. The others are loaded.`)
  }
})

export const load = command("load", Layer.empty, {
  description: `Load records from files into the Postgres of DATABASE_URL: CSV, NDJSON or Parquet, named as their tables.

A file is charges.csv, charges.ndjson or .jsonl (or any of them with .gz) or charges.parquet, from your own program, or the export in the runbook. Fields have the names of the API or of their columns. A CSV starts with a header; an empty field is null, and a list is JSON. Each file is validated as a whole: faults are counted, the first 100 are listed with file, line and field, and a file with faults is not applied. Then new and changed rows are upserted in short transactions. Columns missing from the file keep their values. To resume a killed load, run it again.

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
  flags
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
  const parsed = Result.getOrThrow(ConnectionUrl.connectionOptions(Redacted.value(databaseUrl.value)))
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
  yield* run(files, { ...options, session })
})
