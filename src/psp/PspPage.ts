/** What is said between the service and a payment processor: kinds of object, pages, and why there is none. */
import { Data, type Duration } from "effect"

/** Which page to read. Times are seconds since 1970, both inclusive. */
export interface PageRequest {
  readonly limit: number
  readonly startingAfter?: string | undefined
  readonly createdGte?: number | undefined
  readonly createdLte?: number | undefined
}

/** Objects as the processor gives them, newest first. */
export interface Page {
  readonly data: ReadonlyArray<unknown>
  readonly hasMore: boolean
}

/** The account has no object with the id that the page should start after. */
export class CursorUnknown extends Data.TaggedError("CursorUnknown") {}

/** The account is not connected to us any more. */
export class AccountDisconnected extends Data.TaggedError("AccountDisconnected") {}

/** What is known of a failure. None of it is text of the processor's, but for its id of the request. */
interface Failure {
  /** What kind of failure it was, for the log. */
  readonly reason: string
  /** The processor's id of the request, for the log, where it got that far. */
  readonly request?: string | undefined
  /** How long the processor asks us to wait, where it does. */
  readonly retryAfter?: Duration.Duration | undefined
}

/** The processor asks us to wait. */
export class RateLimited extends Data.TaggedError("RateLimited")<{
  readonly retryAfter: Duration.Duration
  readonly request?: string | undefined
}> {}

/** The processor is down, does not make sense, or refuses our own key: whichever account is asked for. */
export class PspUnavailable extends Data.TaggedError("PspUnavailable")<Failure> {}

/** The processor is up, and does not answer for this account. */
export class AccountFailed extends Data.TaggedError("AccountFailed")<Failure> {}

/** The processor does not take our key for this account. Whether it takes it for another one is not known. */
export class AccountUnauthorized extends Data.TaggedError("AccountUnauthorized")<Failure> {}

/** The processor is up and does not take the request. */
export class PspRefused extends Data.TaggedError("PspRefused")<Failure> {}

/** The service has no credentials for a processor. */
export class PspNotConfigured extends Data.TaggedError("PspNotConfigured") {}

/** Why a page could not be read. */
export type PspError =
  | CursorUnknown
  | AccountDisconnected
  | RateLimited
  | PspUnavailable
  | AccountFailed
  | AccountUnauthorized
  | PspRefused
  | PspNotConfigured
