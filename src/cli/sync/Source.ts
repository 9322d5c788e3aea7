/** The service that is copied, read by the client that any user has. */
import { Effect, Schema, Stream } from "effect"
import * as Client from "../../client/index.ts"
import { messageOf } from "../Connection.ts"
import { type Failed, Refused, Unavailable } from "../Usage.ts"
import type { Page } from "./Target.ts"

/** The cursor is of an order of changes that has ended: all records are to be read again. */
export class CursorExpired extends Schema.TaggedError<CursorExpired>()("CursorExpired", {}) {}

/** The records of the organization that the API key belongs to. */
export interface Source {
  /** The address of the service. */
  readonly url: string
  /** The id of the organization. */
  readonly organization: Effect.Effect<string, Failed>
  /** The pages of changes after a cursor, or from the beginning. The last one has `has_more` false. */
  readonly changes: (resource: string, cursor: string | undefined) => Stream.Stream<Page, Failed | CursorExpired>
}

const pageSize = 1000

/** The status of what a service does not do at all. */
const notImplemented = 501

const isTemporary = (cause: unknown) => {
  if (cause instanceof Client.ConnectionError || cause instanceof Client.TimeoutError) return true
  const status = cause instanceof Client.PracticeDataError ? (cause.status ?? 0) : 0
  return status === 429 || (status >= 500 && status !== notImplemented)
}

/** The service at an address, as the client was given it. */
export const make = (given: string, client: Client.PracticeData): Source => {
  const url = given.replace(/\/+$/, "").replace(/\/api\/v3$/, "")

  const failureOf = (cause: unknown): Failed =>
    isTemporary(cause)
      ? new Unavailable({ message: `The service at ${url} does not respond: ${messageOf(cause)}` })
      : new Refused({ message: `The service at ${url} refuses: ${messageOf(cause)}` })

  const changesFailure = (cause: unknown) => {
    if (cause instanceof Client.CursorExpiredError) return new CursorExpired()
    // A response that was cut off, since the service has responded before.
    if (cause instanceof Client.UnexpectedResponseError) return new Unavailable({ message: messageOf(cause) })
    return failureOf(cause)
  }

  const own = Effect.tryPromise({
    try: (signal) => client.organization.get({ signal }),
    catch: (cause) =>
      cause instanceof Client.NotFoundError
        ? new Refused({ message: "The service has no record of the organization that the API key is of." })
        : failureOf(cause)
  })

  /** The organization has no feed of changes: its JSON is its cursor. */
  const ownPage = (before: string | undefined) =>
    Effect.map(own, (record): Page => {
      const cursor = JSON.stringify(record)
      const body = cursor === before ? [] : [{ ...record }]
      return { body, removed: [], cursor, has_more: false, complete: true, lag: 0 }
    })

  return {
    url,
    organization: Effect.map(own, ({ id }) => id),
    changes: (resource, from) => {
      const { changes } = client.resource(resource)
      if (changes === undefined) return Stream.fromEffect(ownPage(from))
      return Stream.unwrap(
        Effect.map(Effect.abortSignal, (signal) =>
          Stream.fromAsyncIterable(changes(from, { limit: pageSize, signal }), changesFailure)
        )
      )
    }
  }
}
