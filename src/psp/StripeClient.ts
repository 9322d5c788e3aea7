/**
 * The PSP Stripe, by its official client.
 *
 * The client cannot cancel a request. Its `fetch` is therefore ours: it takes a signal from the asynchronous context of
 * the call, so that interrupting the effect closes the socket. Retries and the timeout are up to the caller.
 */
import { AsyncLocalStorage } from "node:async_hooks"
import { Duration, Effect, Option, Predicate, Redacted } from "effect"
import { Stripe } from "stripe"
import type { PspKind } from "../api/Psp.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as BoundedBody from "./BoundedBody.ts"
import {
  AccountDisconnected,
  AccountFailed,
  AccountUnauthorized,
  CursorUnknown,
  type PageRequest,
  PspErred,
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

/** A list as it should be. What is received may be anything. */
interface ListObject {
  readonly data?: unknown
  readonly has_more?: unknown
  readonly lastResponse: { readonly statusCode: number; readonly requestId?: string }
}

/** No id of Stripe is longer. A longer cursor would make a URL that no server reads. */
const longestId = 255

const textOf = (error: object, field: string) =>
  Predicate.hasProperty(error, field) && Predicate.isString(error[field]) ? error[field] : undefined

const headersOf = (error: object) =>
  Predicate.hasProperty(error, "headers") && Predicate.isObject(error.headers) ? error.headers : {}

const retryAfterOf = (error: object) => {
  const seconds = Number(textOf(headersOf(error), "retry-after"))
  return Number.isFinite(seconds) && seconds > 0 ? Duration.seconds(seconds) : undefined
}

/** Text that is safe to log: the PSP must not choose what fills the log. */
const wordOf = (text: string | undefined) => (text !== undefined && /^[\w-]{1,64}$/.test(text) ? text : undefined)

/** As `wordOf`, for a code. Codes have no digits and no capitals; ids do. */
const codeOf = (text: string | undefined) => (text !== undefined && /^[a-z_]{1,64}$/.test(text) ? text : undefined)

const tooLarge = "body too large"
const tooMuch = "bodies too large together"

/** What ended the connection, as the platform names it, such as ECONNREFUSED, or which limit of ours. */
const endOf = (error: object): string | undefined => {
  const detail = Predicate.hasProperty(error, "detail") ? error.detail : undefined
  if (detail instanceof BoundedBody.BodyTooLarge) return tooLarge
  if (detail instanceof BoundedBody.BodiesTooLarge) return tooMuch
  const cause = Predicate.hasProperty(detail, "cause") ? detail.cause : undefined
  return Predicate.isObject(cause) ? wordOf(textOf(cause, "code")) : undefined
}

/** How the platform names the failures of making a connection, rather than of one that was made. */
const cannotConnect =
  /^(E(CONNREFUSED|NOTFOUND|AI_\w+|HOSTUNREACH|NETUNREACH|ADDRNOTAVAIL|TIMEDOUT|PROTO)|UND_ERR_CONNECT_TIMEOUT|ERR_(TLS|SSL)_\w+|(CERT|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO)_\w+)$/

// The error of an unknown key has no code, only a message.
const keyCodes = ["api_key_expired", "platform_api_key_expired", "secret_key_required"]
const keyWords = /^(invalid|expired) api key|^you did not provide an api key/i

const isKeyRefused = (error: object, code: string | undefined) =>
  code === undefined ? keyWords.test(textOf(error, "message") ?? "") : keyCodes.includes(code)

const statusOf = (error: object) =>
  Predicate.hasProperty(error, "statusCode") && Predicate.isNumber(error.statusCode) ? error.statusCode : undefined

const requestOf = (error: object) => wordOf(textOf(error, "requestId"))

/**
 * Why a call failed. Codes and parameters are checked before the status, which varies. Messages hold account ids and
 * masked keys, and are not passed on.
 */
const pspErrorOf = (error: object): PspError => {
  const type = wordOf(textOf(error, "type")) ?? "unknown"
  const code = textOf(error, "code")
  const status = statusOf(error)
  const request = requestOf(error)
  const retryAfter = retryAfterOf(error)
  const end = endOf(error)
  const reason = [type, status, codeOf(code), end].filter(Predicate.isNotUndefined).join(" ")
  const failure = { reason, request, retryAfter }
  if (textOf(error, "param") === "starting_after") return new CursorUnknown()
  if (code === "account_invalid") return new AccountDisconnected()
  if (type === "StripeRateLimitError" || code === "rate_limit") {
    return new RateLimited({ request, retryAfter: retryAfter ?? Duration.seconds(1) })
  }
  if (end === tooLarge) return new AccountFailed(failure)
  if (status === 400 || end === tooMuch) return new PspRefused(failure)
  if (status === 401) return isKeyRefused(error, code) ? new PspUnavailable(failure) : new AccountUnauthorized(failure)
  if (status !== undefined && status > 401 && status < 500) return new AccountFailed(failure)
  return cannotConnect.test(end ?? "") ? new PspUnavailable(failure) : new PspErred(failure)
}

const annotateRequest = (id: string | undefined) =>
  id === undefined ? Effect.void : Effect.annotateCurrentSpan("practice_data.processor.request", id)

const annotateStatus = (status: number | undefined) =>
  status === undefined ? Effect.void : Effect.annotateCurrentSpan("http.response.status_code", status)

const isObjects = (data: unknown): data is ReadonlyArray<object> =>
  Array.isArray(data) && data.every((item) => Predicate.isObject(item))

const [space, brace] = [0x20, 0x7b]
const mebibytes = 1024 * 1024

// A page of a hundred objects has less than one. What many organizations read at once must fit in memory.
const readBody = BoundedBody.make({ each: 32 * mebibytes, together: 256 * mebibytes })

const startsObject = (bytes: Uint8Array) => bytes.find((byte) => byte > space) === brace

/**
 * A response that is safe to give to the client. Of a body that is JSON but not an object it would throw where nothing
 * catches, which ends the process, and it would write a notice to standard error.
 */
// oxlint-disable-next-line effecttsgo/async-function -- part of a `fetch`, which is what the client takes
const safeResponse = async (response: Response) => {
  const bytes = await readBody(response)
  const headers = new Headers(response.headers)
  headers.delete("stripe-notice")
  return new Response(startsObject(bytes) ? bytes : null, { status: response.status, headers })
}

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

/** What the span of each call says. Its path would say no more than the kind of objects, its headers and query more than a trace should. */
const attributesOf = (apiUrl: Option.Option<URL>) => {
  const { host = "api.stripe.com", port = 443 } = connection(apiUrl)
  return { "http.request.method": "GET", "server.address": host, "server.port": Number(port) }
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
  Effect.sync(() => {
    const calls = new AsyncLocalStorage<{ readonly signal: AbortSignal; readonly traceParent: string | undefined }>()
    const stripe = new Stripe(Redacted.value(secretKey), {
      ...connection(apiUrl),
      maxNetworkRetries: 0,
      telemetry: false,
      httpClient: Stripe.createFetchHttpClient((url: string | URL | Request, init?: RequestInit) => {
        const call = calls.getStore()
        const signals = [init?.signal, call?.signal].filter(Predicate.isNotNullish)
        const headers = new Headers(init?.headers)
        if (call?.traceParent !== undefined) headers.set("traceparent", call.traceParent)
        // oxlint-disable-next-line effecttsgo/global-fetch -- what the client takes is a `fetch`
        return fetch(url, { ...init, headers, redirect: "error", signal: AbortSignal.any(signals) }).then(safeResponse)
      })
    })
    type Parameters = Stripe.PaginationParams & { readonly created?: Stripe.RangeQueryParam }
    const resources: Record<PspKind, (parameters: Parameters, options: Stripe.RequestOptions) => Promise<ListObject>> =
      {
        payments: (parameters, options) => stripe.paymentIntents.list(parameters, options),
        charges: (parameters, options) => stripe.charges.list(parameters, options),
        refunds: (parameters, options) => stripe.refunds.list(parameters, options),
        disputes: (parameters, options) => stripe.disputes.list(parameters, options),
        payouts: (parameters, options) => stripe.payouts.list(parameters, options),
        "balance-transactions": (parameters, options) => stripe.balanceTransactions.list(parameters, options)
      }

    return {
      list: Effect.fn("StripeClient.list", { kind: "client", attributes: attributesOf(apiUrl) })(function* (
        kind: PspKind,
        account: string,
        page: PageRequest
      ) {
        if ((page.startingAfter ?? "").length > longestId) return yield* new CursorUnknown()
        const traceParent = yield* Tracing.outgoing
        const { data, has_more, lastResponse } = yield* Effect.tryPromise({
          try: (signal) =>
            calls.run({ signal, traceParent }, () =>
              resources[kind](
                {
                  limit: page.limit,
                  ...(page.startingAfter === undefined ? {} : { starting_after: page.startingAfter }),
                  ...created(page)
                },
                { stripeAccount: account }
              )
            ),
          catch: (error): object => (Predicate.isObject(error) ? error : {})
        }).pipe(
          Effect.tapError((error) =>
            Effect.andThen(annotateRequest(requestOf(error)), annotateStatus(statusOf(error)))
          ),
          Effect.mapError(pspErrorOf)
        )
        const request = wordOf(lastResponse.requestId)
        yield* Effect.andThen(annotateRequest(request), annotateStatus(lastResponse.statusCode))
        return lastResponse.statusCode === 200 && isObjects(data) && Predicate.isBoolean(has_more)
          ? { data, hasMore: has_more }
          : yield* new PspErred({ reason: "not a list", request })
      })
    }
  })
