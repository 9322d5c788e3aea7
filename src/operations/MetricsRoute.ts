/** `/metrics`: what the processes of this host count, for Prometheus. */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import * as Exposition from "../observability/Exposition.ts"
import { Figures } from "./Figures.ts"

export const layer = Layer.unwrap(
  Effect.map(Figures, ({ metrics }) =>
    HttpRouter.add(
      "GET",
      "/metrics",
      Effect.map(metrics, (text) => HttpServerResponse.text(text, { contentType: Exposition.contentType }))
    )
  )
)
