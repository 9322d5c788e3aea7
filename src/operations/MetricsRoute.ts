/** `/metrics`: what the processes of this host count, for Prometheus. */
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { Figures } from "./Figures.ts"

export const layer = HttpRouter.use((router) =>
  Effect.flatMap(Figures, (figures) =>
    router.add(
      "GET",
      "/metrics",
      Effect.map(figures.all, (all) =>
        HttpServerResponse.text(all.map((one) => ("silent" in one ? "" : one.metrics)).join(""))
      )
    )
  )
)
