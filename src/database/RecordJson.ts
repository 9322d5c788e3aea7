/** The JSON of stored records, as UTF-8 bytes: it is concatenated, and never parsed. */
import { Buffer } from "node:buffer"

export type Json = Uint8Array

export const fromText = (text: string): Json => Buffer.from(text)

export const toText = ({ buffer, byteLength, byteOffset }: Json): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString()

const comma = fromText(",")

/** Concatenates items, with a comma between two of them. */
export const concat = (before: string, items: ReadonlyArray<Json>, after: string): Json => {
  const parts = [fromText(before)]
  for (const item of items) parts.push(item, comma)
  if (items.length > 0) parts.pop()
  parts.push(fromText(after))
  return Buffer.concat(parts)
}
