/** The cursor of a feed of changes: what a reader has seen, as a short opaque text. */
import { hash } from "node:crypto"

/** Where a change is in the order of a feed. */
export interface Place {
  readonly position: number
  readonly id: string
}

export interface Cursor extends Place {
  /** The token of the order that the position is of. */
  readonly feed: string
  /** The newest timeline that the reader's database had a mark of, and the token of the mark. */
  readonly timeline: number
  readonly mark: string
  /** Nothing that the reader's snapshots saw has a position at or above it. */
  readonly ceiling: number
  /** The byte of the write-ahead log before which everything lies that the reader's snapshots saw. */
  readonly wal: number
}

/** What a cursor is good for. */
export interface Owner {
  readonly organization: string
  readonly resource: string
}

const version = "1"

/** The cursor of a feed's beginning. */
export const start = { position: -1, id: "" } as const

const radix = 36

const checksumLength = 8

/** The text of a cursor. It ends with a checksum, which binds it to its owner. */
export const encode = (
  { ceiling, feed, id, mark, position, timeline, wal }: Cursor,
  { organization, resource }: Owner
): string => {
  const numbers = [timeline, ceiling, wal, position].map((number) => number.toString(radix))
  const text = [version, feed, mark, ...numbers, id].join(".")
  const checksum = hash("sha256", JSON.stringify([organization, resource, text]), "base64url")
  return Buffer.from(text).toString("base64url") + checksum.slice(0, checksumLength)
}

/** The cursor that a text may stand for. It is one of an owner if it has the same text again when it is encoded for it. */
export const decode = (cursor: string): Cursor | undefined => {
  const text = Buffer.from(cursor.slice(0, -checksumLength), "base64url").toString()
  const parts = /^1\.([0-9a-f]{8})\.([0-9a-f]{8})((?:\.-?[0-9a-z]{1,10}){4})\.(.*)$/su.exec(text)
  if (parts === null) return undefined
  const [, feed = "", mark = "", numbers = "", id = ""] = parts
  const [timeline = 0, ceiling = 0, wal = 0, position = 0] = numbers
    .slice(1)
    .split(".")
    .map((number) => Number.parseInt(number, radix))
  return { feed, mark, timeline, ceiling, wal, position, id }
}
