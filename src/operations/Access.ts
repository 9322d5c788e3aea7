/**
 * Access to the operators' listener. On a loopback address every program of this machine has access, but no other site in
 * a browser on it. On any other address the token is required.
 */
import { hash, timingSafeEqual } from "node:crypto"
import { Clock, Context, Data, Effect, Layer, Option, Redacted } from "effect"
import { HttpApiBuilder, HttpApiSecurity } from "effect/http-api"
import { HttpMiddleware, HttpServerRequest, HttpServerResponse } from "effect/http"
import { secured } from "../http/Html.ts"
import { isLoopback } from "./Config.ts"

/** A token is refused. `retryAfter`, in seconds: after too many wrong ones. */
export type Refused = Data.TaggedEnum<{ NotSet: {}; Wrong: {}; TooMany: { readonly retryAfter: number } }>
export const Refused = Data.taggedEnum<Refused>()

const minute = 60_000

/** The number of wrong tokens from an address in a minute that are refused as `Wrong`. */
export const mostWrong = 10

/** The number of addresses that are counted by themselves. All others count as one. */
const mostAddresses = 1000

const digest = (token: Redacted.Redacted) => hash("sha256", Redacted.value(token), "buffer")

/** The operators' token. Wrong ones are counted by address; the right one always passes. */
export class Token extends Context.Service<
  Token,
  {
    readonly isSet: boolean
    readonly check: (given: Redacted.Redacted, address: string) => Effect.Effect<void, Refused>
  }
>()("practice-data/operations/Access/Token") {
  static readonly layer = (token: Option.Option<Redacted.Redacted>) =>
    Layer.sync(Token, () => {
      const tried = new Map<string, { readonly since: number; readonly wrong: number }>()
      return Token.of({
        isSet: Option.isSome(token),
        check: Effect.fnUntraced(function* (given, address) {
          if (Option.isNone(token)) return yield* Effect.fail(Refused.NotSet())
          if (timingSafeEqual(digest(given), digest(token.value))) return
          const now = yield* Clock.currentTimeMillis
          for (const [key, { since }] of tried) if (now - since >= minute) tried.delete(key)
          const key = tried.has(address) || tried.size < mostAddresses ? address : "others"
          const { since, wrong } = tried.get(key) ?? { since: now, wrong: 0 }
          if (wrong >= mostWrong) {
            return yield* Effect.fail(Refused.TooMany({ retryAfter: Math.ceil((since + minute - now) / 1000) }))
          }
          tried.set(key, { since, wrong: wrong + 1 })
          return yield* Effect.fail(Refused.Wrong())
        })
      })
    })
}

type Request = HttpServerRequest.HttpServerRequest

/** Tells whether `Host` names this machine. Another name that resolves to it would make a foreign page one of ours. */
const namesLoopback = ({ headers }: Request) => {
  const name = /^(?:\[([\da-f:.]+)\]|([^:]*))(?::\d+)?$/i.exec(headers["host"] ?? "")
  return isLoopback((name?.[1] ?? name?.[2] ?? "").toLowerCase())
}

/** Tells whether a page of another site sent the request. Its links to our pages are fine. */
const isCrossSite = ({ headers, method }: Request) => {
  const site = headers["sec-fetch-site"]
  const isOurs = site === undefined || site === "same-origin" || site === "none"
  const isLink =
    method === "GET" && headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document"
  if (!isOurs && !isLink) return true
  const { host, origin } = headers
  if (method === "GET" || method === "HEAD" || origin === undefined) return false
  return URL.parse(origin)?.host !== host?.toLowerCase()
}

/** The name and the token of HTTP Basic; undefined without a token. */
export const credentials = HttpApiBuilder.securityDecode(HttpApiSecurity.basic).pipe(
  Effect.provideService(HttpServerRequest.ParsedSearchParams, {}),
  Effect.map(({ password, username }) =>
    Redacted.value(password) === "" ? undefined : { name: username, token: password }
  )
)

export const addressOf = ({ remoteAddress }: Request): string =>
  Option.getOrElse(remoteAddress, () => "unknown").replace(/^::ffff:/, "")

const refusal = (status: number, text: string, headers: Readonly<Record<string, string>> = {}) =>
  HttpServerResponse.text(`${text}\n`, { status, headers })

const challenge = { "www-authenticate": 'Basic realm="operators"' }

export const refusalOf: (refused: Refused) => HttpServerResponse.HttpServerResponse = Refused.$match({
  NotSet: () =>
    refusal(403, "Set OPERATIONS_TOKEN and restart. Changes, and access from other machines, require a token."),
  Wrong: () => refusal(401, "Wrong token.", challenge),
  TooMany: ({ retryAfter }) =>
    refusal(429, "Too many wrong tokens from this address. Try again in a minute.", {
      "retry-after": String(retryAfter)
    })
})

const misdirected = refusal(
  421,
  "This listener accepts only the hosts localhost, 127.0.0.1 and ::1. Let a proxy send one of them as Host and authenticate its clients, or set OPERATIONS_HOST and OPERATIONS_TOKEN."
)

/** Fails with a refusal unless the request has access. Monitors need no token for metrics and health. */
const requireAccess = Effect.fnUntraced(function* (host: string) {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (isLoopback(host) && !namesLoopback(request)) return yield* Effect.fail(misdirected)
  if (isCrossSite(request)) return yield* Effect.fail(refusal(403, "Requests from other sites are refused."))
  if (isLoopback(host) || /^\/(metrics|health)(\?|$)/.test(request.url)) return
  const token = yield* Token
  if (!token.isSet) return yield* Effect.fail(refusalOf(Refused.NotSet()))
  const given = yield* credentials
  if (given === undefined) {
    return yield* Effect.fail(refusal(401, "Log in with your name and, as password, the operators' token.", challenge))
  }
  yield* Effect.mapError(token.check(given.token, addressOf(request)), refusalOf)
})

const protect = (response: HttpServerResponse.HttpServerResponse) =>
  secured(HttpServerResponse.setHeaders(response, { "cache-control": "no-store", ...response.headers }), "linked")

/** Refuses requests without access to a listener on this host, and protects responses. */
export const guard = (host: string) =>
  HttpMiddleware.make((httpEffect) =>
    requireAccess(host).pipe(
      Effect.matchEffect({ onFailure: Effect.succeed, onSuccess: () => httpEffect }),
      Effect.map(protect)
    )
  )
