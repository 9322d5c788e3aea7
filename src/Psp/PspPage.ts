/** What is said between the service and a payment processor: kinds of object, pages, and why there is none. */
import { Data, type Duration } from "effect"

/** The kinds of object that can be read. */
export type Kind = "payments" | "charges" | "refunds" | "disputes" | "payouts" | "balance-transactions"

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

/** The processor asks us to wait. */
export class RateLimited extends Data.TaggedError("RateLimited")<{ readonly retryAfter: Duration.Duration }> {}

/** The processor is down, does not make sense, or refuses our own credentials. */
export class PspUnavailable extends Data.TaggedError("PspUnavailable")<{
  /** For the log: what kind of failure, and the processor's request id; nothing that the processor said. */
  readonly reason: string
}> {}

/** The processor is up and does not take the request. */
export class PspRefused extends Data.TaggedError("PspRefused")<{
  /** As that of PspUnavailable. */
  readonly reason: string
}> {}

/** The service has no credentials for a processor. */
export class PspNotConfigured extends Data.TaggedError("PspNotConfigured") {}

/** Why a page could not be read. */
export type PspError =
  | CursorUnknown
  | AccountDisconnected
  | RateLimited
  | PspUnavailable
  | PspRefused
  | PspNotConfigured
