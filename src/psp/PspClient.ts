/**
 * The PSP, the payment service provider: pages of the objects of a connected account. It is Stripe, by its official client.
 *
 * That client cannot cancel a request. Its `fetch` is therefore ours: it takes a signal from the asynchronous context of
 * the call, so that interrupting the effect closes the socket. Retries and the timeout are the caller's.
 */
import { AsyncLocalStorage } from "node:async_hooks"
import { Array, Context, Data, Duration, Effect, Layer, Option, Order, Predicate, Redacted } from "effect"
import type { Stripe } from "stripe"
import type { PspKind, PspObject } from "../api/Psp.ts"
import * as Tracing from "../observability/Tracing.ts"

/** The page to read. Times are seconds since 1970, both inclusive. */
export interface PageRequest {
  readonly limit: number
  readonly startingAfter?: string | undefined
  readonly createdGte?: number | undefined
  readonly createdLte?: number | undefined
}

/** Objects as the PSP gives them, newest first. */
export interface Page {
  readonly data: ReadonlyArray<unknown>
  readonly hasMore: boolean
}

/** The account has no object with the id of `startingAfter`. */
export class CursorUnknown extends Data.TaggedError("CursorUnknown") {}

/** The account is not connected to ours, or no longer. */
export class AccountDisconnected extends Data.TaggedError("AccountDisconnected") {}

/** The PSP asks for a pause. `request` is its id of the request. */
export class RateLimited extends Data.TaggedError("RateLimited")<{
  readonly retryAfter: Duration.Duration
  readonly request?: string | undefined
}> {}

/**
 * A call failed. `psp`: for every account, as the PSP cannot be reached or refuses our own key. `unclear`: for this account
 * and perhaps for others, by an error of the PSP or an invalid response. `unauthorized`: the same, by a refusal of our key.
 * `account`: for this account alone. `permission`: for this kind of its objects, which our key may not read. `request`: the
 * PSP refuses the request.
 */
export class PspFailed extends Data.TaggedError("PspFailed")<{
  readonly blame: "psp" | "unclear" | "unauthorized" | "account" | "permission" | "request"
  /** For the log. It has no text of the PSP. */
  readonly reason: string
  /** The PSP's id of the request. */
  readonly request?: string | undefined
  readonly retryAfter?: Duration.Duration | undefined
}> {}

export type PspError = CursorUnknown | AccountDisconnected | RateLimited | PspFailed

/** Reads a page of the objects of a kind in a connected account. Interrupting it closes the connection. */
export type List = (kind: PspKind, account: string, page: PageRequest) => Effect.Effect<Page, PspError>

/** No id of Stripe is longer. A longer cursor would make a URL that no server reads. */
const longestId = 255

/** Bytes. A page of a hundred objects has less than one mebibyte. */
const longestBody = 32 * 1024 ** 2

/** A body is larger than the limit. */
class BodyTooLarge extends Data.TaggedError("BodyTooLarge") {}

const [space, brace] = [0x20, 0x7b]

interface Received {
  readonly body: AsyncIterable<Uint8Array> | null
  readonly headers: Iterable<readonly [name: string, value: string]>
  readonly status: number
}

/**
 * Reads a response. Rejects as soon as its body is past the limit, and then closes its socket. The client can read the
 * result safely: JSON that is not an object would make it throw where nothing catches, and it would print a notice of the
 * PSP.
 */
// oxlint-disable-next-line effecttsgo/async-function -- part of a `fetch`, which is what the client takes
const readResponse = async ({ body, headers: given, status }: Received): Promise<Response> => {
  const chunks: Array<Uint8Array> = []
  let length = 0
  // Leaving the loop cancels the body.
  for await (const chunk of body ?? []) {
    length += chunk.length
    if (length > longestBody) throw new BodyTooLarge()
    chunks.push(chunk)
  }
  const bytes = Buffer.concat(chunks)
  const headers = new Headers(Object.fromEntries(given))
  headers.delete("stripe-notice")
  const isObject = bytes.find((byte) => byte > space) === brace
  return new Response(isObject ? bytes : null, { status, headers })
}

/** Milliseconds. Node's own `fetch` tries to connect for longer than a read may take: no network would be no failure. */
const connectTimeout = 3000

/** Text that is safe to log: the PSP must not choose what fills the log. */
const safeWord = (value: unknown, form = /^[\w-]{1,64}$/) =>
  Predicate.isString(value) && form.test(value) ? value : undefined

// The error of an unknown key has no code, only a message.
const keyCodes = ["api_key_expired", "platform_api_key_expired", "secret_key_required"]
// A permission that a restricted key lacks is named in the message alone.
const permissionWord = /\brak_[a-z_]{1,60}\b/
const keyWords = /^(invalid|expired) api key|^you did not provide an api key/i

/** The reason of a failure, by codes before the status, which varies. Messages hold ids and keys, and are not passed on. */
const toPspError = (error: Stripe.errors.StripeError): PspError => {
  const { code, detail, headers, message, param, requestId, statusCode: status = 0, type } = error
  const request = safeWord(requestId)
  const { date = "", "retry-after": after = "" } = headers ?? {}
  // A date counts from that of the response.
  const seconds = Number.isNaN(Number(after)) ? (Date.parse(after) - Date.parse(date)) / 1000 : Number(after)
  const retryAfter = Number.isFinite(seconds) && seconds > 0 ? Duration.seconds(seconds) : undefined
  // The client's error has that of `fetch` as its detail.
  const tooLarge = detail instanceof BodyTooLarge
  const end = detail instanceof Error && Predicate.hasProperty(detail.cause, "code") ? safeWord(detail.cause.code) : ""
  // Codes have no digits and no capitals; ids do.
  const permission = permissionWord.exec(message)?.[0]
  const words = [
    safeWord(type),
    status || "",
    safeWord(code, /^[a-z_]{1,64}$/),
    permission,
    tooLarge ? "body too large" : end
  ]
  const failed = (blame: PspFailed["blame"]) =>
    new PspFailed({ blame, reason: words.filter(Boolean).join(" "), request, retryAfter })
  if (param === "starting_after") return new CursorUnknown()
  if (code === "account_invalid") return new AccountDisconnected()
  if (type === "StripeRateLimitError" || code === "rate_limit") {
    return new RateLimited({ request, retryAfter: retryAfter ?? Duration.seconds(1) })
  }
  if (tooLarge || status === 400) return failed("request")
  if (status === 401) {
    const isKeyRefused = Predicate.isString(code) ? keyCodes.includes(code) : keyWords.test(message)
    return failed(isKeyRefused ? "psp" : "unauthorized")
  }
  if (status === 403 && /permission/i.test(`${code} ${message}`)) return failed("permission")
  if (status > 401 && status < 500) return failed("account")
  return failed(type === "StripeConnectionError" ? "psp" : "unclear")
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

/** The client for a key, which only reads. The package has two hundred modules, and is loaded only where there is a key. */
export const stripe = Effect.fnUntraced(function* ({ apiUrl = Option.none(), secretKey }: StripeOptions) {
  const [{ Stripe }, { Agent, EnvHttpProxyAgent, fetch }] = yield* Effect.promise(() =>
    Promise.all([import("stripe"), import("@effect/platform-node/Undici")])
  )
  // oxlint-disable-next-line effecttsgo/process-env-in-effect -- a variable of Node, not one of ours
  const dispatcher = new (process.env["NODE_USE_ENV_PROXY"] === "1" ? EnvHttpProxyAgent : Agent)({
    allowH2: false,
    connect: { timeout: connectTimeout }
  })
  const calls = new AsyncLocalStorage<{ readonly signal: AbortSignal; readonly traceParent: string | undefined }>()
  const { hostname: host, port: given, protocol } = Option.getOrElse(apiUrl, () => new URL("https://api.stripe.com"))
  const isPlain = protocol === "http:"
  const port = Number(given || (isPlain ? 80 : 443))
  const client = new Stripe(Redacted.value(secretKey), {
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
      const { href } = new URL(url instanceof Request ? url.url : url)
      const signal = AbortSignal.any(signals)
      return fetch(href, { dispatcher, headers: [...headers], redirect: "error", signal }).then(readResponse)
    })
  })
  const objects: Readonly<Record<PspKind, Objects>> = {
    payments: client.paymentIntents,
    charges: client.charges,
    refunds: client.refunds,
    disputes: client.disputes,
    payouts: client.payouts,
    "balance-transactions": client.balanceTransactions
  }
  // The path says no more than the kind of objects, and headers and query more than a trace should.
  const attributes = { "http.request.method": "GET", "server.address": host, "server.port": port }
  const list: List = Effect.fn("StripeClient.list", { kind: "client", attributes })(function* (kind, account, page) {
    const { createdGte, createdLte, limit, startingAfter } = page
    if ((startingAfter ?? "").length > longestId) return yield* new CursorUnknown()
    const parameters = { limit, starting_after: startingAfter, created: { gte: createdGte, lte: createdLte } }
    const traceParent = yield* Tracing.currentTraceParent
    const { data, has_more, lastResponse } = yield* Effect.tryPromise({
      try: (signal) =>
        calls.run({ signal, traceParent }, () => objects[kind].list(parameters, { stripeAccount: account })),
      catch: (error) => (error instanceof Stripe.errors.StripeError ? error : new Stripe.errors.StripeAPIError())
    }).pipe(Effect.mapError(toPspError))
    return lastResponse.statusCode === 200 && isObjects(data) && Predicate.isBoolean(has_more)
      ? { data, hasMore: has_more }
      : yield* new PspFailed({ blame: "unclear", reason: "not a list", request: safeWord(lastResponse.requestId) })
  })
  return { list }
})

/** The objects of each connected account, in any order. */
export type Accounts = Readonly<Record<string, Partial<Readonly<Record<PspKind, ReadonlyArray<PspObject>>>>>>

// Newest first; within a second, the greater id.
const newestFirst = Order.flip(Order.Struct({ created: Order.Number, id: Order.String }))

/** The fake: accounts in memory, read by the PSP's own rules. */
export const memory = (accounts: Accounts): { readonly list: List } => ({
  list: Effect.fnUntraced(function* (kind, account, { limit, startingAfter, createdGte = 0, createdLte = Infinity }) {
    const objects = new Map(Object.entries(accounts)).get(account)
    if (objects === undefined) return yield* new AccountDisconnected()
    const all = Array.sort(objects[kind] ?? [], newestFirst)
    // The cursor may be any object of the account, within the bounds or not.
    const cursor = all.findIndex((object) => object.id === startingAfter)
    if (Predicate.isString(startingAfter) && cursor === -1) return yield* new CursorUnknown()
    const rest = all.slice(cursor + 1).filter(({ created }) => created >= createdGte && created <= createdLte)
    return { data: rest.slice(0, limit), hasMore: rest.length > limit }
  })
})

export class PspClient extends Context.Service<
  PspClient,
  {
    readonly list: List
    /** Set if there is no PSP: nothing is read then. */
    readonly isMissing?: true
  }
>()("practice-data/psp/PspClient") {
  /** Stripe, by its official client. */
  static readonly layerStripe = (options: StripeOptions) => Layer.effect(PspClient, stripe(options))

  /** The fake: accounts in memory, by their ids. */
  static readonly layerMemory = (accounts: Accounts) => Layer.sync(PspClient, () => memory(accounts))

  /** No PSP: every read of the API is a 503. */
  static readonly layerNotConfigured = Layer.succeed(PspClient, { list: () => Effect.never, isMissing: true })
}
