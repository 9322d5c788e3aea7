/**
 * The PSP Stripe, by its official client.
 *
 * The client cannot cancel a request. Its `fetch` is therefore ours: it takes a signal from the asynchronous context of
 * the call, so that interrupting the effect closes the socket. Retries and the timeout are the caller's.
 */
import { AsyncLocalStorage } from "node:async_hooks"
import { Data, Duration, Effect, Option, Predicate, Redacted } from "effect"
import { Stripe } from "stripe"
import type { PspKind } from "../api/Psp.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as Psp from "./PspPage.ts"

export interface Options {
  readonly secretKey: Redacted.Redacted
  /** The address of a double of Stripe. */
  readonly apiUrl: Option.Option<URL>
}

/** The response to a list request, which may be anything. */
interface ListObject {
  readonly data?: unknown
  readonly has_more?: unknown
  readonly lastResponse: { readonly statusCode: number; readonly requestId?: string }
}

/** No id of Stripe is longer. A longer cursor would make a URL that no server reads. */
const longestId = 255

const mebibytes = 1024 * 1024

// A page of a hundred objects has less than one. All reads together must fit in memory.
const limits = { each: 32 * mebibytes, together: 256 * mebibytes }

/** A body, or all bodies being read together, are larger than the limit. */
export class BodyTooLarge extends Data.TaggedError("BodyTooLarge")<{ readonly limit: keyof typeof limits }> {}

/** A reader of bodies. It rejects as soon as a body is past a limit, in bytes, and then closes its socket. */
export const bodyReader = ({ each, together } = limits) => {
  let held = 0
  // oxlint-disable-next-line effecttsgo/async-function -- part of a `fetch`, which is what the client takes
  return async (response: Response): Promise<Uint8Array<ArrayBuffer>> => {
    const { body, headers } = response
    if (body === null) return new Uint8Array()
    if (Number(headers.get("content-length") ?? 0) > each) {
      await body.cancel()
      throw new BodyTooLarge({ limit: "each" })
    }
    const chunks: Array<Uint8Array> = []
    let length = 0
    try {
      // Leaving the loop cancels the body.
      for await (const chunk of body) {
        length += chunk.length
        held += chunk.length
        if (length > each) throw new BodyTooLarge({ limit: "each" })
        if (held > together) throw new BodyTooLarge({ limit: "together" })
        chunks.push(chunk)
      }
    } finally {
      held -= length
    }
    return Buffer.concat(chunks)
  }
}

const textOf = (value: unknown, field: string) =>
  Predicate.hasProperty(value, field) && Predicate.isString(value[field]) ? value[field] : undefined

const propertyOf = (value: unknown, field: string) => (Predicate.hasProperty(value, field) ? value[field] : undefined)

/** Text that is safe to log: the PSP must not choose what fills the log. */
const wordOf = (text: string | undefined) => (text !== undefined && /^[\w-]{1,64}$/.test(text) ? text : undefined)

const retryAfterOf = (error: object) => {
  const seconds = Number(textOf(propertyOf(error, "headers"), "retry-after"))
  return Number.isFinite(seconds) && seconds > 0 ? Duration.seconds(seconds) : undefined
}

/** The platform's names for failures to connect, as opposed to failures of a connection. */
const cannotConnect =
  /^(E(CONNREFUSED|NOTFOUND|AI_\w+|HOSTUNREACH|NETUNREACH|ADDRNOTAVAIL|TIMEDOUT|PROTO)|UND_ERR_CONNECT_TIMEOUT|ERR_(TLS|SSL)_\w+|(CERT|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO)_\w+)$/

// The error of an unknown key has no code, only a message.
const keyCodes = ["api_key_expired", "platform_api_key_expired", "secret_key_required"]
const keyWords = /^(invalid|expired) api key|^you did not provide an api key/i

const isKeyRefused = (error: object, code: string | undefined) =>
  code === undefined ? keyWords.test(textOf(error, "message") ?? "") : keyCodes.includes(code)

const statusOf = (error: object) => {
  const status = propertyOf(error, "statusCode")
  return Predicate.isNumber(status) ? status : undefined
}

const requestOf = (error: object) => wordOf(textOf(error, "requestId"))

/**
 * The reason for which a call failed. Codes and parameters are checked before the status, which varies. Messages hold
 * account ids and masked keys, and are not passed on.
 */
const pspErrorOf = (error: object): Psp.PspError => {
  const type = wordOf(textOf(error, "type")) ?? "unknown"
  const code = textOf(error, "code")
  const status = statusOf(error)
  const request = requestOf(error)
  const retryAfter = retryAfterOf(error)
  // The client's error has that of `fetch` as its detail.
  const detail = propertyOf(error, "detail")
  const tooLarge = detail instanceof BodyTooLarge ? detail.limit : undefined
  const end = wordOf(textOf(propertyOf(detail, "cause"), "code"))
  // Codes have no digits and no capitals; ids do.
  const loggedCode = code !== undefined && /^[a-z_]{1,64}$/.test(code) ? code : undefined
  const size = { each: "body too large", together: "bodies too large together" }
  const words = [type, status, loggedCode, tooLarge === undefined ? end : size[tooLarge]]
  const failure = { reason: words.filter(Predicate.isNotUndefined).join(" "), request, retryAfter }
  if (textOf(error, "param") === "starting_after") return new Psp.CursorUnknown()
  if (code === "account_invalid") return new Psp.AccountDisconnected()
  if (type === "StripeRateLimitError" || code === "rate_limit") {
    return new Psp.RateLimited({ request, retryAfter: retryAfter ?? Duration.seconds(1) })
  }
  if (tooLarge === "each") return new Psp.AccountFailed(failure)
  if (status === 400 || tooLarge === "together") return new Psp.PspRefused(failure)
  if (status === 401)
    return isKeyRefused(error, code) ? new Psp.PspUnavailable(failure) : new Psp.AccountUnauthorized(failure)
  if (status !== undefined && status > 401 && status < 500) return new Psp.AccountFailed(failure)
  return cannotConnect.test(end ?? "") ? new Psp.PspUnavailable(failure) : new Psp.PspErred(failure)
}

const annotate = (request: string | undefined, status: number | undefined) =>
  Effect.annotateCurrentSpan({
    ...(request !== undefined && { "practice_data.processor.request": request }),
    ...(status !== undefined && { "http.response.status_code": status })
  })

const isObjects = (data: unknown): data is ReadonlyArray<object> =>
  Array.isArray(data) && data.every((item) => Predicate.isObject(item))

const readBody = bodyReader()

const [space, brace] = [0x20, 0x7b]
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

const connectionOf = ({ hostname, port, protocol }: URL) => {
  const plain = protocol === "http:"
  return { host: hostname, port: Number(port || (plain ? 80 : 443)), protocol: plain ? "http" : "https" } as const
}

const parametersOf = ({ createdGte, createdLte, limit, startingAfter }: Psp.PageRequest) => {
  const created = {
    ...(createdGte !== undefined && { gte: createdGte }),
    ...(createdLte !== undefined && { lte: createdLte })
  }
  return { limit, ...(startingAfter !== undefined && { starting_after: startingAfter }), created }
}

/** A client of Stripe. */
export const make = ({ secretKey, apiUrl }: Options) =>
  Effect.sync(() => {
    const calls = new AsyncLocalStorage<{ readonly signal: AbortSignal; readonly traceParent: string | undefined }>()
    const connection = Option.getOrUndefined(Option.map(apiUrl, connectionOf))
    const stripe = new Stripe(Redacted.value(secretKey), {
      ...connection,
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
    type List = (parameters: ReturnType<typeof parametersOf>, options: Stripe.RequestOptions) => Promise<ListObject>
    const lists: Readonly<Record<PspKind, List>> = {
      payments: (parameters, options) => stripe.paymentIntents.list(parameters, options),
      charges: (parameters, options) => stripe.charges.list(parameters, options),
      refunds: (parameters, options) => stripe.refunds.list(parameters, options),
      disputes: (parameters, options) => stripe.disputes.list(parameters, options),
      payouts: (parameters, options) => stripe.payouts.list(parameters, options),
      "balance-transactions": (parameters, options) => stripe.balanceTransactions.list(parameters, options)
    }
    // The path says no more than the kind of objects, and headers and query more than a trace should.
    const { host, port } = connection ?? { host: "api.stripe.com", port: 443 }
    const attributes = { "http.request.method": "GET", "server.address": host, "server.port": port }

    return {
      list: Effect.fn("StripeClient.list", { kind: "client", attributes })(function* (
        kind: PspKind,
        account: string,
        page: Psp.PageRequest
      ) {
        if ((page.startingAfter ?? "").length > longestId) return yield* new Psp.CursorUnknown()
        const traceParent = yield* Tracing.outgoing
        const { data, has_more, lastResponse } = yield* Effect.tryPromise({
          try: (signal) =>
            calls.run({ signal, traceParent }, () => lists[kind](parametersOf(page), { stripeAccount: account })),
          catch: (error): object => (Predicate.isObject(error) ? error : {})
        }).pipe(
          Effect.tapError((error) => annotate(requestOf(error), statusOf(error))),
          Effect.mapError(pspErrorOf)
        )
        const request = wordOf(lastResponse.requestId)
        yield* annotate(request, lastResponse.statusCode)
        return lastResponse.statusCode === 200 && isObjects(data) && Predicate.isBoolean(has_more)
          ? { data, hasMore: has_more }
          : yield* new Psp.PspErred({ reason: "not a list", request })
      })
    }
  })
