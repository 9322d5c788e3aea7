/** The JSON of pages, as the bytes that go to a client: stored records are concatenated and never parsed. */
import { Buffer } from "node:buffer"
import { Effect } from "effect"
import { note } from "../observability/RequestFacts.ts"

export type Json = Uint8Array

const comma = ",".charCodeAt(0)

export const fromText = (text: string): Json => Buffer.from(text)

export const toText = ({ buffer, byteLength, byteOffset }: Json): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString()

/** Concatenates values, with a comma between two of them. */
export const concat = (before: string, values: ReadonlyArray<Json>, after: string): Json => {
  let size = Buffer.byteLength(before) + Buffer.byteLength(after) + Math.max(0, values.length - 1)
  for (const value of values) size += value.length
  const bytes = Buffer.allocUnsafe(size)
  let end = bytes.write(before)
  let isFirst = true
  for (const value of values) {
    if (!isFirst) bytes[end++] = comma
    isFirst = false
    bytes.set(value, end)
    end += value.length
  }
  bytes.write(after, end)
  return bytes
}

/** The page of a search: `{"body":[...]}`. */
export const searchPage = (rows: ReadonlyArray<{ readonly record: Json }>): Effect.Effect<Json> => {
  const records = rows.map(({ record }) => record)
  return Effect.as(note({ rows: rows.length }), concat('{"body":[', records, "]}"))
}
