/**
 * The errors that the clients reject with: a class for each status that a program may handle, `PracticeDataError` for
 * others such as 413, and classes for failures without a response. An aborted request rejects with the reason of its signal instead.
 */
import type { ValidationError } from "./generated/types.ts"

export interface ErrorDetails {
  /** The status of the response, if there was one. */
  readonly status?: number | undefined
  /** The `x-request-id` of the response, which is in the logs of the service. */
  readonly requestId?: string | undefined
  /** The service's name of the error, such as `record_store_down`, for a program to decide on. */
  readonly code?: string | undefined
  /** The service's explanation, for a person to read. */
  readonly detail?: string | undefined
  /** The seconds after which to try again, if the response said so. */
  readonly retryAfter?: number | undefined
  /** The Idempotency-Key of a delivery: send it again with the same one. */
  readonly idempotencyKey?: string | undefined
}

/** Any failure of a request. The message has the status, the detail and the request id, and never a key or a secret. */
export class PracticeDataError extends Error implements ErrorDetails {
  override readonly name: string = "PracticeDataError"
  // Declared, so that a detail that is not known does not show as undefined.
  declare readonly status?: number
  declare readonly requestId?: string
  declare readonly code?: string
  declare readonly detail?: string
  declare readonly retryAfter?: number
  declare readonly idempotencyKey?: string

  constructor(message: string, details: ErrorDetails = {}, options?: ErrorOptions) {
    super(message, options)
    const known = Object.entries(details).filter(([, value]) => value !== undefined)
    Object.assign(this, Object.fromEntries(known))
  }
}

// A bundler that shortens names would shorten that of the class. Inferred, its type would need the types of Node.
const named = (
  name: string
): new (message: string, details?: ErrorDetails, options?: ErrorOptions) => PracticeDataError =>
  class extends PracticeDataError {
    override readonly name = name
  }

/** 400: a number out of range, a missing or blank id, a damaged cursor, a clinic without a connected account. */
export class BadRequestError extends named("BadRequestError") {}

/** 401: the API key, or the signature of a delivery, is missing or invalid. */
export class AuthenticationError extends named("AuthenticationError") {}

/** 404: the organization has no such record. The 404 of a proxy or of another path is an `UnexpectedResponseError`. */
export class NotFoundError extends named("NotFoundError") {}

/** 410: the order of changes that the cursor belongs to has ended. Start again without a cursor, with an empty copy. */
export class CursorExpiredError extends named("CursorExpiredError") {}

/** 422: the request does not have the shape that the endpoint takes. */
export class InvalidRequestError extends named("InvalidRequestError") {
  /** Every fault of the request: its place, its message and its kind. */
  readonly faults: ReadonlyArray<ValidationError>

  constructor(message: string, details: ErrorDetails, faults: ReadonlyArray<ValidationError>) {
    super(message, details)
    this.faults = faults
  }
}

/** 429: the organization sends more requests than it may. Try again after `retryAfter`. */
export class RateLimitError extends named("RateLimitError") {}

/** 503: a store or the payment processor is down or busy. Try again after `retryAfter`. */
export class ServiceUnavailableError extends named("ServiceUnavailableError") {}

/**
 * Any other status from 500 on: a bug of the service, or a gateway before it that cannot reach it. A 501 of changes: the
 * records are on several servers, search by `updated_at_since` instead.
 */
export class ServerError extends named("ServerError") {}

/**
 * A response that the service does not give: of a proxy or another server, of a path that the service does not have,
 * redirected, cut off, or too large. The message has the whole URL. Check `baseUrl`.
 */
export class UnexpectedResponseError extends named("UnexpectedResponseError") {}

/** A response of more than 64 MiB. Request fewer records at once. */
export class ResponseTooLargeError extends UnexpectedResponseError {
  override readonly name = "ResponseTooLargeError"
}

/** The service cannot be reached, or the connection broke: with the `status` if a response had begun. `cause` is the error of `fetch`. */
export class ConnectionError extends named("ConnectionError") {}

/** No whole response came within the timeout. It has the `status` if one began. */
export class TimeoutError extends named("TimeoutError") {}
