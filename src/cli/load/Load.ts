/** `load`: upserts the rows of files. All are read twice: first every row is checked, then those that differ are written. */
import { Array, Effect, Iterable, Number, Predicate, Schema, Stream } from "effect"
import { Argument, type Command, Flag } from "effect/cli"
import { decodeRows, decodeTexts } from "../../database/Columns.ts"
import { TaskDatabase } from "../../database/Database.ts"
import { inLongTransaction, isLost, sqlMessage } from "../../database/SqlFailure.ts"
import { count, counted } from "../../operations/Format.ts"
import * as Operators from "../Operators.ts"
import * as Output from "../Output.ts"
import { command, refused } from "../Usage.ts"
import * as Decoder from "./Decoder.ts"
import * as Files from "./Files.ts"

const flags = {
  organization: Output.optional(
    Flag.withDescription(Operators.organization, "Id of the organization of all rows; by default their organization_id")
  ),
  missing: Flag.Literals("missing", ["keep", "delete"]).pipe(
    Flag.withDescription("`delete`: delete the records that the files lack, of each organization in them"),
    Flag.withDefault("keep")
  ),
  yes: Flag.String("yes").pipe(
    Flag.withOptionalValue("yes"),
    Flag.withDescription("Delete what the files lack; with its number if that is more than a tenth"),
    Output.optional
  ),
  keepsTimes: Output.flag("keep-times", "Keep the file's updated_at, for an initial load of history")
}

type Options = Command.Command.Config.Infer<typeof flags>

const quoted = (names: ReadonlyArray<string>, row = "") => names.map((name) => `${row}"${name}"`).join(", ")

/** The SQL that writes rows with these columns, given as JSON, where they differ from those of the table. */
const upsert = (table: string, columns: ReadonlyArray<string>) => {
  const others = columns.filter((name) => !Decoder.lastChanges.has(name))
  const times = columns.filter((name) => Decoder.lastChanges.has(name))
  const changed = columns.filter((name) => name !== "organization_id" && name !== "id")
  const assigned = changed.map((name) => `"${name}" = excluded."${name}"`).join(", ")
  const isLater = times.map((name) => `or v."${name}" > old."${name}"`).join(" ")
  return `
    insert into ${table} (${quoted(columns)})
    select ${quoted(columns, "v.")} from json_populate_recordset(null::${table}, $1::json) v
    left join ${table} old on old.organization_id = v.organization_id and old.id = v.id
    where old.id is null or (${quoted(others, "old.")}) is distinct from (${quoted(others, "v.")}) ${isLater}
    on conflict (organization_id, id) do ${assigned === "" ? "nothing" : `update set ${assigned}`}
    returning xmax = 0 as "isNew"`
}

const written = decodeRows(Schema.Struct({ isNew: Schema.Boolean }))

const shortText = (word: unknown) => (Predicate.isString(word) ? word : JSON.stringify(word))?.slice(0, 100)

/** Collects faults: the same one of many lines once, with their number and the first of them. */
const makeFaults = () => {
  const faults = new Map<string, { readonly path: string; readonly words: string; lines: string; count: number }>()
  return {
    add: (path: string, line: number, { field, reason, value }: Decoder.Fault) => {
      const key = JSON.stringify([path, field, reason])
      const words = [shortText(field), reason, shortText(value)].filter(Predicate.isNotUndefined).join(": ")
      const fault = faults.get(key) ?? { path, words, lines: "", count: 0 }
      if (fault.count < 3) fault.lines += `${fault.count === 0 ? "" : ", "}${line}`
      fault.count += 1
      faults.set(key, fault)
    },
    count: () => Number.sumAll(Iterable.map(faults.values(), (fault) => fault.count)),
    lines: () =>
      Array.fromIterable(faults.values()).map(
        ({ count: all, lines, path, words }) =>
          `${path}:${lines}${all > 3 ? ` and ${count(all - 3)} more` : ""}: ${words}`
      )
  }
}

/** A bar on a terminal, of the part of a file that was read. */
const bar = (words: string) => (part: number) =>
  Effect.sync(() => {
    if (!process.stderr.isTTY) return
    const line = `[${"=".repeat(part * 25).padEnd(25)}] ${Math.floor(part * 100)} % ${words}`
    process.stderr.write(`\r\u001b[K${part < 1 ? line : ""}`)
  })

/** Loads files, or nothing if a row has a fault. */
const run = Effect.fnUntraced(function* (files: ReadonlyArray<Files.File>, options: Options) {
  const { keepsTimes, organization } = options
  const sql = yield* TaskDatabase
  const known = new Set(yield* decodeTexts(sql`select organization_id as text from organizations`))
  if (organization !== undefined && !known.has(organization)) {
    return yield* refused(`No organization ${organization}. Run: organizations create ${organization} --name NAME`)
  }

  /** The decoded rows of a file, many at once. */
  const decodedRows = (file: Files.File, done: string) => {
    const decode = Decoder.make(file.resource, { organization, known, keepsTimes })
    return Stream.map(Files.rows(file, bar(`of ${file.path} ${done}`)), Array.map(decode))
  }

  const transact = <A, E>(statements: Effect.Effect<A, E>) =>
    inLongTransaction(
      sql,
      Effect.gen(function* () {
        // Citus passes `set local` on to the servers of the rows.
        yield* sql`set local citus.propagate_set_commands = 'local'`
        yield* sql`set local practice_data.keep_times = ${sql.literal(String(keepsTimes))}`
        return yield* statements
      })
    )

  const faults = makeFaults()
  /** The ids in the files, by table and organization. */
  const owned = new Map<string, { readonly table: string; readonly owner: string; readonly ids: Set<string> }>()
  const idsIn = (table: string, owner: string) => {
    const key = `${table} ${owner}`
    const found = owned.get(key) ?? { table, owner, ids: new Set() }
    owned.set(key, found)
    return found.ids
  }

  /** Collects the ids and the faults of a file. */
  const check = (file: Files.File) => {
    const { path, resource } = file
    if (organization !== undefined) idsIn(resource.table, organization)
    const checkRow = ({ faults: own, id, line, organization: owner }: Decoder.Decoded) => {
      // A copy: the text may be a part of one that is much larger.
      const value = Buffer.from(id).toString()
      if (resource.table === "organizations") known.add(value)
      if (own.length > 0) return own.forEach((fault) => faults.add(path, line, fault))
      const ids = idsIn(resource.table, owner)
      if (ids.has(value)) faults.add(path, line, { field: "id", reason: "is a duplicate", value })
      ids.add(value)
    }
    return Stream.runForEach(decodedRows(file, "checked"), (rows) => Effect.sync(() => rows.forEach(checkRow))).pipe(
      Effect.catchTag("Unreadable", ({ line, reason }) => Effect.sync(() => faults.add(path, line, { reason })))
    )
  }

  /** Writes the rows of a file, and prints their numbers. */
  const write = Effect.fnUntraced(function* (file: Files.File) {
    const { path, resource } = file
    const counts = { inserted: 0, updated: 0, unchanged: 0 }
    const writeRows = Effect.fnUntraced(function* (rows: ReadonlyArray<Decoder.Decoded>) {
      const records = rows.map(({ columns, organization: owner }) => ({ organization_id: owner, ...columns }))
      const groups = Object.values(Array.groupBy(records, (record) => Object.keys(record).join()))
      const statements = Effect.forEach(groups, (group) =>
        // A plan that was kept from an empty table would scan it.
        written(sql.unsafe(upsert(resource.table, Object.keys(group[0])), [JSON.stringify(group)]).unprepared)
      )
      const place = `${path}:${rows[0]?.line} to ${rows.at(-1)?.line}`
      const changed = (yield* Effect.mapError(transact(statements), (error) =>
        isLost(error) ? error : refused(`${place}: the database refuses: ${sqlMessage(error)}. Rows before are loaded.`)
      )).flat()
      const inserted = changed.filter(({ isNew }) => isNew).length
      counts.inserted += inserted
      counts.updated += changed.length - inserted
      counts.unchanged += records.length - changed.length
    })
    yield* Stream.runForEach(decodedRows(file, "loaded"), writeRows).pipe(
      Effect.catchTag("Unreadable", ({ line, reason }) => refused(`${path}:${line}: ${reason}. The file was changed.`))
    )
    const words = Object.entries(counts).flatMap(([name, number]) => (number === 0 ? [] : [`${count(number)} ${name}`]))
    const all = Number.sumAll(Object.values(counts))
    yield* Output.print(`${path}: ${[counted(all, "row"), ...words].join(", ")}.`)
  })

  yield* Effect.forEach(files, check, { discard: true })
  if (faults.count() > 0) {
    yield* Output.note(faults.lines())
    return yield* refused(`${counted(faults.count(), "fault")}. Nothing was loaded.`)
  }
  const lacking = yield* Effect.forEach(options.missing === "delete" ? owned.values() : [], ({ ids, owner, table }) =>
    transact(decodeTexts(sql`select id as text from ${sql(table)} where organization_id = ${owner}`)).pipe(
      Effect.map((all) => ({ table, owner, all: all.length, missing: all.filter((id) => !ids.has(id)) }))
    )
  )
  const missing = Number.sumAll(lacking.map((one) => one.missing.length))
  const all = Number.sumAll(lacking.map((one) => one.all))
  const isMany = missing * 10 > all
  if (missing > 0 && options.yes !== String(missing) && (isMany || options.yes !== "yes")) {
    const lack = `The files lack ${count(missing)} of ${counted(all, "record")}, which would be deleted.`
    return yield* refused(`${lack} Nothing was changed. To delete them, add --yes${isMany ? ` ${missing}` : ""}.`)
  }
  yield* Effect.forEach(files, write, { discard: true })
  for (const { missing: ids, owner, table } of lacking) {
    yield* transact(sql`delete from ${sql(table)} where organization_id = ${owner} and id = any (${ids}::text[])`)
  }
  if (missing > 0) yield* Output.print(`Deleted ${counted(missing, "record")} that the files lack.`)
})

export const load = command("load", Operators.tasks, {
  description: `Load records from files: CSV and NDJSON, as UTF-8, named as their tables.

A file is charges.csv, charges.ndjson or charges.jsonl, or any of them with .gz. Fields have the names of the API or of their columns. A CSV has commas and a header; an empty field is null, and a list is JSON. A time without an offset is UTC. First every row of all files is checked: the same fault of many lines is listed once. With any fault nothing is loaded. Then rows that differ from those of the database are upserted. A field that a row lacks keeps its value. To resume a load that was stopped, run it again.`,
  examples: [
    ["practice-data load charges.csv --organization org_1", "Rows of one organization"],
    ["practice-data load export/*.csv", "Files whose rows have an organization_id"],
    [
      "practice-data load products.csv --organization org_1 --missing delete --yes",
      "The file is complete: delete all other records"
    ]
  ],
  flags: {
    paths: Argument.String("path").pipe(
      Argument.withDescription("Files. Loaded in the API's order of resources"),
      Argument.atLeast(1)
    ),
    ...flags
  }
})(function* ({ paths, ...options }) {
  // `--yes 12` is parsed as `--yes` and a path. No file has such a name.
  const number = options.yes === "yes" ? paths.find((path) => /^\d+$/.test(path)) : undefined
  const files = yield* Files.find(paths.filter((path) => path !== number))
  yield* run(files, { ...options, yes: number ?? options.yes })
})
