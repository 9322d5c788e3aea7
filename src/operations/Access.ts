/**
 * Who may see the operators' pages. On a loopback address, whoever is on this machine: but no page of another site in a
 * browser on it. On any other address, whoever has the token.
 */
import { Context, Effect, Option, Redacted } from "effect"
import { HttpMiddleware, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Refused, Token } from "./Token.ts"

/** Whether an address to listen on is this machine's own. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host)

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'"
].join("; ")

const protection = HttpServerResponse.setHeaders({
  "cache-control": "no-store",
  "content-security-policy": policy,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  // Of POST, so that the origin of a form is sent; nothing of an address goes to other sites.
  "referrer-policy": "same-origin",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY"
})

/** A refusal in words. */
export const refusal = (status: number, words: string, headers: Readonly<Record<string, string>> = {}) =>
  HttpServerResponse.text(`${words}\n`, { status, headers })

type Headers = HttpServerRequest.HttpServerRequest["headers"]

/** The host of a Host header or an origin, without a port. */
const hostOf = (authority: string | undefined) =>
  authority === undefined ? undefined : (/^(\[[\da-f:.]+\]|[^:]*)(:\d+)?$/i.exec(authority)?.[1] ?? "").toLowerCase()

/** Whether a request names this machine: a name of another that leads here would make a page of its site one of ours. */
const namesLoopback = ({ host }: Headers) => {
  const name = hostOf(host)?.replace(/^\[|\]$/g, "")
  return name !== undefined && isLoopback(name)
}

/** Whether a page of another site asks: other than by a link to a page of ours. */
const isFromElsewhere = ({ headers, method }: HttpServerRequest.HttpServerRequest) => {
  const site = headers["sec-fetch-site"]
  const isOurs = site === undefined || site === "same-origin" || site === "none"
  const isLink =
    method === "GET" && headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document"
  if (!isOurs && !isLink) return true
  const { host, origin } = headers
  if (method === "GET" || method === "HEAD" || origin === undefined) return false
  return URL.parse(origin)?.host !== host?.toLowerCase()
}

/** A name and a token, as HTTP Basic has them. */
export interface Credentials {
  readonly name: string
  readonly token: Redacted.Redacted
}

/** The credentials of a request that has any. */
export const credentialsOf = ({ authorization }: Headers): Credentials | undefined => {
  const encoded = /^basic ([\w+/=-]{1,1000})$/i.exec(authorization ?? "")?.[1]
  if (encoded === undefined) return undefined
  const text = Buffer.from(encoded, "base64").toString()
  const end = text.indexOf(":")
  return end < 0 ? undefined : { name: text.slice(0, end), token: Redacted.make(text.slice(end + 1)) }
}

/** Where a request comes from. */
export const addressOf = ({ remoteAddress }: HttpServerRequest.HttpServerRequest): string =>
  Option.getOrElse(remoteAddress, () => "unknown").replace(/^::ffff:/, "")

/** The response to a token that opens nothing. */
export const refusalOf: (refused: Refused) => HttpServerResponse.HttpServerResponse = Refused.$match({
  NotSet: () =>
    refusal(
      403,
      "Set OPERATIONS_TOKEN, and restart the service: without it nothing can be changed here, and other machines see no page."
    ),
  Wrong: () => refusal(401, "This is not the operators' token.", { "www-authenticate": 'Basic realm="operators"' }),
  TooMany: ({ retryAfter }) =>
    refusal(429, "Too many wrong tokens came from this address. Try again in a minute.", {
      "retry-after": String(retryAfter)
    })
})

const misdirected = refusal(
  421,
  "This listener serves this machine alone, by the names localhost, 127.0.0.1 and ::1. A proxy in front of it has to send one of them as Host, and to say itself who may pass; or set OPERATIONS_HOST and OPERATIONS_TOKEN."
)

const fromElsewhere = refusal(403, "A page of another site may not ask for this.")

const unnamed = refusal(401, "Say who you are, with the operators' token as the password.", {
  "www-authenticate": 'Basic realm="operators"'
})

/** What monitors read, which have no token. */
const isOpen = (url: string) => /^\/(metrics|health)(\?|$)/.test(url)

/**
 * Refuses who may not see what is asked for.
 *
 * @param host the address that is listened on
 */
export const guard = (host: string) => {
  const isLocal = isLoopback(host)
  return HttpMiddleware.make((httpEffect) =>
    Effect.contextWith((context: Context.Context<HttpServerRequest.HttpServerRequest | Token>) => {
      const request = Context.get(context, HttpServerRequest.HttpServerRequest)
      const { headers, url } = request
      if (isLocal && !namesLoopback(headers)) return Effect.succeed(protection(misdirected))
      if (isFromElsewhere(request)) return Effect.succeed(protection(fromElsewhere))
      if (isLocal || isOpen(url)) return Effect.map(httpEffect, protection)
      const token = Context.get(context, Token)
      const credentials = credentialsOf(headers)
      if (!token.isSet) return Effect.succeed(protection(refusalOf(Refused.NotSet())))
      if (credentials === undefined) return Effect.succeed(protection(unnamed))
      return token.check(credentials.token, addressOf(request)).pipe(
        Effect.matchEffect({
          onFailure: (refused) => Effect.succeed(refusalOf(refused)),
          onSuccess: () => httpEffect
        }),
        Effect.map(protection)
      )
    })
  )
}
