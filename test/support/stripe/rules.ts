/**
 * What Stripe answers to the six list requests, by its own rules: which key it takes, whose objects it shows, and how it
 * pages. Nothing here comes from the fake that the service has.
 */
import type { IncomingMessage } from "node:http"
import type { PspKind, PspObject } from "../../../src/api/Psp.ts"
import type { Accounts } from "../../../src/psp/PspClient.ts"

/** Whom the double serves, and with what. */
export interface Rules {
  readonly key: string
  /** The objects of each account, the ones made last at the end. */
  readonly accounts: Accounts
  /** The account of the key itself: what is shown where a request names none. */
  readonly platform: string
}

/** Where each kind of object is. */
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

const refuse = (status: number, message: string, more: { readonly code?: string; readonly param?: string } = {}) => ({
  status,
  body: { error: { type: "invalid_request_error", message, ...more } }
})

const masked = (key: string) => `${key.slice(0, 8)}${"*".repeat(12)}${key.slice(-4)}`

const pageOf = (made: ReadonlyArray<PspObject>, path: string, query: URLSearchParams) => {
  const after = query.get("starting_after")
  const param = "starting_after"
  if (after === "") return refuse(400, "An empty string", { code: "parameter_invalid_empty", param })
  const numberOf = (name: string, byDefault: number) => Number(query.get(name) ?? byDefault)
  const [limit, gte, lte] = [numberOf("limit", 10), numberOf("created[gte]", 0), numberOf("created[lte]", Infinity)]
  // The sort is stable: of one second, the object that was made last is first.
  const all = made.toReversed().toSorted((a, b) => b.created - a.created)
  const cursor = after === null ? -1 : all.findIndex(({ id }) => id === after)
  if (after !== null && cursor === -1) {
    return refuse(400, `No such object: '${after}'`, { code: "resource_missing", param })
  }
  const rest = all.filter(({ created }, at) => at > cursor && created >= gte && created <= lte)
  const body = { object: "list", data: rest.slice(0, limit), has_more: rest.length > limit, url: path }
  return { status: 200, body }
}

/** The status and the body that Stripe answers. */
export const answerTo = ({ key, accounts, platform }: Rules, { headers, method, url = "/" }: IncomingMessage) => {
  const { pathname, searchParams } = new URL(url, "http://stripe.invalid")
  if (headers.authorization !== `Bearer ${key}`) {
    return refuse(401, `Invalid API Key provided: ${masked(headers.authorization ?? "")}`)
  }
  const kind = kinds.find((known) => paths[known] === pathname)
  if (method !== "GET" || kind === undefined) {
    return refuse(404, `Unrecognized request URL (${method}: ${pathname}).`)
  }
  const account = String(headers["stripe-account"] ?? platform)
  const collections = new Map(Object.entries(accounts)).get(account)
  if (collections === undefined) {
    const message = `The provided key '${masked(key)}' does not have access to account '${account}' (or that account does not exist). Application access may have been revoked.`
    return refuse(403, message, { code: "account_invalid" })
  }
  return pageOf(collections[kind] ?? [], pathname, searchParams)
}
