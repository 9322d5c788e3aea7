/** The service that is copied, read by the client that any user has. */
import { DateTime, Effect, flow, Option, Schema, Stream } from "effect"
import * as Client from "../../client/index.ts"
import { reasonOf } from "../../process/Failure.ts"
import * as Time from "../../process/Time.ts"
import { type Failed, refused, Unavailable } from "../Usage.ts"
import { endsRound, type ChangePage } from "./Target.ts"

/** The cursor is of an order of changes that has ended: all records are to be read again. */
export class CursorExpired extends Schema.TaggedError<CursorExpired>()("CursorExpired", {}) {}

/** The position in the feed, and the record of the organization, which has no feed. */
const Cursor = Schema.fromJsonString(
  Schema.Struct({ feed: Schema.optional(Schema.String), own: Schema.optional(Schema.String) })
)
const decode = Schema.decodeEffect(Cursor)
const encode = Schema.encodeEffect(Cursor)

const ownResource = "organization"

const largestPage = 1000

const isBroken = (cause: unknown): cause is Client.ConnectionError | Client.TimeoutError =>
  cause instanceof Client.ConnectionError || cause instanceof Client.TimeoutError

const isTemporary = (cause: unknown) => {
  if (isBroken(cause)) return true
  const status = cause instanceof Client.PracticeDataError ? (cause.status ?? 0) : 0
  // A service that does not implement a request never will.
  return status === 429 || (status >= 500 && status !== 501)
}

/** The records of the organization that the API key of a client belongs to. */
export const make = (given: string, client: Client.PracticeData) => {
  const url = given.replace(/\/+$/, "").replace(/\/api\/v3$/, "")
  // Compression costs more than a connection within this machine. Without TLS, `fetch` by itself takes no better one than gzip.
  const isLocal = /^http:\/\/(localhost|127\.[\d.]+|\[::1\])(:|\/|$)/.test(url)
  const headers = { "accept-encoding": isLocal ? "identity" : "br, gzip" }

  const failureOf = (cause: unknown): Failed =>
    isTemporary(cause)
      ? new Unavailable({ message: `The service at ${url} does not respond: ${reasonOf(cause)}` })
      : refused(`The service at ${url} refuses: ${reasonOf(cause)}`)

  /** The failure of a service that has responded before: another server's response comes from something in between. */
  const interruptionOf = (cause: unknown): Failed =>
    cause instanceof Client.UnexpectedResponseError ? new Unavailable({ message: reasonOf(cause) }) : failureOf(cause)

  /** Smaller from a page that was too large, too slow or cut off to the end of its round. */
  let limit = largestPage

  const changesFailure = (cause: unknown) => {
    if (cause instanceof Client.CursorExpiredError) return new CursorExpired()
    const isTooLarge = cause instanceof Client.ResponseTooLargeError
    if (isTooLarge && limit === 1) {
      const advice = "Shorten it there, or leave out its resource: give the others by --resource"
      return refused(`The service at ${url} has a record of more than 64 MiB, which cannot be copied. ${advice}.`)
    }
    const hasBegun = isBroken(cause) && cause.status !== undefined
    if (hasBegun || cause instanceof Client.UnexpectedResponseError) limit = Math.max(1, limit / 10)
    return interruptionOf(cause)
  }

  /** The milliseconds by which the clock of this machine was ahead of the service's when the organization was last read, if it was. */
  let ahead: number | undefined

  const own = Effect.gen(function* () {
    const begun = yield* Time.wall
    const { data: record, headers: received } = yield* Effect.tryPromise({
      try: (signal) => client.organization.get({ signal }).withResponse(),
      catch: (cause) => {
        if (!(cause instanceof Client.NotFoundError)) return (ahead === undefined ? failureOf : interruptionOf)(cause)
        return refused(
          "This API key's organization does not exist on the service. Its operator can add it with `organizations create`."
        )
      }
    })
    const date = Option.getOrUndefined(DateTime.make(received.get("date") ?? ""))?.epochMilliseconds ?? begun
    // The date has no milliseconds: clocks that differ by less than a second count as the same.
    ahead = begun > date + 1000 ? (yield* Time.wall) - date : 0
    return record
  }).pipe(Effect.map((record) => ({ record, text: JSON.stringify(record) })))

  const read = Effect.fnUntraced(function* (from: string | undefined, resources: ReadonlyArray<string>) {
    const position = from === undefined ? {} : yield* Effect.mapError(decode(from), () => new CursorExpired())
    const hasOwn = resources.includes(ownResource)
    const before = hasOwn ? position.own : undefined
    const others = resources.filter((resource) => resource !== ownResource)
    const signal = yield* Effect.abortSignal
    const options = { resources: others, limit, signal, headers }
    const pages: Stream.Stream<Omit<ChangePage, "resources">, Failed | CursorExpired> = others.length > 0
      ? Stream.fromAsyncIterable(client.changes(position.feed, options), changesFailure)
      : // No resource that has a feed.
        Stream.make({ body: [], cursor: undefined, has_more: false, is_consistent: true, lag: 0 })
    const complete = Effect.fnUntraced(function* (
      page: Omit<ChangePage, "resources">
    ): Effect.fn.Return<ChangePage, Failed> {
      if (!page.has_more) limit = largestPage
      // The record of the organization is read at the end of a round.
      const change = hasOwn && endsRound(page) ? yield* own : undefined
      const after = change?.text ?? before
      const news = change === undefined || after === before ? [] : [{ resource: ownResource, record: change.record }]
      const cursor = yield* Effect.orDie(encode({ feed: page.cursor, own: after }))
      return { ...page, body: [...page.body, ...news], resources, cursor }
    })
    // A copy that left out all feeds has no place in them, and may have their records.
    const isBehind = from !== undefined && position.feed === undefined
    const body = isBehind ? others.map((resource) => ({ resource, reset: true as const })) : []
    const resets = Stream.make({ body, cursor: undefined, has_more: true, is_consistent: false, lag: 0 })
    return Stream.mapEffect(body.length === 0 ? pages : Stream.concat(resets, pages), complete)
  })

  return {
    url,
    organization: Effect.map(own, ({ record }) => record.id),
    /** A time of this machine, by the clock of the service if that is behind. */
    timeOf: (time: DateTime.Utc) => DateTime.subtract(time, { milliseconds: ahead ?? 0 }),
    /** The pages of changes of resources after a cursor, or from the beginning. The last one has `has_more` false. */
    changes: flow(read, Stream.unwrap)
  }
}

export type Source = ReturnType<typeof make>
