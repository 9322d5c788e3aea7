/** The documentation page of an API: everything in one response, with requests that can be sent from it. */
import { Effect, Function, Layer } from "effect"
import { HttpRouter, type HttpServerResponse } from "effect/http"
import { type HttpApi, type HttpApiGroup, HttpApiScalar } from "effect/http-api"
import { DemoKeys } from "./Demo.ts"
import * as Page from "./Page.ts"

const options = {
  withDefaultFonts: false,
  favicon: Page.icon,
  // Scalar has more options than effect has types for: no telemetry, no buttons that lead to other hosts.
  telemetry: false,
  showDeveloperTools: "never",
  hideClientButton: true,
  persistAuth: false,
  orderSchemaPropertiesBy: "preserve",
  customCss: ""
}

const withKey = (key: string | undefined) => ({
  ...options,
  authentication: {
    preferredSecurityScheme: "bearer",
    ...(key === undefined ? {} : { securitySchemes: { bearer: { token: key } } })
  }
})

const textOf = ({ body }: HttpServerResponse.HttpServerResponse) =>
  body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : ""

/** The page comes as the same response each time. */
const protect = Function.memoize((response: HttpServerResponse.HttpServerResponse) => Page.page(textOf(response)))

/** Serves the page at `/docs`. On the demo data, the first demo key is filled in. */
export const layer = <Id extends string, Groups extends HttpApiGroup.Constraint>(api: HttpApi.HttpApi<Id, Groups>) =>
  Layer.unwrap(
    Effect.map(DemoKeys, ([demo]) => HttpApiScalar.layer(api, { path: "/docs", scalar: withKey(demo?.key) }))
  ).pipe(Layer.provide(HttpRouter.middleware((page) => Effect.map(page, protect)).layer))
