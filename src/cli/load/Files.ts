/** The files of a load, and their rows: CSV or NDJSON in UTF-8, each of one resource, maybe compressed by gzip. */
import { createReadStream, readdirSync, statSync } from "node:fs"
import { basename, join } from "node:path"
import { createGunzip } from "node:zlib"
import { Data, Effect, Predicate, Stream } from "effect"
import { resources } from "../../api/records/index.ts"
import type { Resource } from "../../api/records/Resource.ts"
import * as Failure from "../../process/Failure.ts"
import { refused } from "../Usage.ts"
import { parseJson, type Row } from "./Decoder.ts"

const extension = /\.(csv|ndjson|jsonl)(\.gz)?$/i

const identify = (path: string) => {
  const [suffix = "", kind = "", gzip] = extension.exec(path) ?? []
  const name = basename(path, suffix).toLowerCase()
  const order = resources.findIndex((one: Resource) => suffix !== "" && (one.table === name || one.name === name))
  const resource: Resource | undefined = resources[order]
  const isCsv = kind.toLowerCase() === "csv"
  return { path, order, resource, isCsv, isGzip: gzip !== undefined, bytes: statSync(path).size }
}

export type File = ReturnType<typeof identify> & { readonly resource: Resource }

/** The files of paths, in the API's order of resources. Of a folder, those that have the ending of a kind. */
export const find = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
  const expand = (path: string) =>
    statSync(path).isDirectory()
      ? readdirSync(path).flatMap((name) => (extension.test(name) && !name.startsWith(".") ? [join(path, name)] : []))
      : [path]
  const files = yield* Effect.try({
    try: () => [...new Set(paths.flatMap(expand).toSorted())].map(identify),
    catch: (cause) => refused(`Cannot read ${paths.join(", ")}: ${Failure.reasonOfFile(cause)}`)
  })
  if (files.length === 0) return yield* refused(`No files to load in ${paths.join(", ")}.`)
  return yield* Effect.forEach(
    files.toSorted((one, other) => one.order - other.order),
    ({ resource, ...file }) =>
      resource === undefined
        ? refused(`${file.path} is not named after a resource, such as charges.csv or pets.ndjson.gz.`)
        : Effect.succeed<File>({ ...file, resource })
  )
})

/** Nothing of a file can be read from this line on. */
export class Unreadable extends Data.TaggedError("Unreadable")<{ readonly line: number; readonly reason: string }> {}

/** The place up to which a file has been read: the rest of its text, its line, and the header of a CSV. */
interface Place {
  readonly rest: string
  readonly line: number
  readonly header?: ReadonlyArray<string>
}

type Parsed = readonly [Place, ReadonlyArray<Row>]

const lineEnds = (text: string) => text.split("\n").length - 1

/** The row of a line of NDJSON: a record, or that of an export beside its organization. */
const ndjsonRow = (text: string, line: number): Row => {
  const value = parseJson(text)
  if (!Predicate.isReadonlyObject(value)) return { line, broken: "is not a JSON object", values: { text } }
  const { organization, record }: Readonly<Record<string, unknown>> = { ...value }
  if (Predicate.isReadonlyObject(record)) return { line, organization, values: { ...record } }
  return { line, values: { ...value } }
}

const ndjson = ({ line, rest }: Place, isEnd: boolean): Parsed => {
  const end = isEnd ? rest.length : rest.lastIndexOf("\n") + 1
  const texts = rest.slice(0, end).split("\n")
  const rows = texts.flatMap((text, index) => (text.trim() === "" ? [] : [ndjsonRow(text, line + index)]))
  return [{ rest: rest.slice(end), line: line + texts.length - 1 }, rows]
}

const closingQuote = (text: string, opening: number) => {
  let quote = text.indexOf('"', opening + 1)
  while (quote !== -1 && text[quote + 1] === '"') quote = text.indexOf('"', quote + 2)
  return quote
}

/** The record of CSV (RFC 4180) at a place of a text. Undefined: it is not whole. */
const recordAt = (text: string, start: number, isEnd: boolean) => {
  const fields: Array<string | null> = []
  let isBroken = false
  for (let at = start; ;) {
    const isQuoted = text[at] === '"'
    const quote = isQuoted ? closingQuote(text, at) : at
    const stop = isEnd ? /,|\r?(?:\n|$)/g : /,|\r?\n/g
    stop.lastIndex = isQuoted ? quote + 1 : at
    const found = stop.exec(text)
    if (quote === -1 || found === null) return undefined
    const value = isQuoted ? text.slice(at + 1, quote).replaceAll('""', '"') : text.slice(at, found.index)
    fields.push(value === "" ? null : value)
    isBroken ||= isQuoted && text.slice(quote + 1, found.index).trim() !== ""
    at = stop.lastIndex
    if (found[0] !== ",") return { fields, isBroken, text: text.slice(start, at) }
  }
}

const headerFault = ([first = null, ...others]: ReadonlyArray<string | null>) => {
  if (first === null) return "has no header"
  if (first.startsWith("sep=")) return "begins with sep=: remove this line"
  const [delimiter] = others.length > 0 ? [] : (/[;\t|]/.exec(first) ?? [])
  return delimiter && `is separated by ${delimiter === "\t" ? "tabs" : delimiter}: expected commas`
}

const csv = ({ header: known, line: first, rest }: Place, isEnd: boolean): Parsed | Unreadable => {
  const rows: Array<Row> = []
  let [header, line, at] = [known, first, 0]
  for (let found; at < rest.length && (found = recordAt(rest, at, isEnd)) !== undefined; at += found.text.length) {
    const { fields, isBroken, text: given } = found
    const fault = header === undefined ? headerFault(fields) : undefined
    if (fault !== undefined) return new Unreadable({ line, reason: fault })
    if (header === undefined) header = fields.map((name) => name ?? "")
    else if (isBroken) rows.push({ line, broken: "has text after a closing quote", values: { text: given } })
    else if (fields.length === header.length) {
      rows.push({
        line,
        organization: undefined,
        values: Object.fromEntries(header.map((name, index) => [name, fields[index]]))
      })
    } else if (given.trim() !== "") {
      rows.push({
        line,
        broken: `has ${fields.length} fields, but the header has ${header.length}`,
        values: { text: given }
      })
    }
    line += lineEnds(given)
  }
  if (isEnd && header === undefined) return new Unreadable({ line, reason: "has no header" })
  return [{ rest: rest.slice(at), line, ...(header && { header }) }, rows]
}

// The rows of so many bytes are written in a transaction.
const bytesAtOnce = 256 * 1024

const longest = 4 * 1024 * 1024

/** Reads a file: its rows, many at once. `read` gets the part that was read, 0 to 1. */
export const rows = ({ bytes: size, isCsv, isGzip, path }: File, read: (part: number) => Effect.Effect<void>) =>
  Stream.suspend(() => {
    const unreadable = (cause: unknown) =>
      new Unreadable({ line: 1, reason: `cannot be read: ${Failure.reasonOfFile(cause)}` })
    const raw = createReadStream(path, { highWaterMark: bytesAtOnce })
    const unzip = createGunzip({ chunkSize: bytesAtOnce })
    const bytes = isGzip ? raw.on("error", (cause) => unzip.destroy(cause)).pipe(unzip) : raw
    const decoder = new TextDecoder("utf-8", { fatal: true })
    const next = Effect.fnUntraced(function* (place: Place, part: Uint8Array | undefined) {
      const text = yield* Effect.try({
        try: () => decoder.decode(part, { stream: part !== undefined }),
        catch: () => {
          const [valid = ""] = new TextDecoder().decode(part).split("\ufffd")
          const what = place.line === 1 && valid === "" ? "UTF-8. It may be UTF-16" : "UTF-8"
          return new Unreadable({ line: place.line + lineEnds(place.rest + valid), reason: `is not ${what}` })
        }
      })
      const parsed = (isCsv ? csv : ndjson)({ ...place, rest: place.rest + text }, part === undefined)
      if (parsed instanceof Unreadable) return yield* parsed
      const [{ line, rest }, found] = parsed
      if (rest.length <= (part === undefined ? 0 : longest)) return [parsed[0], [found]] as const
      return yield* new Unreadable({ line, reason: "has a quote that is not closed, or exceeds 4 MiB" })
    })
    return Stream.fromAsyncIterable<Uint8Array, Unreadable>(bytes, unreadable).pipe(
      Stream.tap(() => read(raw.bytesRead / size)),
      Stream.concat(Stream.make(undefined)),
      Stream.mapAccumEffect((): Place => ({ rest: "", line: 1 }), next),
      Stream.ensuring(Effect.sync(() => raw.destroy()))
    )
  })
