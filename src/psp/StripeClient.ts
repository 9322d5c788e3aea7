/**
 * The PSP is Stripe, by its official client.
 *
 * That client cannot cancel a request. Its `fetch` is therefore ours: it takes a signal from the asynchronous context of
 * the call, so that interrupting the effect closes the socket. Retries and the timeout are the caller's.
 */
import { AsyncLocalStorage } from "node:async_hooks"
import { Data, Duration, Effect, Option, Predicate, Redacted } from "effect"
import { Stripe } from "stripe"
import type { PspKind } from "../api/Psp.ts"
import * as Tracing from "../observability/Tracing.ts"
import { ownMemory } from "../process/Processes.ts"
import * as Psp from "./PspPage.ts"

/** No id of Stripe is longer. A longer cursor would make a URL that no server reads. */
const longestId = 255

const mebibyte = 1024 * 1024

/** A page of a hundred objects has less than one mebibyte. All bodies that are being read must fit in memory. */
const longestBody = Math.min(32 * mebibyte, ownMemory() / 32)
const longestBodies = Math.min(256 * mebibyte, ownMemory() / 8)

/** A body, or all bodies being read together, are larger than the limit. */
export class BodyTooLarge extends Data.TaggedError("BodyTooLarge") {}

const [space, brace] = [0x20, 0x7b]

/**
 * A reader of responses. It rejects as soon as a body is past a limit, in bytes, and then closes its socket. Its responses
 * are safe to give to the client: of a body that is JSON but not an object that would throw where nothing catches, which
 * ends the process, and it would write a notice to standard error.
 */
export const responseReader = () => {
  let held = 0
  // oxlint-disable-next-line effecttsgo/async-function -- part of a `fetch`, which is what the client takes
  return async ({ body, headers: given, status }: Response): Promise<Response> => {
    const chunks: Array<Uint8Array> = []
    let length = 0
    try {
      // Leaving the loop cancels the body.
      for await (const chunk of body ?? []) {
        length += chunk.length
        held += chunk.length
        if (length > longestBody || held > longestBodies) throw new BodyTooLarge()
        chunks.push(chunk)
      }
    } finally {
      held -= length
    }
    const bytes = Buffer.concat(chunks)
    const headers = new Headers(given)
    headers.delete("stripe-notice")
    const isObject = bytes.find((byte) => byte > space) === brace
    return new Response(isObject ? bytes : null, { status, headers })
  }
}

/** Text that is safe to log: the PSP must not choose what fills the log. */
const wordOf = (value: unknown, form = /^[\w-]{1,64}$/) =>
  Predicate.isString(value) && form.test(value) ? value : undefined

// The error of an unknown key has no code, only a message.
const keyCodes = ["api_key_expired", "platform_api_key_expired", "secret_key_required"]
const keyWords = /^(invalid|expired) api key|^you did not provide an api key/i

/**
 * The reason for which a call failed. Codes and parameters are checked before the status, which varies. Messages hold
 * account ids and masked keys, and are not passed on.
 */
const pspErrorOf = (error: Stripe.errors.StripeError): Psp.PspError => {
  const { code, detail, headers, message, param, requestId, statusCode: status = 0, type } = error
  const request = wordOf(requestId)
  const { date = "", "retry-after": after = "" } = headers ?? {}
  // A date counts from that of the response.
  const seconds = Number.isNaN(Number(after)) ? (Date.parse(after) - Date.parse(date)) / 1000 : Number(after)
  const retryAfter = Number.isFinite(seconds) && seconds > 0 ? Duration.seconds(seconds) : undefined
  // The client's error has that of `fetch` as its detail.
  const tooLarge = detail instanceof BodyTooLarge
  const end = detail instanceof Error && Predicate.hasProperty(detail.cause, "code") ? wordOf(detail.cause.code) : ""
  // Codes have no digits and no capitals; ids do.
  const words = [wordOf(type), status || "", wordOf(code, /^[a-z_]{1,64}$/), tooLarge ? "body too large" : end]
  const failed = (blame: Psp.PspFailed["blame"]) =>
    new Psp.PspFailed({ blame, reason: words.filter(Boolean).join(" "), request, retryAfter })
  if (param === "starting_after") return new Psp.CursorUnknown()
  if (code === "account_invalid") return new Psp.AccountDisconnected()
  if (type === "StripeRateLimitError" || code === "rate_limit") {
    return new Psp.RateLimited({ request, retryAfter: retryAfter ?? Duration.seconds(1) })
  }
  if (tooLarge || status === 400) return failed("request")
  if (status === 401) {
    const isKeyRefused = Predicate.isString(code) ? keyCodes.includes(code) : keyWords.test(message)
    return failed(isKeyRefused ? "psp" : "unauthorized")
  }
  if (status > 401 && status < 500) return failed("account")
  return failed(type === "StripeConnectionError" ? "psp" : "unclear")
}

const annotate = ({ requestId, statusCode }: Pick<Stripe.errors.StripeError, "requestId" | "statusCode">) => {
  const request = wordOf(requestId)
  return Effect.annotateCurrentSpan({
    ...(request !== undefined && { "practice_data.processor.request": request }),
    ...(statusCode !== undefined && { "http.response.status_code": statusCode })
  })
}

const isObjects = (data: unknown): data is ReadonlyArray<object> =>
  Array.isArray(data) && data.every(Predicate.isObject)

/** A kind of objects in the client. The list may be anything. Parameters that are undefined are not sent. */
interface Objects {
  readonly list: (
    parameters: object,
    options: Stripe.RequestOptions
  ) => Promise<{
    readonly data?: unknown
    readonly has_more?: unknown
    readonly lastResponse: { readonly statusCode: number; readonly requestId?: string }
  }>
}

export interface StripeOptions {
  /** The key of our own account, such as `sk_live_...`. */
  readonly secretKey: Redacted.Redacted
  /** The address of a double of Stripe; by default Stripe itself. */
  readonly apiUrl?: Option.Option<URL>
}

/** Makes the client for a key. It opens no connection before its first call. */
export const make = ({ apiUrl = Option.none(), secretKey }: StripeOptions): { readonly list: Psp.List } => {
  const read = responseReader()
  const calls = new AsyncLocalStorage<{ readonly signal: AbortSignal; readonly traceParent: string | undefined }>()
  const { hostname: host, port: given, protocol } = Option.getOrElse(apiUrl, () => new URL("https://api.stripe.com"))
  const isPlain = protocol === "http:"
  const port = Number(given || (isPlain ? 80 : 443))
  const stripe = new Stripe(Redacted.value(secretKey), {
    host,
    port,
    protocol: isPlain ? "http" : "https",
    maxNetworkRetries: 0,
    telemetry: false,
    httpClient: Stripe.createFetchHttpClient((url: string | URL | Request, init?: RequestInit) => {
      const call = calls.getStore()
      const signals = [init?.signal, call?.signal].filter(Predicate.isNotNullish)
      const headers = new Headers(init?.headers)
      if (call?.traceParent !== undefined) headers.set("traceparent", call.traceParent)
      // oxlint-disable-next-line effecttsgo/global-fetch -- what the client takes is a `fetch`
      return fetch(url, { ...init, headers, redirect: "error", signal: AbortSignal.any(signals) }).then(read)
    })
  })
  const objects: Readonly<Record<PspKind, Objects>> = {
    payments: stripe.paymentIntents,
    charges: stripe.charges,
    refunds: stripe.refunds,
    disputes: stripe.disputes,
    payouts: stripe.payouts,
    "balance-transactions": stripe.balanceTransactions
  }
  // The path says no more than the kind of objects, and headers and query more than a trace should.
  const attributes = { "http.request.method": "GET", "server.address": host, "server.port": port }
  return {
    list: Effect.fn("StripeClient.list", { kind: "client", attributes })(function* (kind, account, page) {
      const { createdGte, createdLte, limit, startingAfter } = page
      if ((startingAfter ?? "").length > longestId) return yield* new Psp.CursorUnknown()
      const parameters = { limit, starting_after: startingAfter, created: { gte: createdGte, lte: createdLte } }
      const traceParent = yield* Tracing.currentTraceParent
      const { data, has_more, lastResponse } = yield* Effect.tryPromise({
        try: (signal) =>
          calls.run({ signal, traceParent }, () => objects[kind].list(parameters, { stripeAccount: account })),
        catch: (error) => (error instanceof Stripe.errors.StripeError ? error : new Stripe.errors.StripeAPIError())
      }).pipe(Effect.tapError(annotate), Effect.mapError(pspErrorOf))
      yield* annotate(lastResponse)
      return lastResponse.statusCode === 200 && isObjects(data) && Predicate.isBoolean(has_more)
        ? { data, hasMore: has_more }
        : yield* new Psp.PspFailed({ blame: "unclear", reason: "not a list", request: wordOf(lastResponse.requestId) })
    })
  }
}
