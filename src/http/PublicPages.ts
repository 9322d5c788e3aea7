/** The pages at `/` and `/docs`, without a key: where everything is, and the documentation of each API. */
import { Context, Effect, Function, Layer, Record } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type HttpApi, type HttpApiGroup, HttpApiScalar, OpenApi } from "effect/http-api"
import { cacheable, type Content, document, h, Html, icon, secured } from "./Html.ts"

interface DemoKey {
  readonly organization: string
  readonly key: string
}

/** The API keys of the demo data, which pages show to everybody; none on a database of your own. */
export const DemoKeys = Context.Reference<ReadonlyArray<DemoKey>>("practice-data/http/PublicPages/DemoKeys", {
  defaultValue: () => []
})

/** The APIs that a process serves. */
export interface Served {
  readonly dataApi: boolean
  readonly intake: boolean
}

const dataApi = {
  name: "Practice data API",
  about: "Reads the records of an organization, with its API key.",
  documentation: "/api/v3/docs",
  openapi: "/api/v3/openapi.json"
}

const intake = {
  name: "Invoice deletion intake",
  about: "Accepts webhooks about deleted invoices and invoice lines.",
  documentation: "/api/v1/docs",
  openapi: "/api/v1/openapi.json"
}

type Api = typeof dataApi

const health = { health: "/api/v1/health", ready: "/api/v1/health/ready" }

const style = `
:root { --line: #d6d3d1; --muted: #57534e; --link: #0f766e; --code: #f5f5f4 }
@media (prefers-color-scheme: dark) { :root { --line: #44403c; --muted: #a8a29e; --link: #5eead4; --code: #292524 } }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 44rem; margin: 0 auto; padding: 2.5rem 1.25rem }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .25rem }
h2 { font-size: 1.05rem; margin: 0 }
p { margin: .15rem 0; color: var(--muted) }
a { color: var(--link) }
section { border-top: 1px solid var(--line); padding: 1.1rem 0; margin-top: 1.1rem }
section + section { margin-top: 0 }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin-top: .35rem }
code, pre { font: 14px/1.5 ui-monospace, monospace; background: var(--code); border-radius: 6px }
code { padding: .1rem .35rem }
pre { padding: .8rem; margin: .6rem 0 0; white-space: pre-wrap; overflow-wrap: anywhere }
ul { margin: .4rem 0; padding-left: 1.2rem }
`

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

const landingPage = (apis: ReadonlyArray<Api>, demo: ReadonlyArray<DemoKey>, host: string) =>
  document(
    "Practice Data",
    Html.style(style),
    h("h1")("Practice Data"),
    h("p")("The data of a veterinary wellness-plan business, for its partners."),
    apis.map(({ about, documentation, name, openapi }) =>
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
      const apis = [...(served.dataApi ? [dataApi] : []), ...(served.intake ? [intake] : [])]
      const json = HttpServerResponse.jsonUnsafe({
        apis: apis.map(({ documentation, name, openapi }) => ({ name, documentation, openapi })),
        ...health,
        ...(demo.length > 0 && {
          demo_keys: Object.fromEntries(demo.map(({ key, organization }) => [organization, key]))
        })
      })
      yield* router.add("GET", "/", ({ headers }) =>
        (headers["accept"]?.includes("text/html") === true
          ? cacheable(secured(HttpServerResponse.html(landingPage(apis, demo, hostOf(headers))), "inline"))
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
