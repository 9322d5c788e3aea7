/** A page of the objects of a connected account at the PSP, and the errors of reading it. */
import { Data, type Duration, type Effect } from "effect"
import type { PspKind } from "../api/Psp.ts"

/** The page to read. Times are seconds since 1970, both inclusive. */
export interface PageRequest {
  readonly limit: number
  readonly startingAfter?: string | undefined
  readonly createdGte?: number | undefined
  readonly createdLte?: number | undefined
}

/** Objects as the PSP gives them, newest first. */
export interface Page {
  readonly data: ReadonlyArray<unknown>
  readonly hasMore: boolean
}

/** The account has no object with the id of `startingAfter`. */
export class CursorUnknown extends Data.TaggedError("CursorUnknown") {}

/** The account is not connected to ours, or no longer. */
export class AccountDisconnected extends Data.TaggedError("AccountDisconnected") {}

/** There is no PSP. */
export class PspNotConfigured extends Data.TaggedError("PspNotConfigured") {}

/** The PSP asks for a pause. `request` is its id of the request. */
export class RateLimited extends Data.TaggedError("RateLimited")<{
  readonly retryAfter: Duration.Duration
  readonly request?: string | undefined
}> {}

/**
 * A call failed. `psp`: for every account, as the PSP cannot be reached or refuses our own key. `unclear`: for this account
 * and perhaps for others, by an error of the PSP or an invalid response. `unauthorized`: the same, by a refusal of our key.
 * `account`: for this account alone. `request`: the PSP refuses the request.
 */
export class PspFailed extends Data.TaggedError("PspFailed")<{
  readonly blame: "psp" | "unclear" | "unauthorized" | "account" | "request"
  /** For the log. It has no text of the PSP. */
  readonly reason: string
  /** The PSP's id of the request. */
  readonly request?: string | undefined
  readonly retryAfter?: Duration.Duration | undefined
}> {}

export type PspError = CursorUnknown | AccountDisconnected | PspNotConfigured | RateLimited | PspFailed

/** Reads a page of the objects of a kind in a connected account. Interrupting it closes the connection. */
export type List = (kind: PspKind, account: string, page: PageRequest) => Effect.Effect<Page, PspError>
