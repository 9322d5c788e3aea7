/** The service that is copied, read by the typed client of its contract. */
import { DateTime, Effect, Option, Predicate, Schema, Stream } from "effect"
import { HttpApiClient } from "effect/http-api"
import { DataApi } from "../../api/DataApi.ts"
import { CursorExpired } from "../../api/Errors.ts"
import { organization } from "../../api/records/Organizations.ts"
import { connect, type Options } from "../../client/Connection.ts"
import { errorText } from "../../process/Failure.ts"
import { type Failed, refused, Unavailable } from "../Usage.ts"
import { type ChangePage, FeedPage } from "./Tables.ts"

/** The position in the feed, and the record of the organization, which has no feed. */
const Position = Schema.Struct({ feed: Schema.optional(Schema.String), own: Schema.optional(Schema.String) })
type Position = typeof Position.Type
const decodePosition = Schema.decodeEffect(Schema.fromJsonString(Position))
const encodePosition = Schema.encodeEffect(Schema.fromJsonString(Position))

const encodeOrganization = Schema.encodeEffect(organization.record)
const encodeText = Schema.encodeEffect(Schema.fromJsonString(Schema.Unknown))

// The body of a 200 is copied as it comes: to decode its records takes longer than the rest of a copy.
const decodePage = Schema.decodeUnknownEffect(FeedPage)
const decodeFailure = HttpApiClient.decodeResponse(DataApi, { group: "changes", endpoint: "changes" })

type Client = Effect.Success<ReturnType<typeof connect>>["client"]
type Failure = Effect.Error<ReturnType<Client["changes"]["changes"] | Client["organization"]["get"]>>

/** The innermost cause of a failed connection, such as `connect ECONNREFUSED 127.0.0.1:3000`. */
const connectionReason = (cause: unknown): string =>
  Predicate.isError(cause) && Predicate.isError(cause.cause) ? connectionReason(cause.cause) : errorText(cause)

const describe = (failure: Failure): string => {
  if ("httpApiStatus" in failure) return `${failure.httpApiStatus} ${JSON.stringify(failure.detail)}`
  const isBroken = failure._tag === "HttpClientError" && failure.reason._tag === "TransportError"
  return isBroken ? connectionReason(failure.reason.cause) : failure.message.replaceAll(/\s+/g, " ")
}

/** The longest wait for a whole response, with the retries of its request. */
const patience = "2 minutes"

/** Opens the records of the organization that an API key belongs to. */
export const make = Effect.fnUntraced(function* (options: Options) {
  const { address: url, client } = yield* connect({ retries: 2, ...options })

  const unavailable = (reason: string) =>
    new Unavailable({ message: `The service at ${url} does not respond: ${reason}` })

  /**
   * Distinguishes the service's refusals, which a retry does not help, from outages. Any other server's response is an
   * outage.
   */
  const toFailed = (failure: Failure): Failed =>
    "httpApiStatus" in failure && failure.httpApiStatus !== 429 && failure.httpApiStatus !== 503
      ? refused(`The service at ${url} refuses: ${describe(failure)}`)
      : unavailable(describe(failure))

  const limited = Effect.timeoutOrElse({
    duration: patience,
    orElse: () => unavailable(`no whole response within ${patience}`)
  })

  const readOrganization = client.organization.get({ payload: {} }).pipe(
    Effect.catchTag("RecordNotFound", () =>
      refused(
        "This API key's organization does not exist on the service. Its operator can add it with `organizations create`."
      )
    ),
    Effect.mapError((failure) => (failure._tag === "Refused" ? failure : toFailed(failure))),
    limited,
    Effect.flatMap((record) => Effect.orDie(encodeOrganization(record)))
  )

  const readPage = Effect.fnUntraced(
    function* (cursor: string | undefined) {
      const payload = cursor === undefined ? {} : { cursor }
      const response = yield* client.changes.changes({ payload, responseMode: "response-only" })
      if (response.status !== 200) return yield* Effect.flatMap(decodeFailure(response), Effect.die)
      return yield* Effect.flatMap(response.json, decodePage)
    },
    Effect.mapError((failure) => (failure._tag === "CursorExpired" ? failure : toFailed(failure))),
    limited
  )

  const changes = Effect.fnUntraced(function* (from: string | undefined) {
    const start = yield* Effect.mapError(decodePosition(from ?? "{}"), () => new CursorExpired())

    const next = Effect.fnUntraced(function* (at: Position) {
      const requestedAt = yield* DateTime.now
      const page = yield* readPage(at.feed)
      // The record of the organization is read at the end of a round.
      const record = page.is_consistent ? yield* readOrganization : undefined
      const own = record === undefined ? at.own : yield* Effect.orDie(encodeText(record))
      const news = record === undefined || own === at.own ? [] : [{ resource: organization.name, record }]
      const after: Position = { feed: page.cursor, own }
      const cursor = yield* Effect.orDie(encodePosition(after))
      const whole: ChangePage = { ...page, body: [...page.body, ...news], cursor, requestedAt }
      return [[whole], page.has_more ? Option.some(after) : Option.none()] as const
    })
    return Stream.paginate<Position, ChangePage, Failed | CursorExpired>(start, next)
  }, Stream.unwrap)

  return {
    url,
    organization: Effect.map(readOrganization, ({ id }) => id),
    /** The pages of changes of all resources, after a cursor or from the beginning. */
    changes
  }
})

export type Source = Effect.Success<ReturnType<typeof make>>
