/** The files of a load, and their rows: CSV, NDJSON or Parquet, each of one resource. */
import * as fs from "node:fs"
import { basename, join } from "node:path"
import { brotliDecompressSync, createGunzip, gunzipSync, zstdDecompressSync } from "node:zlib"
import { Effect, Predicate, Record, Stream } from "effect"
import Papa from "papaparse"
import { resources } from "../../api/records/index.ts"
import type { Resource } from "../../api/records/Resource.ts"
import * as Failure from "../../process/Failure.ts"
import { tables } from "../sync/Target.ts"
import { type Refused, refused } from "../Usage.ts"
import type { Broken, Row } from "./Decoder.ts"
import { numberOf, parseJson } from "./Values.ts"

export interface File {
  readonly path: string
  readonly resource: Resource
  readonly kind: "csv" | "ndjson" | "parquet"
  readonly isGzip: boolean
}

/** Some rows of a file, and the part of the file that has been read, 0 to 1. */
export interface Batch {
  readonly rows: ReadonlyArray<Row | Broken>
  readonly part: number
}

const longest = 4_194_304

const extension = /\.(csv|ndjson|jsonl|parquet)(\.gz)?$/

const fileOf = (path: string): Effect.Effect<File, Refused> => {
  const file = basename(path).toLowerCase()
  const [suffix = "", ending, gzip] = extension.exec(file) ?? []
  const kind = ending === "jsonl" ? "ndjson" : ending
  const name = basename(file, suffix)
  const isGzip = gzip !== undefined
  const resource = resources.find((one: Resource) => one.table === name || one.name === name)
  if (resource !== undefined && (kind === "csv" || kind === "ndjson" || (kind === "parquet" && !isGzip))) {
    return Effect.succeed({ path, resource, kind, isGzip })
  }
  const example = "such as charges.csv, consumption_logs.ndjson.gz or pets.parquet"
  return refused(`${path} is not named after a resource, ${example}.`)
}

const order = (file: File) => resources.findIndex((one: Resource) => one === file.resource)

const failureOf = (path: string) => (cause: unknown) => refused(`Cannot read ${path}: ${Failure.reasonOfFile(cause)}`)

/** The files of paths, in the order in which to load them. Of a folder, those that have the ending of a kind. */
export const find = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
  const places = yield* Effect.forEach(paths, (path) =>
    Effect.try({
      try: () => {
        if (!fs.statSync(path).isDirectory()) return [path]
        const names = fs.readdirSync(path).filter((name) => !name.startsWith(".") && extension.test(name.toLowerCase()))
        return names.toSorted().map((name) => join(path, name))
      },
      catch: failureOf(path)
    })
  )
  const files = yield* Effect.forEach(new Set(places.flat()), fileOf)
  if (files.length === 0) return yield* refused(`No files to load in ${paths.join(", ")}.`)
  return files.toSorted((one, other) => order(one) - order(other))
})

/** True if a path leads to one of the files, by whatever name. */
export const has = (files: ReadonlyArray<File>, path: string) =>
  Effect.try({
    try: () => {
      const target = fs.statSync(path, { throwIfNoEntry: false })
      const isSame = ({ dev, ino }: fs.Stats) => dev === target?.dev && ino === target.ino
      return files.some((file) => isSame(fs.statSync(file.path)))
    },
    catch: failureOf(path)
  })

// Larger parts of a file live longer, and need more memory.
const bytesAtOnce = 65_536

interface Text {
  readonly text: string
  readonly part: Batch["part"]
  /** The last part is empty. A file that is not UTF-8 ends before the first byte that is not. */
  readonly end?: "end" | "not UTF-8"
}

const textsOf = ({ isGzip, path }: File): Stream.Stream<Text, Refused> =>
  Stream.suspend(() => {
    const raw = fs.createReadStream(path, { highWaterMark: bytesAtOnce })
    const unzip = createGunzip({ chunkSize: bytesAtOnce })
    const { size } = fs.statSync(path)
    const decoder = new TextDecoder("utf-8", { fatal: true })
    const decode = (bytes?: Uint8Array): Text => {
      const part = raw.bytesRead / Math.max(size, 1)
      try {
        const text = decoder.decode(bytes, { stream: bytes !== undefined })
        return bytes === undefined ? { text, part: 1, end: "end" } : { text, part }
      } catch {
        const [text = ""] = new TextDecoder().decode(bytes).split("\ufffd")
        return { text, part, end: "not UTF-8" }
      }
    }
    const bytes: AsyncIterable<Uint8Array> = isGzip ? raw.on("error", (error) => unzip.destroy(error)).pipe(unzip) : raw
    return Stream.fromAsyncIterable(bytes, failureOf(path)).pipe(
      Stream.map(decode),
      Stream.concat(Stream.sync(() => decode())),
      Stream.ensuring(Effect.sync(() => raw.destroy()))
    )
  })

const stop = (line: number, broken: string): Broken => ({ line, broken, isLast: true })

interface Parsed {
  readonly rows: ReadonlyArray<Row | Broken>
  /** The text from the first row that is not whole. */
  readonly rest: string
}

const isLast = ({ rows }: Batch) => rows.some((row) => "isLast" in row)

/** The rows of a file of text. The parser reads the rows that are whole, at the end all of them. */
const rowsIn = (file: File, parse: (text: string, isEnd: boolean) => Parsed, lineOf: () => number) => {
  let rest = ""
  const next = ({ end, part, text }: Text): Batch => {
    const parsed = parse(rest + text, end === "end")
    rest = parsed.rest
    const line = lineOf()
    if (end === "not UTF-8") return { rows: [...parsed.rows, stop(line, end)], part }
    if (rest.length <= longest) return { rows: parsed.rows, part }
    return { rows: [...parsed.rows, stop(line, "exceeds 4 MiB, or has an unclosed quote")], part }
  }
  return Stream.takeUntil(Stream.map(textsOf(file), next), isLast)
}

/** The row of a line of NDJSON: a record, that of an export with its organization, or an operation of `sync`. */
const rowOf = (line: number, value: object): Row | Broken => {
  const object: Readonly<Record<string, unknown>> = { ...value }
  const { id, op, organization, record } = object
  const common = { line, isText: false, organization }
  if (op === "remove") return { ...common, names: ["id"], values: [id], operation: op }
  if (!("record" in object)) return { line, names: Object.keys(object), values: Object.values(object), isText: false }
  if (!Predicate.isReadonlyObject(record)) return { line, broken: "record is not an object", row: value }
  const fields = { names: Object.keys(record), values: Object.values(record) }
  return op === "upsert" ? { ...common, ...fields, operation: op } : { ...common, ...fields }
}

const ndjson = (file: File) => {
  let line = 0
  const parsed = (text: string): Row | Broken => {
    const value = parseJson(text)
    if (Predicate.isReadonlyObject(value)) return rowOf(line, value)
    return { line, broken: `is not a JSON object: ${text.slice(0, 100)}`, row: text }
  }
  const parse = (text: string, isEnd: boolean) => {
    const lines = text.split("\n")
    const rest = isEnd ? "" : (lines.pop() ?? "")
    const rows = lines.flatMap((one) => {
      line += 1
      return one.trim() === "" ? [] : [parsed(one)]
    })
    return { rows, rest }
  }
  return rowsIn(file, parse, () => line + 1)
}

const newlines = ["\r\n", "\n", "\r"] as const

const newlineOf = (text: string) => {
  const first = /\r\n|\n|\r(?!$)/.exec(text)?.[0]
  return newlines.find((newline) => newline === first)
}

const csv = (file: File) => {
  let line = 1
  let newline: (typeof newlines)[number] | undefined
  let names: ReadonlyArray<string> | undefined
  const parse = (text: string, isEnd: boolean) => {
    newline ??= newlineOf(text)
    if (newline === undefined && !isEnd) return { rows: [], rest: text }
    // A line end may be cut in two.
    const whole = !isEnd && text.endsWith("\r") ? text.slice(0, -1) : text
    const parsed: Papa.ParseResult<ReadonlyArray<string>> = new Papa.Parser({
      delimiter: ",",
      newline: newline ?? "\n"
    }).parse(whole, 0, !isEnd)
    const hasQuotes = whole.includes('"')
    // One at the end of a row may be in quotes.
    const quotesReturns = whole.includes('\r"')
    const rows: Array<Row | Broken> = []
    // A row that is not whole may have its closing quote, and the delimiter after it, in the next text.
    const error = parsed.errors.find(({ row = 0 }) => isEnd || row < parsed.data.length)
    for (const [index, fields] of parsed.data.entries()) {
      if (error !== undefined && index >= (error.row ?? 0)) break
      const begun = line
      line += 1
      if (hasQuotes) for (const field of fields) if (field.includes("\n")) line += field.split("\n").length - 1
      if (fields.length === 1 && fields[0] === "") continue
      if (names === undefined) names = fields
      else if (fields.length !== names.length) {
        const broken = `has ${fields.length} fields, but the header has ${names.length}`
        rows.push({ line: begun, broken, row: fields })
      } else if (!quotesReturns && fields.at(-1)?.endsWith("\r") === true) {
        rows.push({ line: begun, broken: "ends with a carriage return, unlike the header", row: fields })
      } else
        rows.push({ line: begun, names, values: fields.map((field) => (field === "" ? null : field)), isText: true })
    }
    if (error !== undefined) {
      rows.push(stop(line, `cannot be read: ${error.message}`))
      return { rows, rest: "" }
    }
    return { rows, rest: isEnd ? "" : text.slice(parsed.meta.cursor) }
  }
  return rowsIn(file, parse, () => line)
}

type ParquetColumn = "decimal" | "date" | "local time"

const kinds = new Map<unknown, ParquetColumn>([
  ["DECIMAL", "decimal"],
  ["DATE", "date"]
])

type ParquetColumns = ReadonlyMap<string, ParquetColumn | undefined>

/** A value of a column of Parquet as JSON has it, with what is in lists and structs. */
const jsonOf = (value: unknown, type: string | undefined, name: string, columns: ParquetColumns): unknown => {
  const column = columns.get(name)
  if (Predicate.isDate(value)) {
    if (Number.isNaN(value.getTime())) return "a time out of range"
    const [day = "", time] = value.toISOString().split("T")
    // Times at midnight are how many programs write days.
    if (column === "date" || (type === "date" && time === "00:00:00.000Z")) return day
    return `${day}T${column === "local time" ? time?.slice(0, -1) : time}`
  }
  if (Predicate.isBigInt(value)) return numberOf(String(value))
  if (Array.isArray(value)) return value.map((item) => jsonOf(item, undefined, name, columns))
  if (Predicate.isReadonlyObject(value)) {
    return Record.map({ ...value }, (field: unknown, key) => jsonOf(field, undefined, key, columns))
  }
  if (column !== "decimal" || !Predicate.isNumber(value)) return value
  // The reader multiplies, which is off by the last bit. What is off by more has more digits.
  const rounded = Number(value.toPrecision(15))
  return Math.abs(value - rounded) > Math.abs(value) * 2 ** -51 ? value : rounded
}

// A text may begin with what is elsewhere a byte order mark.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const stringFromBytes = (bytes: Uint8Array) => decoder.decode(bytes)

/** Beside Snappy, which the reader has. */
const compressors = {
  BROTLI: (bytes: Uint8Array) => brotliDecompressSync(bytes),
  GZIP: (bytes: Uint8Array) => gunzipSync(bytes),
  ZSTD: (bytes: Uint8Array) => zstdDecompressSync(bytes)
}

const parquet = ({ path, resource }: File): Stream.Stream<Batch, Refused> =>
  Effect.gen(function* () {
    const attempt = <A>(work: () => Promise<A>) => Effect.tryPromise({ try: work, catch: failureOf(path) })
    // Other files do not need it.
    const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } = yield* attempt(() => import("hyparquet"))
    const file = yield* attempt(() => asyncBufferFromFile(path))
    const metadata = yield* attempt(() => parquetMetadataAsync(file))
    const table = tables.find(({ name }) => name === resource.table)
    const types = new Map(table?.columns.map(({ name, type }) => [name, type]))
    const columns = new Map(
      metadata.schema.map(({ converted_type, logical_type, name }): readonly [string, ParquetColumn | undefined] => {
        const isLocal = logical_type?.type === "TIMESTAMP" && !logical_type.isAdjustedToUTC
        return [name, isLocal ? "local time" : kinds.get(converted_type)]
      })
    )
    const total = Number(metadata.num_rows)
    let rowEnd = 0
    const readGroup = ({ num_rows }: (typeof metadata.row_groups)[number]) => {
      const rowStart = rowEnd
      rowEnd += Number(num_rows)
      const options = { compressors, file, metadata, parsers: { stringFromBytes }, rowStart, rowEnd }
      return attempt(() => parquetReadObjects(options))
    }
    let line = 0
    const rowOfRecord = (record: Readonly<Record<string, unknown>>): Row => {
      line += 1
      const names = Object.keys(record)
      const values = names.map((name) => jsonOf(record[name], types.get(name), name, columns))
      return { line, names, values, isText: false }
    }
    return Stream.fromIterable(metadata.row_groups).pipe(
      Stream.mapEffect(readGroup),
      Stream.flatMap((records) => Stream.fromIterable(records).pipe(Stream.map(rowOfRecord), Stream.grouped(1000))),
      Stream.map((rows): Batch => ({ rows, part: (rows.at(-1)?.line ?? 0) / total }))
    )
  }).pipe(Stream.unwrap)

const readers = { csv, ndjson, parquet }

export const read = (file: File): Stream.Stream<Batch, Refused> => Stream.suspend(() => readers[file.kind](file))
