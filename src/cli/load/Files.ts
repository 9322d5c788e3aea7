/** The files of a load, and their rows: CSV or NDJSON in UTF-8, each of one resource, maybe compressed by gzip. */
import { createReadStream, statSync } from "node:fs"
import { basename } from "node:path"
import { createGunzip } from "node:zlib"
import { Array, Data, Effect, Order, Predicate, Stream } from "effect"
import { columnName } from "../../api/records/Field.ts"
import { resources } from "../../api/records/index.ts"
import type { Resource } from "../../api/records/Resource.ts"
import * as Failure from "../../process/Failure.ts"
import { refused } from "../Usage.ts"
import { fieldsByColumn, parseJson, type Row } from "./Decoder.ts"

const extension = /\.(csv|ndjson|jsonl)(\.gz)?$/i

export interface File {
  readonly path: string
  readonly resource: Resource
  readonly isCsv: boolean
  readonly isGzip: boolean
}

const identify = (path: string) => {
  const [suffix = "", kind = "", gzip] = extension.exec(path) ?? []
  const name = basename(path, suffix).toLowerCase()
  const resource = resources.find((one: Resource) => suffix !== "" && (one.table === name || one.name === name))
  return resource === undefined
    ? refused(`${path} is not named after a resource, such as charges.csv or pets.ndjson.gz.`)
    : Effect.succeed<File>({ path, resource, isCsv: kind.toLowerCase() === "csv", isGzip: gzip !== undefined })
}

const inOrderOfTheApi = Array.sortWith(
  ({ resource }: File) => resources.findIndex((one) => one === resource),
  Order.Number
)

/** The files of paths, in the API's order of resources. */
export const find = (paths: ReadonlyArray<string>) =>
  Effect.map(Effect.forEach(new Set(paths), identify), inOrderOfTheApi)

/** A file cannot be read from this line on. */
export class Unreadable extends Data.TaggedError("Unreadable")<{ readonly line: number; readonly reason: string }> {}

const countLineEnds = (text: string) => text.split("\n").length - 1

const ndjsonRow = (line: number, text: string): Row => {
  const value = parseJson(text)
  return Predicate.isReadonlyObject(value) ? { line, values: { ...value } } : { line, broken: "is not a JSON object" }
}

/** A field of CSV (RFC 4180): the text in its quotes and what follows them, or a text that does not begin with a quote. */
const csvField = /(?:"([^"]*(?:""[^"]*)*)"(?!")([^,\n]*?)|(?!")([^,\n]*?))/
const csvFields = new RegExp(`${csvField.source}(?:,|\r?\n)`, "gy")
const csvRecords = new RegExp(`(?:${csvField.source},)*${csvField.source}\n`, "gy")
const lines = /[^\n]*\n/gy

const fieldText = ([, quoted, , plain = ""]: ReadonlyArray<string | undefined>) =>
  (quoted === undefined ? plain : quoted.replaceAll('""', '"')) || null

const csvRow = (line: number, text: string, header: ReadonlyArray<string | null>): Row => {
  const fields = [...text.matchAll(csvFields)]
  if (fields.some(([, , after = ""]) => after.trim() !== "")) return { line, broken: "has text after a closing quote" }
  if (fields.length !== header.length) {
    return { line, broken: `has ${fields.length} fields, but the header has ${header.length}` }
  }
  return { line, values: Object.fromEntries(fields.map((field, index) => [header[index] ?? "", fieldText(field)])) }
}

/** The reason why a header does not fit the columns of a resource. */
const headerFault = (header: ReadonlyArray<string | null>, resource: Resource) => {
  const names = header.filter(Predicate.isNotNull).map(columnName)
  const text = names.join()
  if (text.includes("\r")) return "has a CR within: lines end with LF or CRLF"
  const twice = names.find((name, index) => names.indexOf(name) < index)
  if (twice !== undefined) return `names a column twice: ${twice}`
  if (names.includes("id")) return undefined
  if (text.startsWith("sep=")) return "is a hint for Excel: remove this line, and separate columns by commas"
  if (text.includes("\t")) return "separates columns by tabs, not by commas"
  if (text.includes(";")) return "separates columns by ;, not by commas"
  return `has no column id, but ${names.join(", ")}. Expected: ${[...fieldsByColumn(resource).keys()].join(", ")}`
}

/** The place up to which a file has been read: the rest of its text, its line, and the header of a CSV. */
interface Place {
  readonly rest: string
  readonly line: number
  readonly header?: ReadonlyArray<string | null> | undefined
  /** The reason why nothing can be read from here on. */
  readonly fault?: string | undefined
}

/** The whole rows of a text that follows a place, and the place after them. */
const parse = (place: Place, text: string, { isCsv, resource }: File): readonly [Place, ReadonlyArray<Row>] => {
  let [{ fault, header, line }, end] = [place, 0]
  const rows: Array<Row> = []
  for (const [row] of text.matchAll(isCsv ? csvRecords : lines)) {
    const isBlank = row.trim() === ""
    if (isCsv && header === undefined && !isBlank) {
      header = [...row.matchAll(csvFields)].map(fieldText)
      fault = headerFault(header, resource)
      if (fault !== undefined) break
    } else if (row.startsWith("\ufeff")) {
      rows.push({ line, broken: "begins with a byte order mark" })
    } else if (!isBlank) rows.push(isCsv ? csvRow(line, row, header ?? []) : ndjsonRow(line, row))
    line += countLineEnds(row)
    end += row.length
  }
  return [{ rest: text.slice(end), line, header, fault }, rows]
}

// The rows of so many bytes are written in a transaction.
const bytesAtOnce = 256 * 1024

const longest = 4 * 1024 * 1024

/** Reads a file: its rows, many at once. `read` gets the part that was read, up to 1. */
export const rows = (file: File, read: (part: number) => Effect.Effect<void>) =>
  Stream.suspend(() => {
    const { isCsv, isGzip, path } = file
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 1
    const raw = createReadStream(path, { highWaterMark: bytesAtOnce })
    const unzip = createGunzip({ chunkSize: bytesAtOnce })
    const bytes = isGzip ? raw.on("error", (cause) => unzip.destroy(cause)).pipe(unzip) : raw
    const decoder = new TextDecoder("utf-8", { fatal: true })
    const next = Effect.fnUntraced(function* (place: Place, part: Uint8Array | undefined) {
      const isEnd = part === undefined
      if (place.line === 1 && place.rest === "" && part?.subarray(0, 4).includes(0)) {
        return yield* new Unreadable({ line: 1, reason: "is UTF-16: save it as UTF-8" })
      }
      const text = yield* Effect.try({
        try: () => decoder.decode(part, { stream: !isEnd }) + (isEnd ? "\n" : ""),
        catch: () => {
          const [valid = ""] = new TextDecoder().decode(part).split("\ufffd")
          return new Unreadable({ line: place.line + countLineEnds(place.rest + valid), reason: "is not UTF-8" })
        }
      })
      const [after, found] = parse(place, place.rest + text, file)
      const { fault, header, line, rest } = after
      if (fault !== undefined) return yield* new Unreadable({ line, reason: fault })
      if (rest.length > (isEnd ? 0 : longest)) {
        return yield* new Unreadable({ line, reason: "has a quote that is not closed, or exceeds 4 MiB" })
      }
      if (isEnd && isCsv && header === undefined) return yield* new Unreadable({ line: 1, reason: "has no header" })
      return [after, [found]] as const
    })
    const unreadable = (cause: unknown) =>
      new Unreadable({ line: 1, reason: `cannot be read: ${Failure.reasonOfFile(cause)}` })
    return Stream.fromAsyncIterable<Uint8Array, Unreadable>(bytes, unreadable).pipe(
      Stream.concat(Stream.make(undefined)),
      Stream.tap(() => read(raw.bytesRead / Math.max(1, size))),
      Stream.mapAccumEffect((): Place => ({ rest: "", line: 1 }), next),
      Stream.ensuring(Effect.sync(() => raw.destroy()))
    )
  })
