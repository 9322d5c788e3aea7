/** Pages of objects of the PSP, and the reasons why a page cannot be read. */
import { Data, type Duration } from "effect"

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

export class AccountDisconnected extends Data.TaggedError("AccountDisconnected") {}

export class PspNotConfigured extends Data.TaggedError("PspNotConfigured") {}

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
