/** The place of a copy. Each kind of target implements this, and survives a kill at any point. */
import { Effect, Schema, type Scope } from "effect"
import type { ChangesPage } from "../../client/index.ts"
import type { Table } from "./Table.ts"

/** A record, as in the API's JSON. */
export interface SyncRecord {
  readonly [field: string]: unknown
  readonly id: string
}

/** A page of changes of a resource. */
export type Page = ChangesPage<SyncRecord>

/** The source of a copy. A target has the copy of one organization of one service. */
export interface Origin {
  readonly organization: string
  /** The service's address, without user information. */
  readonly url: string
}

/** The progress of the copy of a resource. */
export interface State {
  /** The start of the next page. Undefined at the beginning. */
  readonly cursor: string | undefined
  /** The load of all records. A second load runs over a copy, and removes at its end what did not come again. */
  readonly load: "first" | "again" | "done"
}

/** The target cannot be used as it is; the message says why, and what to do. A retry does not help. */
export class TargetRefused extends Schema.TaggedError<TargetRefused>()("TargetRefused", { message: Schema.String }) {}

/** The target does not respond, or has no room for the statement. A retry may help. */
export class TargetUnavailable extends Schema.TaggedError<TargetUnavailable>()("TargetUnavailable", {
  message: Schema.String
}) {}

const TargetError = Schema.Union([TargetRefused, TargetUnavailable])
export type TargetError = typeof TargetError.Type

export const isTargetError = Schema.is(TargetError)

/** The copy in an open target. */
export interface Copy {
  readonly stateOf: (table: Table) => Effect.Effect<State, TargetError>
  /**
   * Applies a page together with its cursor, or nothing of it. Fails if the copy is not at `state` any more, as another
   * process has changed it.
   */
  readonly apply: (table: Table, state: State, page: Page) => Effect.Effect<State, TargetError>
  /** Begins a load of all records, over the existing copy. */
  readonly restart: (table: Table, state: State) => Effect.Effect<State, TargetError>
  /** Called each time that all resources have been read. */
  readonly finish: Effect.Effect<void, TargetError>
}

export interface OpenOptions {
  readonly origin: Origin
  /** Accepts a copy that was made from another address. */
  readonly allowNewUrl: boolean
  readonly tables: ReadonlyArray<Table>
}

/** The names of a target in messages. */
export interface Place {
  /** Without any secret. */
  readonly name: string
  /** Another place for the copy: `another schema with --schema NAME`. */
  readonly elsewhere: string
}

export interface Target {
  readonly name: string
  /** Takes the target for this process alone until the scope closes, and makes or checks what the copy needs. */
  readonly open: (options: OpenOptions) => Effect.Effect<Copy, TargetError, Scope.Scope>
}

/** The version of what targets keep beside the records. */
export const formatVersion = 1

/** The state after a page. A load ends once it is complete: before, an open transaction may hold records back. */
export const after = ({ load }: State, { complete, cursor, has_more }: Page): State => ({
  cursor,
  load: complete && !has_more ? "done" : load
})

/** True if a copy with this state after a page is in step. */
export const isInStep = ({ load }: State, { has_more }: Page): boolean => load === "done" && !has_more

/** The refusal of a target that another process has taken. */
export const inUse = ({ elsewhere, name }: Place) =>
  new TargetRefused({
    message: `Another process keeps the copy in ${name} in step. Stop it first, or choose ${elsewhere}.`
  })

/** The refusal of a file or table that stands where the copy would be. */
export const notOurs = (thing: string, { elsewhere }: Place) =>
  new TargetRefused({ message: `There is a ${thing} that practice-data did not create. Choose ${elsewhere}.` })

/** Checks the origin that a target has recorded for its copy. */
export const checkMark = Effect.fnUntraced(function* (
  { elsewhere, name }: Place,
  mark: Origin & { readonly format: number },
  { allowNewUrl, origin }: OpenOptions
) {
  const refuse = (message: string) => new TargetRefused({ message: `The copy in ${name} ${message}` })
  if (mark.format > formatVersion) {
    return yield* refuse(`was made by a newer version of practice-data. Use that version, or choose ${elsewhere}.`)
  }
  if (mark.organization !== origin.organization) {
    return yield* refuse(
      `is of the organization ${mark.organization}, and the API key is of ${origin.organization}. Use a key of ${mark.organization}, or choose ${elsewhere}.`
    )
  }
  if (mark.url !== origin.url && !allowNewUrl) {
    return yield* refuse(
      `is of the service at ${mark.url}, and this is ${origin.url}. If the service has moved, run once with --allow-new-url. Otherwise choose ${elsewhere}.`
    )
  }
})
