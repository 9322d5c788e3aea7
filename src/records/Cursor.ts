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
  /** The token of the newest mark that the reader's database had. */
  readonly mark: string
  /** Nothing that the reader's snapshots saw has a position at or above it. */
  readonly ceiling: number
  /** The byte of the write-ahead log before which everything lies that the reader's snapshots saw. */
  readonly wal: number
  /** Until the first load is complete: the ceiling of the snapshot that it began with; then 0. */
  readonly target: number
  /**
   * Removals below it are of records that the reader never had: the lowest horizon of its pages. 0 once the reader has
   * passed it.
   */
  readonly floor: number
}

/** What a cursor is good for. */
export interface Owner {
  readonly organization: string
  readonly resource: string
}

/** The cursor of a feed's beginning. */
export const start = { position: -1, id: "" } as const

const radix = 36

const checksumLength = 8

/** A text with a checksum, which binds it to its owner. */
const sealed = (text: string, { organization, resource }: Owner): string => {
  const checksum = hash("sha256", JSON.stringify([organization, resource, text]), "base64url")
  return Buffer.from(text).toString("base64url") + checksum.slice(0, checksumLength)
}

const textOf = (cursor: string): string => Buffer.from(cursor.slice(0, -checksumLength), "base64url").toString()

/** True if a cursor was given out to an owner. */
export const isOf = (cursor: string, owner: Owner): boolean => sealed(textOf(cursor), owner) === cursor

/**
 * The text of a cursor. Version 2 is of a first load. After that it is version 1, which the release before reads as well:
 * there the first number was the timeline of the mark, which no release has as 0.
 */
export const encode = ({ ceiling, feed, floor, id, mark, position, target, wal }: Cursor, owner: Owner): string => {
  const [version, numbers] =
    target === 0 && floor === 0 ? [1, [0, ceiling, wal, position]] : [2, [target, floor, ceiling, wal, position]]
  return sealed([version, feed, mark, ...numbers.map((number) => number.toString(radix)), id].join("."), owner)
}

const token = /^[0-9a-f]{8}$/

const digits = /^(?:-1|[0-9a-z]{1,10})$/

/** The cursor that a text stands for, if it stands for any. */
export const decode = (cursor: string): Cursor | undefined => {
  const [version = "", feed = "", mark = "", ...rest] = textOf(cursor).split(".")
  const given = rest.splice(0, version === "1" ? 4 : 5)
  const id = rest.join(".")
  const isWhole =
    /^[12]$/.test(version) && token.test(feed) && token.test(mark) && given.every((text) => digits.test(text))
  // Postgres has no text with U+0000.
  if (!isWhole || rest.length === 0 || id.includes("\0")) return undefined
  const numbers = given.map((text) => Number.parseInt(text, radix))
  const [position = 0, wal = 0, ceiling = 0, ...loading] = numbers.toReversed()
  if (version === "1") {
    const [timeline] = loading
    // Of the release before, which did not write down where a load began: at or below the ceiling.
    return { feed, mark, ceiling, wal, position, id, target: timeline === 0 ? 0 : ceiling, floor: 0 }
  }
  const [floor = 0, target = 0] = loading
  return { feed, mark, ceiling, wal, position, id, target, floor }
}
