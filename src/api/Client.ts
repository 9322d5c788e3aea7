/** The layer that a typed client of the data API (`HttpApiClient.make(DataApi)`) needs beside its address. */
import { type Layer, Redacted } from "effect"
import { HttpClientRequest } from "effect/http"
import { HttpApiMiddleware } from "effect/http-api"
import { Authorization } from "./Authorization.ts"

/** Sends an API key with every request. */
export const layerKey = (key: Redacted.Redacted): Layer.Layer<HttpApiMiddleware.ForClient<Authorization>> =>
  HttpApiMiddleware.layerClient(Authorization, ({ next, request }) =>
    next(HttpClientRequest.bearerToken(request, Redacted.value(key)))
  )
