/** The PSP, the payment service provider: pages of the objects of a connected account of Stripe. */
import { Array, Context, Data, Duration, Effect, Layer, Option, Order, Predicate, Redacted } from "effect"
import { UrlParams } from "effect/http"
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
export class BodyTooLarge extends Data.TaggedError("BodyTooLarge") {}

/** A response. Its body is undefined unless it is a JSON object. */
interface Received {
  readonly status: number
  readonly headers: Headers
  readonly body: Readonly<Record<PropertyKey, unknown>> | undefined
}

const parseObject = Option.liftThrowable((text: string): unknown => JSON.parse(text))

/** Reads a response. Rejects as soon as its body is past the limit, and then closes its socket. */
// oxlint-disable-next-line effecttsgo/async-function -- the signal of one promise closes the socket at any point
export const readResponse = async (response: Response): Promise<Received> => {
  const chunks: Array<Uint8Array> = []
  let length = 0
  // Leaving the loop cancels the body.
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > longestBody) throw new BodyTooLarge()
    chunks.push(chunk)
  }
  const body = parseObject(Buffer.concat(chunks).toString()).pipe(
    Option.filter(Predicate.isReadonlyObject),
    Option.getOrUndefined
  )
  return { status: response.status, headers: response.headers, body }
}

/** Milliseconds. Undici tries to connect for longer than a read may take: no network would be no failure. */
const connectTimeout = 3000

/** Text that is safe to log: the PSP must not choose what fills the log. */
const safeWord = (value: unknown, form = /^[\w-]{1,64}$/) =>
  Predicate.isString(value) && form.test(value) ? value : undefined

/** The failure of a request without a whole response. */
const connectionFailure = (cause: unknown): PspFailed => {
  if (cause instanceof BodyTooLarge) return new PspFailed({ blame: "request", reason: "body too large" })
  const inner = Predicate.isError(cause) ? cause.cause : undefined
  const code = Predicate.hasProperty(inner, "code") ? safeWord(inner.code) : undefined
  return new PspFailed({ blame: "psp", reason: ["no connection", code].filter(Boolean).join(" ") })
}

/** The pause that a response asks for. A date counts from that of the response. */
const retryDelay = (headers: Headers) => {
  const after = headers.get("retry-after") ?? ""
  const seconds = Number.isNaN(Number(after))
    ? (Date.parse(after) - Date.parse(headers.get("date") ?? "")) / 1000
    : Number(after)
  return Number.isFinite(seconds) && seconds > 0 ? Duration.seconds(seconds) : undefined
}

// The error of an unknown key has no code, only a message.
const keyCodes = ["api_key_expired", "platform_api_key_expired", "secret_key_required"]
// A permission that a restricted key lacks is named in the message alone.
const permissionWord = /\brak_[a-z_]{1,60}\b/
const keyWords = /^(invalid|expired) api key|^you did not provide an api key/i

/** The error of a response, by codes before the status, which varies. Messages hold ids and keys, and are not passed on. */
const responseError = ({ body, headers, status }: Received): PspError => {
  const request = safeWord(headers.get("request-id"))
  const refusal = body?.["error"]
  if (!Predicate.isReadonlyObject(refusal)) {
    return new PspFailed({ blame: "unclear", reason: `not a list ${status}`, request, retryAfter: retryDelay(headers) })
  }
  const { code, param, type } = refusal
  const message = String(refusal["message"])
  // Codes have no digits and no capitals; ids do.
  const words = [safeWord(type), status, safeWord(code, /^[a-z_]{1,64}$/), permissionWord.exec(message)?.[0]]
  const failed = (blame: PspFailed["blame"]) =>
    new PspFailed({ blame, reason: words.filter(Boolean).join(" "), request, retryAfter: retryDelay(headers) })
  if (param === "starting_after") return new CursorUnknown()
  if (code === "account_invalid") return new AccountDisconnected()
  if (status === 429 || code === "rate_limit") {
    return new RateLimited({ request, retryAfter: retryDelay(headers) ?? Duration.seconds(1) })
  }
  if (status === 400) return failed("request")
  if (status === 401) {
    const isKeyRefused = Predicate.isString(code) ? keyCodes.includes(code) : keyWords.test(message)
    return failed(isKeyRefused ? "psp" : "unauthorized")
  }
  if (status === 403 && /permission/i.test(`${String(code)} ${message}`)) return failed("permission")
  return failed(status > 401 && status < 500 ? "account" : "unclear")
}

const isObjects = (data: unknown): data is ReadonlyArray<object> =>
  Array.isArray(data) && data.every(Predicate.isObject)

export interface StripeOptions {
  /** The key of our own account, such as `sk_live_...`. */
  readonly secretKey: Redacted.Redacted
  /** The address of a double of Stripe; by default Stripe itself. */
  readonly apiUrl?: Option.Option<URL>
}

const paths: Readonly<Record<PspKind, string>> = {
  payments: "payment_intents",
  charges: "charges",
  refunds: "refunds",
  disputes: "disputes",
  payouts: "payouts",
  "balance-transactions": "balance_transactions"
}

/** The client for a key, which only reads. Retries and the timeout are the caller's. */
export const stripe = Effect.fnUntraced(function* ({ apiUrl = Option.none(), secretKey }: StripeOptions) {
  // Loaded only where there is a key.
  const { Agent, EnvHttpProxyAgent, fetch } = yield* Effect.promise(() => import("@effect/platform-node/Undici"))
  // oxlint-disable-next-line effecttsgo/process-env-in-effect -- a variable of Node, not one of ours
  const dispatcher = new (process.env["NODE_USE_ENV_PROXY"] === "1" ? EnvHttpProxyAgent : Agent)({
    allowH2: false,
    connect: { timeout: connectTimeout }
  })
  const { hostname, origin, port, protocol } = Option.getOrElse(apiUrl, () => new URL("https://api.stripe.com"))
  // The path says no more than the kind of objects, and headers and query more than a trace should.
  const attributes = {
    "http.request.method": "GET",
    "server.address": hostname,
    "server.port": Number(port || (protocol === "http:" ? 80 : 443))
  }
  const list: List = Effect.fn("StripeClient.list", { kind: "client", attributes })(function* (kind, account, page) {
    const { createdGte, createdLte, limit, startingAfter } = page
    if ((startingAfter ?? "").length > longestId) return yield* new CursorUnknown()
    const parameters = {
      limit,
      starting_after: startingAfter,
      "created[gte]": createdGte,
      "created[lte]": createdLte
    }
    const query = UrlParams.toString(UrlParams.fromInput(parameters))
    const traceparent = yield* Tracing.currentTraceParent
    const headers = {
      authorization: `Bearer ${Redacted.value(secretKey)}`,
      "stripe-account": account,
      "stripe-version": "2026-10-28.endive",
      ...(traceparent !== undefined && { traceparent })
    }
    const received = yield* Effect.tryPromise({
      try: (signal) =>
        fetch(`${origin}/v1/${paths[kind]}?${query}`, { dispatcher, headers, redirect: "error", signal }).then(
          readResponse
        ),
      catch: connectionFailure
    })
    const request = safeWord(received.headers.get("request-id"))
    yield* Effect.annotateCurrentSpan({
      ...(request !== undefined && { "practice_data.processor.request": request }),
      "http.response.status_code": received.status
    })
    const { data, has_more } = received.body ?? {}
    return received.status === 200 && isObjects(data) && Predicate.isBoolean(has_more)
      ? { data, hasMore: has_more }
      : yield* responseError(received)
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
  /** Stripe, over HTTP. */
  static readonly layerStripe = (options: StripeOptions) => Layer.effect(PspClient, stripe(options))

  /** The fake: accounts in memory, by their ids. */
  static readonly layerMemory = (accounts: Accounts) => Layer.sync(PspClient, () => memory(accounts))

  /** No PSP: every read of the API is a 503. */
  static readonly layerNotConfigured = Layer.succeed(PspClient, { list: () => Effect.never, isMissing: true })
}
