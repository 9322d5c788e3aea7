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

/** A failure, for the log. None of it is text of the PSP, except its id of the request. */
interface Failure {
  readonly reason: string
  readonly request?: string | undefined
  readonly retryAfter?: Duration.Duration | undefined
}

/** The account has no object with the id of `startingAfter`. */
export class CursorUnknown extends Data.TaggedError("CursorUnknown") {}

export class AccountDisconnected extends Data.TaggedError("AccountDisconnected") {}

export class RateLimited extends Data.TaggedError("RateLimited")<{
  readonly retryAfter: Duration.Duration
  readonly request?: string | undefined
}> {}

/** The PSP cannot be connected to, or refuses our own key: for every account. */
export class PspUnavailable extends Data.TaggedError("PspUnavailable")<Failure> {}

/** The PSP fails, responds with nonsense, or breaks off for this account, and perhaps for others. */
export class PspErred extends Data.TaggedError("PspErred")<Failure> {}

/** The PSP is up, and fails for this account. */
export class AccountFailed extends Data.TaggedError("AccountFailed")<Failure> {}

/** The PSP refuses our key for this account, and perhaps for others. */
export class AccountUnauthorized extends Data.TaggedError("AccountUnauthorized")<Failure> {}

/** The PSP is up and refuses the request. */
export class PspRefused extends Data.TaggedError("PspRefused")<Failure> {}

export class PspNotConfigured extends Data.TaggedError("PspNotConfigured") {}

export type PspError =
  | CursorUnknown
  | AccountDisconnected
  | RateLimited
  | PspUnavailable
  | PspErred
  | AccountFailed
  | AccountUnauthorized
  | PspRefused
  | PspNotConfigured
