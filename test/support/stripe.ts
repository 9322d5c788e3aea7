/**
 * A double of Stripe: a server on a socket of this machine, for Stripe's own client to talk to. It records requests, answers
 * each with the same objects, and fails on demand.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Context, Effect, Layer } from "effect"
import type { PspKind } from "../../src/api/Psp.ts"
import * as Listening from "./Listening.ts"

/** The path of each kind of object. */
export const paths = {
  payments: "/v1/payment_intents",
  charges: "/v1/charges",
  refunds: "/v1/refunds",
  disputes: "/v1/disputes",
  payouts: "/v1/payouts",
  "balance-transactions": "/v1/balance_transactions"
} as const satisfies Record<PspKind, string>

/** The kinds of object. */
export const kinds = Object.keys(paths).filter((kind): kind is PspKind => kind in paths)

/** How one request is failed. */
export type Fault = (response: ServerResponse) => void

/** Something that only the processor says: found anywhere else, it has leaked. */
export const processorText = "lighthouse keeper"

/** Answers in full. */
export const answer =
  (status: number, body: string, headers: Readonly<Record<string, string>> = {}): Fault =>
  (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(body)
  }

interface Refusal {
  readonly type: string
  readonly code?: string
  readonly param?: string
  readonly message?: string
}

/** Answers with an error as Stripe writes one. Its message is of the kind that must go nowhere. */
export const error = (status: number, refusal: Refusal, headers: Readonly<Record<string, string>> = {}): Fault =>
  answer(status, JSON.stringify({ error: { message: processorText, ...refusal } }), headers)

/** Refuses a request because there are too many. */
export const rateLimit = (retryAfter?: string, headers: Readonly<Record<string, string>> = {}): Fault =>
  error(
    429,
    { type: "invalid_request_error", code: "rate_limit" },
    retryAfter === undefined ? headers : { ...headers, "retry-after": retryAfter }
  )

/** Fails on its side. */
export const internal = error(500, { type: "api_error" })

/** Does not know our key, as Stripe says it: in words alone. */
export const unknownKey = error(401, {
  type: "invalid_request_error",
  message: `Invalid API Key provided: ${processorText}`
})

/** Lacks a permission of our restricted key, as Stripe says it: in words alone. */
export const lacksPermission = error(403, {
  type: "invalid_request_error",
  message: `The provided key 'rk_live_***${processorText}' does not have the required permissions for this endpoint on account 'acct_oak'. Having the 'rak_payout_read' permission would allow this request to continue.`
})

/** Answers with a page for people, as something in between would. */
export const html = (status: number): Fault =>
  answer(status, `<!doctype html><title>${processorText}</title>`, { "content-type": "text/html" })

const start = `{"object":"list","data":[{"id":"txn_1","description":"${processorText}`

const begin = (response: ServerResponse, headers: Readonly<Record<string, string>> = {}) =>
  response.writeHead(200, { "content-type": "application/json", ...headers })

/** Closes the connection in the middle of a body, in good order. */
export const cutShort: Fault = (response) => {
  begin(response, { connection: "close" }).end(start)
}

/** Breaks the connection. */
export const reset: Fault = (response) => {
  response.socket?.resetAndDestroy()
}

/** Breaks the connection in the middle of a body. */
export const resetInBody: Fault = (response) => {
  begin(response).write(start, () => response.socket?.resetAndDestroy())
}

/** Takes the request and never answers. */
export const hang: Fault = () => undefined

/** Begins to answer with so many bytes of a body, and then says nothing more. */
export const large =
  (bytes: number): Fault =>
  (response) => {
    begin(response).write(" ".repeat(bytes))
  }

export const hangInBody = large(100)

const requestOf = ({ headers, url = "/" }: IncomingMessage) => {
  const { pathname, searchParams } = new URL(url, "http://stripe.invalid")
  const { authorization, "stripe-account": account } = headers
  return { path: pathname, query: Object.fromEntries(searchParams), account, authorization }
}

const make = (key: string, data: ReadonlyArray<object>) =>
  Effect.gen(function* () {
    const faults: Array<Fault> = []
    const seen: Array<ReturnType<typeof requestOf>> = []
    let count = 0
    let underWay = 0
    const { port } = yield* Listening.on(
      createServer({ keepAliveTimeout: 0 }, (request, response) => {
        const asked = requestOf(request)
        seen.push(asked)
        underWay += 1
        response.once("close", () => (underWay -= 1))
        response.setHeader("request-id", `req_${++count}`)
        const list = answer(200, JSON.stringify({ object: "list", data, has_more: true, url: asked.path }))
        const isKnown = asked.authorization === `Bearer ${key}`
        return (faults.shift() ?? (isKnown ? list : unknownKey))(response)
      })
    )
    return {
      /** Its address. */
      url: new URL(`http://127.0.0.1:${port}`),
      /** Fails the next requests, one each. */
      fail: (...next: ReadonlyArray<Fault>) => Effect.sync(() => void faults.push(...next)),
      /** The requests since the last time of asking. */
      seen: Effect.sync(() => seen.splice(0)),
      /** The number of requests that are being answered. */
      underWay: Effect.sync(() => underWay)
    }
  })

export class StripeDouble extends Context.Service<StripeDouble, Effect.Success<ReturnType<typeof make>>>()(
  "practice-data/test/support/stripe/StripeDouble"
) {
  static readonly layer = (key: string, data: ReadonlyArray<object> = []) => Layer.effect(StripeDouble, make(key, data))
}
