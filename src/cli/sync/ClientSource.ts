/** The service, through the client that any user has. */
import { Effect, Layer, Option, Stream } from "effect"
import * as Client from "../../client/index.ts"
import { CursorExpired, Source, type SourceError, SourceRefused, SourceUnavailable } from "./Source.ts"
import type { Page } from "./Target.ts"

export interface Options {
  /** The address that the client was given. */
  readonly url: string
  readonly client: Client.PracticeData
}

const pageSize = 1000

const reasonOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause))

/** What this service does not do at all. */
const notImplemented = 501

const isTemporary = (cause: unknown) =>
  !(cause instanceof Client.ServerError && cause.status === notImplemented) &&
  [
    Client.ConnectionError,
    Client.RateLimitError,
    Client.ServerError,
    Client.ServiceUnavailableError,
    Client.TimeoutError
  ].some((kind) => cause instanceof kind)

const failureOf =
  (url: string) =>
  (cause: unknown): SourceError =>
    isTemporary(cause)
      ? new SourceUnavailable({ message: `The service at ${url} does not respond: ${reasonOf(cause)}` })
      : new SourceRefused({ message: `The service at ${url} refuses: ${reasonOf(cause)}` })

const make = ({ client, url: given }: Options) => {
  const url = given.replace(/\/+$/, "").replace(/\/api\/v3$/, "")
  const toSourceError = failureOf(url)

  const own = Effect.tryPromise({
    try: (signal) => client.organization.get({ signal }),
    catch: (cause) =>
      cause instanceof Client.NotFoundError
        ? new SourceRefused({ message: "The service has no record of the organization that the API key is of." })
        : toSourceError(cause)
  })

  /** The organization has no changes: it comes when it is another than it was. */
  const ownPage = (cursor: string | undefined) =>
    Effect.map(own, (record): Page => {
      const state = JSON.stringify(record)
      return {
        records: state === cursor ? [] : [{ ...record }],
        removed: [],
        cursor: state,
        hasMore: false,
        isComplete: true,
        lag: 0
      }
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
        if (cause instanceof Client.UnexpectedResponseError) return new SourceUnavailable({ message: reasonOf(cause) })
        return toSourceError(cause)
      }
    }).pipe(Effect.flatMap(({ value }) => pageOf(resource, value)))

  return Source.of({
    url,
    organization: Effect.map(own, ({ id }) => id),
    changes: (resource, from) =>
      resource === "organization"
        ? Stream.fromEffect(ownPage(from))
        : Stream.paginate(from, (cursor) =>
            Effect.map(nextPage(resource, cursor), (page) => [
              [page],
              page.hasMore ? Option.some(page.cursor) : Option.none()
            ])
          )
  })
}

const isRecord = (record: Client.AnyRecord): record is Page["records"][number] => typeof record["id"] === "string"

const pageOf = (resource: string, page: Client.ChangesPage<Client.AnyRecord> | void) => {
  if (page === undefined || !page.body.every(isRecord)) {
    return Effect.fail(
      new SourceRefused({ message: `The changes of ${resource} are not what this version understands.` })
    )
  }
  const { body: records, complete: isComplete, cursor, has_more: hasMore, lag, removed } = page
  return Effect.succeed<Page>({ records, removed, cursor, hasMore, isComplete, lag })
}

/** The source of a service. */
export const layer = (options: Options) => Layer.sync(Source, () => make(options))
