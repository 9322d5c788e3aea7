/** The place of a copy. Each kind of target implements this, and survives a kill at any point. */
import { DateTime, Effect, Schema, type Scope } from "effect"
import { type Failed, Refused } from "../Usage.ts"
import type { Table } from "./Table.ts"

/** A change of a resource. After a reset, records of the copy that do not come until the round ends are gone. */
export type Change = { readonly resource: string } & (
  | { readonly record: object }
  | { readonly removed: string }
  | { readonly reset: true }
)

/** A page of changes. Undefined as its cursor: the feed is still to be read from the beginning. */
export interface Page {
  readonly body: ReadonlyArray<Change>
  readonly cursor: string | undefined
  readonly has_more: boolean
  readonly is_consistent: boolean
  /** The delay in seconds of changes behind an open transaction. */
  readonly lag: number
}

/** The source of a copy. A target has the copy of one organization of the service at one address. */
export interface Origin {
  readonly organization: string
  readonly url: string
}

/** The progress of a copy. */
export const State = Schema.Struct({
  /** The start of the next page. Missing: the feed is to be read from the beginning. */
  cursor: Schema.optional(Schema.String),
  /** The resources that are whole at the cursor. Others are to be loaded again. */
  resources: Schema.Array(Schema.String)
})
export type State = typeof State.Type

/** The copy in an open target. */
export interface Copy {
  readonly state: Effect.Effect<State, Failed>
  /**
   * Applies a page together with its cursor, or nothing of it. Fails if another process has changed the copy.
   *
   * @param resources the resources that the page was read for
   */
  readonly apply: (page: Page, resources: ReadonlyArray<string>) => Effect.Effect<void, Failed>
  /** Called each time that the copy is in step. */
  readonly finish: Effect.Effect<void, Failed>
}

export interface OpenOptions {
  readonly origin: Origin
  /** Accepts a copy that was made from another address. */
  readonly allowNewUrl: boolean
  readonly tables: ReadonlyArray<Table>
}

export interface Target {
  /** The name in messages, without any secret. */
  readonly name: string
  /** Takes the target for this process alone until the scope closes, and makes or checks what the copy needs. */
  readonly open: (options: OpenOptions) => Effect.Effect<Copy, Failed, Scope.Scope>
}

/** The version of what targets keep beside the records. */
export const formatVersion = 2

/** True if the copy after this page is a state of the service's database, or as close to one as it gets. */
export const endsRound = ({ has_more, is_consistent }: Page) => is_consistent || !has_more

/** The time at which the copy was in step after this page. Changes behind an open transaction are not in it. */
export const inStepAt = ({ is_consistent, lag }: Page, now: DateTime.Utc) =>
  DateTime.formatIso(DateTime.subtract(now, { seconds: is_consistent ? 0 : lag }))

/** The page that begins a load: what does not come again until the round ends is gone. */
export const resets = (resources: ReadonlyArray<string>): Page => ({
  body: resources.map((resource) => ({ resource, reset: true })),
  cursor: undefined,
  has_more: true,
  is_consistent: false,
  lag: 0
})

/** The refusal of a target that another process has taken. */
export const inUse = (name: string) =>
  new Refused({
    message: `Another process keeps the copy in ${name} in step. Stop it first, or choose another target.`
  })

/** The refusal of a file or table that stands where the copy would be. */
export const notOurs = (thing: string) =>
  new Refused({ message: `There is a ${thing} that practice-data did not create. Choose another target.` })

/** Checks the origin that a target has recorded for its copy. */
export const checkMark = (
  name: string,
  { format, organization, url }: Origin & { readonly format: number },
  { allowNewUrl, origin }: OpenOptions
) => {
  const refuse = (reason: string) =>
    Effect.fail(new Refused({ message: `The copy in ${name} ${reason}, or choose another target.` }))
  if (format !== formatVersion) return refuse("was made by another version of practice-data. Use that version")
  if (organization !== origin.organization) {
    return refuse(
      `is of the organization ${organization}, and the API key is of ${origin.organization}. Use a key of ${organization}`
    )
  }
  if (url === origin.url || allowNewUrl) return Effect.void
  return refuse(
    `is of the service at ${url}, and this is ${origin.url}. If the service has moved, run once with --allow-new-url`
  )
}
