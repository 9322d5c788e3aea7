/**
 * What Stripe answers to the six list requests, by its own rules: which key it takes, whose objects it shows, and how it
 * pages. Nothing here comes from the fake that the service has.
 */
import type { IncomingHttpHeaders } from "node:http"
import type { PspObject } from "../../../src/psp/PspClient.ts"
import type { PspKind } from "../../../src/api/Psp.ts"

/** The objects of each account, the ones made last at the end. */
export type Collections = Readonly<Record<string, Partial<Readonly<Record<PspKind, ReadonlyArray<PspObject>>>>>>

/** Whom the double serves, and with what. */
export interface Rules {
  readonly key: string
  readonly accounts: Collections
  /** The account of the key itself: what is shown where a request names none. */
  readonly platform: string
}

/** A request, as far as it decides the answer. */
export interface Asked {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
}

/** A status and a body of JSON. */
export interface Answer {
  readonly status: number
  readonly body: unknown
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

interface Refusal {
  readonly message: string
  readonly code?: string
  readonly param?: string
}

const refuse = (status: number, refusal: Refusal): Answer => ({
  status,
  body: { error: { type: "invalid_request_error", ...refusal } }
})

const masked = (key: string) => `${key.slice(0, 8)}${"*".repeat(12)}${key.slice(-4)}`

const names = new Set(["limit", "starting_after", "created[gte]", "created[lte]"])

interface Query {
  readonly limit: number
  readonly after: string | null
  readonly gte: number
  readonly lte: number
}

const isRefused = (query: Query | Answer): query is Answer => "status" in query

const queryOf = (parameters: URLSearchParams): Query | Answer => {
  const unknown = [...parameters.keys()].find((name) => !names.has(name))
  if (unknown !== undefined) {
    return refuse(400, { code: "parameter_unknown", param: unknown, message: `Received unknown parameter: ${unknown}` })
  }
  const empty = [...parameters].find(([, value]) => value === "")
  if (empty !== undefined) {
    const [param] = empty
    return refuse(400, {
      code: "parameter_invalid_empty",
      param,
      message: `You passed an empty string for '${param}'.`
    })
  }
  for (const param of ["limit", "created[gte]", "created[lte]"]) {
    const value = parameters.get(param) ?? "1"
    if (!/^\d{1,16}$/.test(value) || (param === "limit" && (Number(value) < 1 || Number(value) > 100))) {
      return refuse(400, { code: "parameter_invalid_integer", param, message: `Invalid integer: ${value}` })
    }
  }
  return {
    limit: Number(parameters.get("limit") ?? 10),
    after: parameters.get("starting_after"),
    gte: Number(parameters.get("created[gte]") ?? 0),
    lte: Number(parameters.get("created[lte]") ?? Infinity)
  }
}

const pageOf = (made: ReadonlyArray<PspObject>, path: string, { limit, after, gte, lte }: Query): Answer => {
  // The sort is stable: of one second, the object that was made last is first.
  const all = made.toReversed().toSorted((a, b) => b.created - a.created)
  const cursor = after === null ? -1 : all.findIndex(({ id }) => id === after)
  if (after !== null && cursor === -1) {
    return refuse(400, { code: "resource_missing", param: "starting_after", message: `No such object: '${after}'` })
  }
  const rest = all.filter(({ created }, at) => at > cursor && created >= gte && created <= lte)
  return {
    status: 200,
    body: { object: "list", data: rest.slice(0, limit), has_more: rest.length > limit, url: path }
  }
}

/** What Stripe answers. */
export const answerTo = ({ key, accounts, platform }: Rules, { method, url, headers }: Asked): Answer => {
  const { pathname, searchParams } = new URL(url, "http://stripe.invalid")
  if (headers.authorization !== `Bearer ${key}`) {
    return refuse(401, { message: `Invalid API Key provided: ${masked(headers.authorization ?? "")}` })
  }
  const kind = kinds.find((known) => paths[known] === pathname)
  if (method !== "GET" || kind === undefined) {
    return refuse(404, { message: `Unrecognized request URL (${method}: ${pathname}).` })
  }
  const account = String(headers["stripe-account"] ?? platform)
  const collections = new Map(Object.entries(accounts)).get(account)
  if (collections === undefined) {
    const message = `The provided key '${masked(key)}' does not have access to account '${account}' (or that account does not exist). Application access may have been revoked.`
    return refuse(403, { code: "account_invalid", message })
  }
  const query = queryOf(searchParams)
  return isRefused(query) ? query : pageOf(collections[kind] ?? [], pathname, query)
}
