/** JSON as the bytes that go to a client, put together without looking into the records. */
import { Buffer } from "node:buffer"

/** JSON, in UTF-8. */
export type Json = Uint8Array

const comma = ",".charCodeAt(0)

/** The bytes of a text. */
export const fromText = (text: string): Json => Buffer.from(text)

/** The text of bytes. */
export const toText = ({ buffer, byteLength, byteOffset }: Json): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString()

/** The records of rows that have one. */
export const recordsOf = (rows: ReadonlyArray<{ readonly record: Json | null }>): ReadonlyArray<Json> => {
  const records: Array<Json> = []
  for (const { record } of rows) if (record !== null) records.push(record)
  return records
}

/** Values with a comma between two of them, after one text and before another. */
export const list = (before: string, values: ReadonlyArray<Json>, after: string): Json => {
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
