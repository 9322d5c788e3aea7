/**
 * Access to the operators' listener. On a loopback address every program of this machine has access, but no other site in
 * a browser on it. On any other address the token is required.
 */
import { hash, timingSafeEqual } from "node:crypto"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { HttpApiBuilder, HttpApiSecurity } from "effect/http-api"
import { HttpMiddleware, HttpServerRequest, HttpServerResponse } from "effect/http"
import { secured } from "../http/Html.ts"
import * as Time from "../process/Time.ts"
import { type Problem, problem } from "./OperatorStore.ts"
import { isLoopback } from "./Settings.ts"

const minute = 60_000

/** The number of wrong tokens in a minute that are refused as such. */
const mostWrong = 10

const digest = (token: Redacted.Redacted) => hash("sha256", Redacted.value(token), "buffer")

/** The operators' token. The right one always passes. */
export class Token extends Context.Service<
  Token,
  { readonly check: (given: Redacted.Redacted | undefined) => Effect.Effect<void, Problem> }
>()("practice-data/operations/Access/Token") {
  static readonly layer = (token: Option.Option<Redacted.Redacted>) =>
    Layer.sync(Token, () => {
      let [since, wrong] = [0, 0]
      return Token.of({
        check: Effect.fnUntraced(function* (given) {
          if (Option.isNone(token)) {
            const message =
              "Set OPERATIONS_TOKEN and restart. Changes, and access from other machines, require a token."
            return yield* problem(403, message)
          }
          if (given === undefined)
            return yield* problem(401, "Send your name and the operators' token with HTTP Basic.")
          if (timingSafeEqual(digest(given), digest(token.value))) return
          const now = yield* Time.monotonic
          if (now - since >= minute) [since, wrong] = [now, 0]
          if (wrong >= mostWrong) return yield* problem(429, "Too many wrong tokens. Try again in a minute.")
          wrong += 1
          return yield* problem(401, "Wrong token.")
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

/**
 * Tells whether a page of another site sent the request. Its links to our pages are fine. Where a browser says so itself,
 * that counts: behind a proxy, `Host` is not the host of the page. It does where the page has HTTPS, or is on localhost.
 */
const isCrossSite = ({ headers, method }: Request) => {
  const { host, origin, "sec-fetch-site": site } = headers
  const isLink =
    method === "GET" && headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document"
  if (site !== undefined) return site !== "same-origin" && site !== "none" && !isLink
  if (method === "GET" || method === "HEAD" || origin === undefined) return false
  return URL.parse(origin)?.host !== host?.toLowerCase()
}

/** The name and the token of HTTP Basic, without which they are empty and undefined. */
export const credentials = HttpApiBuilder.securityDecode(HttpApiSecurity.basic).pipe(
  Effect.provideService(HttpServerRequest.ParsedSearchParams, {}),
  Effect.map(({ password, username }) => ({
    name: username,
    token: Redacted.value(password) === "" ? undefined : password
  }))
)

export const addressOf = ({ remoteAddress }: Request): string =>
  Option.getOrElse(remoteAddress, () => "unknown").replace(/^::ffff:/, "")

const headersOf: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  401: { "www-authenticate": 'Basic realm="operators"' },
  429: { "retry-after": "60" }
}

export const responseTo = ({ message, status }: Problem) =>
  Effect.succeed(HttpServerResponse.text(`${message}\n`, { status, headers: headersOf[status] }))

const misdirected = problem(
  421,
  "This listener accepts only the hosts localhost, 127.0.0.1 and ::1. Let a proxy with HTTPS send one of them as Host and authenticate its clients, or set OPERATIONS_HOST and OPERATIONS_TOKEN."
)

/** Fails unless the request has access. Monitors need no token for metrics and health. */
const requireAccess = Effect.fnUntraced(function* (host: string) {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (isLoopback(host) && !namesLoopback(request)) return yield* misdirected
  if (isCrossSite(request)) return yield* problem(403, "Requests from other sites are refused.")
  if (isLoopback(host) || /^\/(metrics|health)(\?|$)/.test(request.url)) return
  const { check } = yield* Token
  yield* check((yield* credentials).token)
})

/** Refuses requests without access to a listener on this host, and protects responses. */
export const guard = (host: string) =>
  HttpMiddleware.make((httpEffect) =>
    requireAccess(host).pipe(
      Effect.matchEffect({ onFailure: responseTo, onSuccess: () => httpEffect }),
      Effect.map((response) =>
        secured(HttpServerResponse.setHeaders(response, { "cache-control": "no-store", ...response.headers }), "linked")
      )
    )
  )
