/** The typed client of the data API with an API key, retries, and neither redirects nor traces of its own. */
import { Effect, Layer, type Redacted, Schedule } from "effect"
import { HttpClient } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { layerKey } from "../api/Authorization.ts"
import { DataApi } from "../api/DataApi.ts"
import * as NoRedirects from "../process/HttpClient.ts"

export interface Connection {
  /** The address of the service, with a path before `/api` if there is one. */
  readonly baseUrl: string
  readonly apiKey: Redacted.Redacted
  /** The number of retries of a request, by default 4. */
  readonly retries?: number | undefined
  /** Sends the requests, such as through a proxy or in a test. By default, `globalThis.fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** The address before `/api`; undefined if it is not an HTTP address, or has a user, a query or a fragment. */
export const parseBaseUrl = (text: string): string | undefined => {
  const { hash, origin, password, pathname, protocol, search, username } = new URL(URL.canParse(text) ? text : "none:")
  if (!/^https?:$/.test(protocol) || `${username}${password}${search}${hash}` !== "") return undefined
  return `${origin}${pathname}`.replace(/\/+$/, "").replace(/\/api\/v[13]$/, "")
}

/** True for a key that a header can hold. The error of any other would show it. */
export const isPrintable = (key: string) => /^[\x21-\x7e]{1,1000}$/.test(key)

const untraced = Layer.succeed(HttpClient.TracerPropagationEnabled, false)

const schedule = Schedule.jittered(Schedule.exponential("500 millis"))

/** Connects nothing yet. Requests are retried after 408, 429, 5xx and broken connections, never before `Retry-After`. */
export const connect = ({ apiKey, baseUrl, fetch, retries = 4 }: Connection) =>
  HttpApiClient.make(DataApi, {
    baseUrl: `${baseUrl}/api/v3`,
    transformClient: (client) => HttpClient.retryTransient(client, { schedule, times: retries })
  }).pipe(
    Effect.provide([
      layerKey(apiKey),
      Layer.provide(fetch === undefined ? NoRedirects.layer : NoRedirects.layerFetch(fetch), untraced)
    ])
  )
