/** The typed client of the data API with an API key and retries. It follows no redirects, and no trace goes on in it. */
import { Effect, Redacted, Schedule, Schema } from "effect"
import { HttpClient } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { layerKey } from "../api/Authorization.ts"
import { DataApi } from "../api/DataApi.ts"
import * as NoRedirects from "../process/HttpClient.ts"

export interface Options {
  /** The address of the service, before `/api`. */
  readonly baseUrl: string
  readonly apiKey: string | Redacted.Redacted
  /** The number of retries of a request, by default 4. */
  readonly retries?: number | undefined
  /** Sends the requests, such as through a proxy or in a test. By default, `globalThis.fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

export class OptionInvalid extends Schema.TaggedError<OptionInvalid>()("OptionInvalid", { message: Schema.String }) {}

const schedule = Schedule.jittered(Schedule.exponential("500 millis"))

/** Sends nothing yet. Requests are retried after 408, 429, 5xx and broken connections, never before `Retry-After`. */
export const connect = Effect.fnUntraced(function* ({ apiKey, baseUrl, fetch, retries = 4 }: Options) {
  if (!URL.canParse(baseUrl) || !/^https?:\/\/[^@?#]+$/i.test(baseUrl)) {
    return yield* new OptionInvalid({
      message: "The URL must be an HTTP address without a user, a query and a fragment"
    })
  }
  const key = Redacted.isRedacted(apiKey) ? apiKey : Redacted.make(apiKey)
  // The error of a header that HTTP does not allow would show it.
  if (!/^[\x21-\x7e]+$/.test(Redacted.value(key))) {
    return yield* new OptionInvalid({ message: "The API key must have printable ASCII characters and no spaces" })
  }
  const address = baseUrl.replace(/\/+$/, "").replace(/\/api\/v[13]$/, "")
  const client = yield* HttpApiClient.make(DataApi, {
    baseUrl: `${address}/api/v3`,
    transformClient: (http) => HttpClient.retryTransient(http, { schedule, times: retries })
  }).pipe(
    Effect.provide([layerKey(key), NoRedirects.layerWith(fetch)]),
    Effect.provideService(HttpClient.TracerPropagationEnabled, false)
  )
  return { address, client }
})
