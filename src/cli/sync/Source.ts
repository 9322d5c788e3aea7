/** The service that is copied, read by the client that any user has. */
import { Context, Effect, Layer, Option, Schema, Stream } from "effect"
import * as Client from "../../client/index.ts"
import type { Page } from "./Target.ts"

/** The cursor belongs to an order of changes that has ended: all records are to be read again. */
export class CursorExpired extends Schema.TaggedError<CursorExpired>()("CursorExpired", {}) {}

/** The service does not accept the requests, such as for their API key. A retry does not help. */
export class SourceRefused extends Schema.TaggedError<SourceRefused>()("SourceRefused", { message: Schema.String }) {}

/** The service does not respond, or is busy. A retry may help. */
export class SourceUnavailable extends Schema.TaggedError<SourceUnavailable>()("SourceUnavailable", {
  message: Schema.String
}) {}

export type SourceError = SourceRefused | SourceUnavailable

const pageSize = 1000

/** The status of what a service does not do at all. */
const notImplemented = 501

const isTemporary = (cause: unknown) => {
  if (cause instanceof Client.ConnectionError || cause instanceof Client.TimeoutError) return true
  const status = cause instanceof Client.PracticeDataError ? (cause.status ?? 0) : 0
  return status === 429 || (status >= 500 && status !== notImplemented)
}

const reasonOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause))

const isPage = (page: Client.ChangesPage<Client.AnyRecord>): page is Page =>
  page.body.every(({ id }) => typeof id === "string")

const pageOf = (resource: string, page: Client.ChangesPage<Client.AnyRecord> | void) =>
  page !== undefined && isPage(page)
    ? Effect.succeed(page)
    : Effect.fail(new SourceRefused({ message: `This version does not understand the changes of ${resource}.` }))

/** The records of the organization that the API key belongs to. */
export class Source extends Context.Service<
  Source,
  {
    /** The address of the service, without user information. */
    readonly url: string
    /** The id of the organization. */
    readonly organization: Effect.Effect<string, SourceError>
    /** The pages of changes after a cursor, or from the beginning. The last one has `has_more` false. */
    readonly changes: (resource: string, cursor: string | undefined) => Stream.Stream<Page, SourceError | CursorExpired>
  }
>()("practice-data/cli/sync/Source") {
  /** The service at an address, as the client was given it. */
  static readonly layer = ({ client, url: given }: { readonly client: Client.PracticeData; readonly url: string }) =>
    Layer.sync(Source, () => {
      const url = given.replace(/\/+$/, "").replace(/\/api\/v3$/, "")

      const failureOf = (cause: unknown): SourceError =>
        isTemporary(cause)
          ? new SourceUnavailable({ message: `The service at ${url} does not respond: ${reasonOf(cause)}` })
          : new SourceRefused({ message: `The service at ${url} refuses: ${reasonOf(cause)}` })

      const own = Effect.tryPromise({
        try: (signal) => client.organization.get({ signal }),
        catch: (cause) =>
          cause instanceof Client.NotFoundError
            ? new SourceRefused({ message: "The service has no record of the organization that the API key is of." })
            : failureOf(cause)
      })

      /** The organization has no feed of changes: its JSON is its cursor. */
      const ownPage = (before: string | undefined) =>
        Effect.map(own, (record): Page => {
          const cursor = JSON.stringify(record)
          const body = cursor === before ? [] : [{ ...record }]
          return { body, removed: [], cursor, has_more: false, complete: true, lag: 0 }
        })

      const nextPage = (resource: string, cursor: string | undefined) =>
        Effect.tryPromise({
          try: (signal) => {
            const { changes } = client.resource(resource)
            if (changes === undefined) throw new TypeError(`${resource} has no changes`)
            return changes(cursor, { limit: pageSize, signal }).next()
          },
          catch: (cause) => {
            if (cause instanceof Client.CursorExpiredError && cursor !== undefined) return new CursorExpired()
            // A response that was cut off, since the service has responded before.
            if (cause instanceof Client.UnexpectedResponseError)
              return new SourceUnavailable({ message: reasonOf(cause) })
            return failureOf(cause)
          }
        }).pipe(Effect.flatMap(({ value }) => pageOf(resource, value)))

      return Source.of({
        url,
        organization: Effect.map(own, ({ id }) => id),
        changes: (resource, from) =>
          resource === "organization"
            ? Stream.fromEffect(ownPage(from))
            : Stream.paginate(from, (at) =>
                Effect.map(nextPage(resource, at), (page) => [
                  [page],
                  page.has_more ? Option.some(page.cursor) : Option.none()
                ])
              )
      })
    })
}
