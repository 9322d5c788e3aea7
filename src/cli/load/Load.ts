/** Loads files into the tables of their resources: each is read and checked as a whole, and then applied. */
import * as fs from "node:fs"
import { Duration, Effect, Predicate, Stream } from "effect"
import { count, counted } from "../../operations/Format.ts"
import * as Failure from "../../process/Failure.ts"
import type { Session } from "../PostgresSession.ts"
import { everySecond, type Report, warn } from "../Progress.ts"
import { refused } from "../Usage.ts"
import * as Decoder from "./Decoder.ts"
import * as Files from "./Files.ts"
import * as Indexes from "./Indexes.ts"
import * as Staging from "./Staging.ts"

export interface LoadOptions extends Pick<Decoder.DecoderOptions, "organization" | "organizationColumn" | "timeZone"> {
  readonly session: Session
  readonly report: Report
  /** The file for the rows that are refused. Undefined: a file with such a row is not applied. */
  readonly rejects: string | undefined
  readonly deletesMissing: boolean
  readonly keepsTimes: boolean
}

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

/** Loads files. Fails if there is a fault, after the last file. */
export const run = Effect.fnUntraced(function* (files: ReadonlyArray<Files.File>, options: LoadOptions) {
  const { report, session } = options
  const rejects = options.rejects === undefined ? undefined : yield* openRejects(options.rejects)
  let faults = 0
  let rejected = 0
  const notLoaded: Array<string> = []
  /** The tables of organizations whose file had all of their records. */
  const complete = new Set<string>()

  const limited = everySecond()
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
      try: () => fs.writeSync(rejects, lineOf({ file, line, faults: ofRow, row })),
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
      if (complete.has(owned)) {
        const reason = `A second file has ${resource.name} of ${organization}: ${file.path}.`
        return yield* refused(`${reason} --missing delete needs all in one.`)
      }
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
      Effect.onInterrupt(() => (indexes.isDropped ? warn(report, missing) : Effect.void))
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
  if (faults > mostListed) yield* warn(report, `${count(faults - mostListed)} more faults are not listed.`)
  if (notLoaded.length > 0) {
    return yield* refused(`${counted(faults, "fault")}. Nothing was loaded of: ${notLoaded.join(", ")}.`)
  }
  if (rejected > 0) {
    return yield* refused(`${counted(rejected, "row")} rejected, see ${options.rejects}. The others are loaded.`)
  }
})
