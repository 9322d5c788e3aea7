/** The pages at `/` and `/docs`, without a key: where everything is, and the documentation of each API. */
import { Context, Effect, Function, Layer, Record } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type HttpApi, type HttpApiGroup, HttpApiScalar, OpenApi } from "effect/http-api"
import { baseStyle, cacheable, type Content, document, h, Html, icon, secured } from "./Html.ts"

interface DemoKey {
  readonly organization: string
  readonly key: string
}

/** The API keys of the demo data, which pages show to everybody; none on a database of your own. */
export const DemoKeys = Context.Reference<ReadonlyArray<DemoKey>>("practice-data/http/PublicPages/DemoKeys", {
  defaultValue: () => []
})

const apis = {
  dataApi: {
    name: "Practice data API",
    about: "Reads the records of an organization, with its API key.",
    documentation: "/api/v3/docs",
    openapi: "/api/v3/openapi.json"
  },
  intake: {
    name: "Invoice deletion intake",
    about: "Accepts webhooks about deleted invoices and invoice lines.",
    documentation: "/api/v1/docs",
    openapi: "/api/v1/openapi.json"
  }
} as const

type Api = (typeof apis)[keyof typeof apis]

/** The APIs that a process serves. */
export type Served = Readonly<Record<keyof typeof apis, boolean>>

const health = { health: "/api/v1/health", ready: "/api/v1/health/ready" }

const style = `${baseStyle}
body { max-width: 46rem; margin: 0 auto; padding: 1.5rem }
nav { display: flex; gap: 1.25rem }`

const section = (title: string, ...content: ReadonlyArray<Content>) => h("section")(h("h2")(title), content)

const links = (all: Readonly<Record<string, string>>) =>
  h("nav")(Object.entries(all).map(([text, href]) => h("a", { href })(text)))

const demoSection = (demo: ReadonlyArray<DemoKey>, host: string) =>
  section(
    "Demo data",
    h("p")("This service runs on its embedded database. Anyone may use these API keys:"),
    h("ul")(demo.map(({ key, organization }) => h("li")(h("code")(key), ` ${organization}`))),
    h("pre")(
      `curl -s http://${host}/api/v3/charges/search -H 'Authorization: Bearer ${demo[0]?.key}'`,
      ` -H 'Content-Type: application/json' -d '{"limit":2}'`
    )
  )

const landingPage = (shown: ReadonlyArray<Api>, demo: ReadonlyArray<DemoKey>, host: string) =>
  document(
    "Practice Data",
    Html.markup(`<style>${style}</style>`),
    h("h1")("Practice Data"),
    h("p")("The data of a veterinary wellness-plan business, for its partners."),
    shown.map(({ about, documentation, name, openapi }) =>
      section(name, h("p")(about), links({ Documentation: documentation, "OpenAPI document": openapi }))
    ),
    demo.length > 0 && demoSection(demo, host),
    section("Health", links({ Health: health.health, Readiness: health.ready }))
  )

/** The host of a request, if it is one that may stand on the page. */
const hostOf = ({ host }: HttpServerRequest.HttpServerRequest["headers"]) =>
  host !== undefined && /^[\w.-]+(:\d+)?$|^\[[\da-f:]+\](:\d+)?$/i.test(host) ? host : "127.0.0.1:3000"

/** Serves `/`: a page for browsers, JSON for others. */
export const landing = (served: Served) =>
  HttpRouter.use((router) =>
    Effect.gen(function* () {
      const demo = yield* DemoKeys
      const shown = Record.values(Record.filter(apis, (_, name) => served[name]))
      const json = HttpServerResponse.jsonUnsafe({
        apis: shown.map(({ documentation, name, openapi }) => ({ name, documentation, openapi })),
        ...health,
        ...(demo.length > 0 && {
          demo_keys: Object.fromEntries(demo.map(({ key, organization }) => [organization, key]))
        })
      })
      yield* router.add("GET", "/", ({ headers }) =>
        (headers["accept"]?.includes("text/html") === true
          ? cacheable(secured(HttpServerResponse.html(landingPage(shown, demo, hostOf(headers))), "inline"))
          : Effect.succeed(json)
        ).pipe(Effect.map(HttpServerResponse.setHeader("vary", "accept")))
      )
    })
  )

const options = {
  withDefaultFonts: false,
  // Scalar has more options than effect has types for: no telemetry, no buttons that lead to other hosts.
  telemetry: false,
  showDeveloperTools: "never",
  hideClientButton: true,
  persistAuth: false,
  orderSchemaPropertiesBy: "preserve"
}

/** The credentials that are filled in. A scheme that the API does not have would become a query string. */
const authentication = (token: string | undefined, { components }: OpenApi.OpenAPISpec) => ({
  preferredSecurityScheme: Object.keys(components.securitySchemes),
  securitySchemes: token === undefined ? {} : Record.map(components.securitySchemes, () => ({ token }))
})

/** Serves the documentation of an API at `/docs`, where requests can be sent. The first demo key is filled in. */
export const documentation = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>
) => {
  // The handler of effect returns the same response each time.
  const prepared = Function.memoize((page: HttpServerResponse.HttpServerResponse) => cacheable(secured(page, "inline")))
  return Layer.unwrap(
    Effect.map(DemoKeys, ([demo]) =>
      HttpApiScalar.layer(api, {
        path: "/docs",
        scalar: { ...options, favicon: icon, authentication: authentication(demo?.key, OpenApi.fromApi(api)) }
      })
    )
  ).pipe(Layer.provide(HttpRouter.middleware((page) => Effect.flatMap(page, prepared)).layer))
}
