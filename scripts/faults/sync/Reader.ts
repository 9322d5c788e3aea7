/**
 * A reader: it keeps a copy of the records of a room, a page at a time, and can begin again from what it saved last, as
 * after a kill.
 */
import type { Effect } from "effect"
import type { Kind } from "./Room.ts"
import type { Ask, Fields, Refused } from "./Service.ts"

/** A copy: the JSON of each record, by id; of all resources, by resource and id. */
export type Copy = ReadonlyMap<string, string>

/** What a page came to. */
export interface Read {
  /** Whether the reader has all that there is now, as far as it can know. */
  readonly isDone: boolean
  /** Whether the copy is the last committed state, by the service's own word. */
  readonly isCurrent: boolean
  /** In words. */
  readonly seen: string
}

export interface Reader {
  readonly copy: () => Copy
  /** Reads a page; one of changes waits so many seconds for something new. */
  readonly page: (limit: number, wait: number) => Effect.Effect<Read, Refused>
  /** Reads these resources from now on. */
  readonly choose?: (kinds: ReadonlyArray<Kind>) => void
  readonly save: () => void
  readonly restart: () => void
}

export interface Options {
  readonly kind: Kind
  /** All kinds, of a reader of the changes of all resources. */
  readonly kinds?: ReadonlyArray<Kind>
  readonly key: string
  readonly ask: Ask
  /** How many milliseconds before the last time seen to start. */
  readonly margin: number
}

/** The id of a record. */
export const idOf = (record: Fields) => String(record["id"])

/** Records in words: their ids and versions. */
export const textOf = ({ label }: Kind, records: ReadonlyArray<Fields>) =>
  records.map((record) => `${idOf(record)}=${String(record[label])}`).join(" ")
