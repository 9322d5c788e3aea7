/** The documentation page of an API: everything in one response, with requests that can be sent from it. */
import { Effect, Function, Layer, Record } from "effect"
import { HttpRouter, type HttpServerResponse } from "effect/http"
import { type HttpApi, type HttpApiGroup, HttpApiScalar, OpenApi } from "effect/http-api"
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
  orderSchemaPropertiesBy: "preserve"
}

/** What is filled in for the security schemes of an API. One that the API does not have would become a query string. */
const authentication = (token: string | undefined, { components }: OpenApi.OpenAPISpec) => ({
  preferredSecurityScheme: Object.keys(components.securitySchemes),
  securitySchemes: token === undefined ? {} : Record.map(components.securitySchemes, () => ({ token }))
})

const textOf = ({ body }: HttpServerResponse.HttpServerResponse) =>
  body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : ""

/** The page comes as the same response each time. */
const protect = Function.memoize((response: HttpServerResponse.HttpServerResponse) => Page.page(textOf(response)))

/** Serves the page at `/docs`. On the demo data, the first demo key is filled in. */
export const layer = <Id extends string, Groups extends HttpApiGroup.Constraint>(api: HttpApi.HttpApi<Id, Groups>) =>
  Layer.unwrap(
    Effect.map(DemoKeys, ([demo]) =>
      HttpApiScalar.layer(api, {
        path: "/docs",
        scalar: { ...options, authentication: authentication(demo?.key, OpenApi.fromApi(api)) }
      })
    )
  ).pipe(
    Layer.provide(
      HttpRouter.middleware((page) => Effect.flatMap(page, (response) => Page.unlessKnown(protect(response)))).layer
    )
  )
