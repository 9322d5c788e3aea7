/**
 * The payment processor Stripe, by its official client.
 *
 * The client has no way to give a request up. Its `fetch` is therefore ours: it takes a signal from the asynchronous
 * context of the call, so that interrupting the effect closes the socket. Retries and the deadline are the caller's.
 */
import { AsyncLocalStorage } from "node:async_hooks"
import { Data, Duration, Effect, Option, Predicate, Redacted } from "effect"
import { Stripe } from "stripe"
import type { PspClient } from "./PspClient.ts"
import {
  AccountDisconnected,
  CursorUnknown,
  type Kind,
  type PageRequest,
  type PspError,
  PspRefused,
  PspUnavailable,
  RateLimited
} from "./PspPage.ts"

export interface Options {
  readonly secretKey: Redacted.Redacted
  /** Another address than Stripe's own: a double of it. */
  readonly apiUrl: Option.Option<URL>
}

/** What a list should look like. What comes may be anything. */
interface ListObject {
  readonly data?: unknown
  readonly has_more?: unknown
  readonly lastResponse: { readonly statusCode: number; readonly requestId?: string }
}

/** No id of Stripe is longer. A cursor that is would make an address that no server reads. */
const longestId = 255

const textOf = (error: object, field: string) =>
  Predicate.hasProperty(error, field) && Predicate.isString(error[field]) ? error[field] : undefined

const secondsOf = (error: object) => {
  const headers = Predicate.hasProperty(error, "headers") ? error.headers : undefined
  const seconds = Number(Predicate.isObject(headers) ? textOf(headers, "retry-after") : undefined)
  return Number.isFinite(seconds) && seconds > 0 ? seconds : 1
}

/** Decided on codes and parameters: the messages hold account ids and masked keys, and the statuses vary. */
const pspError = (error: unknown): PspError => {
  if (!Predicate.isObject(error)) return new PspUnavailable({ reason: "unknown" })
  const type = textOf(error, "type") ?? "unknown"
  const code = textOf(error, "code")
  if (textOf(error, "param") === "starting_after") return new CursorUnknown()
  if (code === "account_invalid") return new AccountDisconnected()
  if (type === "StripeRateLimitError" || code === "rate_limit") {
    return new RateLimited({ retryAfter: Duration.seconds(secondsOf(error)) })
  }
  const reason = [type, code, textOf(error, "requestId")].filter(Predicate.isNotUndefined).join(" ")
  return type === "StripeInvalidRequestError" ? new PspRefused({ reason }) : new PspUnavailable({ reason })
}

/** What a call failed with, and Stripe's id of the request, where it got that far. */
class Failed extends Data.TaggedError("Failed")<{ readonly why: PspError; readonly request: string | undefined }> {}

const failed = (error: unknown) =>
  new Failed({
    why: pspError(error),
    request: Predicate.isObject(error) ? textOf(error, "requestId") : undefined
  })

const nameRequest = (id: string | undefined) =>
  id === undefined ? Effect.void : Effect.annotateCurrentSpan("processor_request", id)

const isObjects = (data: unknown): data is ReadonlyArray<object> =>
  Array.isArray(data) && data.every((item) => Predicate.isObject(item))

/**
 * What the client can be given: a body that is JSON and no object would end the process (it throws where nobody
 * catches), and a notice would be written to standard error.
 */
const harmless = (response: Response) =>
  response.text().then((text) => {
    const headers = new Headers(response.headers)
    headers.delete("stripe-notice")
    return new Response(text.trimStart().startsWith("{") ? text : null, { status: response.status, headers })
  })

const connection = (apiUrl: Option.Option<URL>): Pick<Stripe.StripeConfig, "host" | "port" | "protocol"> => {
  if (Option.isNone(apiUrl)) return {}
  const { hostname, port, protocol } = apiUrl.value
  const isPlain = protocol === "http:"
  return {
    host: hostname,
    port: port === "" ? (isPlain ? 80 : 443) : Number(port),
    protocol: isPlain ? "http" : "https"
  }
}

const created = ({ createdGte, createdLte }: PageRequest) =>
  createdGte === undefined && createdLte === undefined
    ? {}
    : {
        created: {
          ...(createdGte === undefined ? {} : { gte: createdGte }),
          ...(createdLte === undefined ? {} : { lte: createdLte })
        }
      }

/** A client of Stripe. */
export const make = ({ secretKey, apiUrl }: Options) =>
  Effect.sync((): PspClient["Service"] => {
    const interruption = new AsyncLocalStorage<AbortSignal>()
    const stripe = new Stripe(Redacted.value(secretKey), {
      ...connection(apiUrl),
      maxNetworkRetries: 0,
      telemetry: false,
      httpClient: Stripe.createFetchHttpClient((url: string | URL | Request, init?: RequestInit) => {
        const signals = [init?.signal, interruption.getStore()].filter(Predicate.isNotNullish)
        // oxlint-disable-next-line effecttsgo/global-fetch -- what the client takes is a `fetch`
        return fetch(url, { ...init, redirect: "error", signal: AbortSignal.any(signals) }).then(harmless)
      })
    })
    type Parameters = Stripe.PaginationParams & { readonly created?: Stripe.RangeQueryParam }
    const resources: Record<Kind, (parameters: Parameters, options: Stripe.RequestOptions) => Promise<ListObject>> = {
      payments: (parameters, options) => stripe.paymentIntents.list(parameters, options),
      charges: (parameters, options) => stripe.charges.list(parameters, options),
      refunds: (parameters, options) => stripe.refunds.list(parameters, options),
      disputes: (parameters, options) => stripe.disputes.list(parameters, options),
      payouts: (parameters, options) => stripe.payouts.list(parameters, options),
      "balance-transactions": (parameters, options) => stripe.balanceTransactions.list(parameters, options)
    }

    return {
      list: Effect.fnUntraced(function* (kind, account, page) {
        if ((page.startingAfter ?? "").length > longestId) return yield* new CursorUnknown()
        const { data, has_more, lastResponse } = yield* Effect.tryPromise({
          try: (signal) =>
            interruption.run(signal, () =>
              resources[kind](
                {
                  limit: page.limit,
                  ...(page.startingAfter === undefined ? {} : { starting_after: page.startingAfter }),
                  ...created(page)
                },
                { stripeAccount: account }
              )
            ),
          catch: failed
        }).pipe(Effect.catchTag("Failed", ({ why, request }) => Effect.andThen(nameRequest(request), Effect.fail(why))))
        yield* nameRequest(lastResponse.requestId)
        return lastResponse.statusCode === 200 && isObjects(data) && Predicate.isBoolean(has_more)
          ? { data, hasMore: has_more }
          : yield* new PspUnavailable({ reason: `not a list ${lastResponse.requestId ?? ""}` })
      })
    }
  })
