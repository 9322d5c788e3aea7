/** The place of a copy. Each kind of target implements this, and survives a kill at any point. */
import { Effect, type Scope } from "effect"
import type { AnyRecord, ChangesPage } from "../../client/index.ts"
import { type Failed, Refused } from "../Usage.ts"
import type { Table } from "./Table.ts"

/** A page of changes of a resource. */
export type Page = ChangesPage<AnyRecord>

/** The source of a copy. A target has the copy of one organization of the service at one address. */
export interface Origin {
  readonly organization: string
  readonly url: string
}

/** The progress of the copy of a resource. */
export interface State {
  /** The start of the next page. Undefined at the beginning. */
  readonly cursor: string | undefined
  /** The load of all records. A second load runs over a copy, and removes at its end what did not come again. */
  readonly load: "first" | "again" | "done"
}

/** The copy in an open target. */
export interface Copy {
  readonly stateOf: (table: Table) => Effect.Effect<State, Failed>
  /**
   * Applies a page together with its cursor, or nothing of it. Fails if the copy is not at `state` any more, as another
   * process has changed it.
   */
  readonly apply: (table: Table, state: State, page: Page) => Effect.Effect<State, Failed>
  /** Begins a load of all records, over the existing copy. */
  readonly restart: (table: Table, state: State) => Effect.Effect<State, Failed>
  /** Called each time that all resources have been read. */
  readonly finish: Effect.Effect<void, Failed>
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
  readonly open: (options: OpenOptions) => Effect.Effect<Copy, Failed, Scope.Scope>
}

/** The version of what targets keep beside the records. */
export const formatVersion = 1

/** The state at the beginning of a second load. */
export const reload: State = { cursor: undefined, load: "again" }

/** The state after a page. A load ends once it is complete: before, an open transaction may hold records back. */
export const after = ({ load }: State, { complete, cursor, has_more }: Page): State => ({
  cursor,
  load: complete && !has_more ? "done" : load
})

/** True if a copy with this state after a page is in step. */
export const isInStep = ({ load }: State, { has_more }: Page): boolean => load === "done" && !has_more

/** The refusal of a target that another process has taken. */
export const inUse = ({ elsewhere, name }: Place) =>
  new Refused({ message: `Another process keeps the copy in ${name} in step. Stop it first, or choose ${elsewhere}.` })

/** The refusal of a file or table that stands where the copy would be. */
export const notOurs = (thing: string, { elsewhere }: Place) =>
  new Refused({ message: `There is a ${thing} that practice-data did not create. Choose ${elsewhere}.` })

/** Checks the origin that a target has recorded for its copy. */
export const checkMark = (
  { elsewhere, name }: Place,
  { format, organization, url }: Origin & { readonly format: number },
  { allowNewUrl, origin }: OpenOptions
) => {
  const refuse = (reason: string) =>
    Effect.fail(new Refused({ message: `The copy in ${name} ${reason} choose ${elsewhere}.` }))
  if (format > formatVersion) return refuse("was made by a newer version of practice-data. Use that version, or")
  if (organization !== origin.organization) {
    return refuse(
      `is of the organization ${organization}, and the API key is of ${origin.organization}. Use a key of ${organization}, or`
    )
  }
  if (url === origin.url || allowNewUrl) return Effect.void
  return refuse(
    `is of the service at ${url}, and this is ${origin.url}. If the service has moved, run once with --allow-new-url. Otherwise`
  )
}
