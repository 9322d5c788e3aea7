/** Where a copy is kept. Each kind of target implements this, and keeps what it has applied through a kill at any point. */
import { type Effect, Schema, type Scope } from "effect"
import type { Table } from "./Table.ts"

/** A record as the API's JSON has it. */
export interface SyncRecord {
  readonly [field: string]: unknown
  readonly id: string
}

/** A page of changes of a resource. */
export interface Page {
  readonly records: ReadonlyArray<SyncRecord>
  /** Ids of records that do not exist any more. */
  readonly removed: ReadonlyArray<string>
  /** Where the next page begins. */
  readonly cursor: string
  readonly hasMore: boolean
  /** True if a load that began without a cursor now has every record that existed when it began. */
  readonly isComplete: boolean
  /** For how many seconds changes have been held back by an open transaction. */
  readonly lag: number
}

/** What a copy is of. A target has the copy of one organization of one service. */
export interface Origin {
  readonly organization: string
  /** The service's address, without user information. */
  readonly url: string
}

/** How far the copy of a resource is. */
export interface State {
  /** Where the next page begins. Undefined at the beginning. */
  readonly cursor: string | undefined
  /**
   * The load of all records. A second one runs over a copy that has some: what it has stays until the load is done, which
   * removes what did not come again.
   */
  readonly load: "first" | "again" | "done"
}

/** The target cannot be used as it is; the message says why, and what to do. Trying again does not help. */
export class TargetRefused extends Schema.TaggedError<TargetRefused>()("TargetRefused", { message: Schema.String }) {}

/** The target does not respond, or has no room for the statement. Trying again may help. */
export class TargetUnavailable extends Schema.TaggedError<TargetUnavailable>()("TargetUnavailable", {
  message: Schema.String
}) {}

const TargetError = Schema.Union([TargetRefused, TargetUnavailable])
export type TargetError = typeof TargetError.Type

export const isTargetError = Schema.is(TargetError)

/** A target that was opened: the copy in it. */
export interface Copy {
  readonly stateOf: (table: Table) => Effect.Effect<State, TargetError>
  /**
   * Applies a page together with its cursor, or nothing of it. Fails if the copy is not at `state` any more, as another
   * process has changed it.
   */
  readonly apply: (table: Table, state: State, page: Page) => Effect.Effect<State, TargetError>
  /** Has all records read anew, and keeps what the copy has until they have been. */
  readonly restart: (table: Table, state: State) => Effect.Effect<State, TargetError>
  /** Called each time that all resources have been read. */
  readonly finish: Effect.Effect<void, TargetError>
}

export interface OpenOptions {
  readonly origin: Origin
  /** Whether a copy that was made from another address is to be taken over. */
  readonly allowNewUrl: boolean
  /** The tables to keep in step. */
  readonly tables: ReadonlyArray<Table>
}

/** A target. */
export interface Target {
  /** What it is called in messages: without any secret. */
  readonly name: string
  /** Takes the target for this process alone until the scope closes, and makes or checks what the copy needs. */
  readonly open: (options: OpenOptions) => Effect.Effect<Copy, TargetError, Scope.Scope>
}

/** The version of what targets keep beside the records. */
export const formatVersion = 1

/** The state after a page. The last page ends a load if it is complete: else an open transaction may hold records back. */
export const after = ({ load }: State, { cursor, hasMore, isComplete }: Page): State => ({
  cursor,
  load: isComplete && !hasMore ? "done" : load
})

/** True if a copy with this state after a page is in step. */
export const isInStep = ({ load }: State, { hasMore }: Page): boolean => load === "done" && !hasMore

/** What a target has noted of the copy that it has. */
export interface Mark extends Origin {
  readonly format: number
}

/**
 * Why the copy in a target is not one to go on with, or undefined.
 *
 * @param elsewhere how to name another place: `another schema with --schema NAME`
 */
export const refusalOf = (
  name: string,
  mark: Mark,
  { allowNewUrl, origin }: OpenOptions,
  elsewhere: string
): TargetRefused | undefined => {
  const refuse = (message: string) => new TargetRefused({ message })
  if (mark.format > formatVersion) {
    return refuse(
      `The copy in ${name} was made by a newer version of practice-data. Use that version, or choose ${elsewhere}.`
    )
  }
  if (mark.organization !== origin.organization) {
    return refuse(
      `The copy in ${name} is of the organization ${mark.organization}, and the API key is of ${origin.organization}. Use a key of ${mark.organization}, or choose ${elsewhere}.`
    )
  }
  if (mark.url !== origin.url && !allowNewUrl) {
    return refuse(
      `The copy in ${name} is of the service at ${mark.url}, and this is ${origin.url}. If the service has moved, run once with --allow-new-url. Otherwise choose ${elsewhere}.`
    )
  }
  return undefined
}
