/** The pages at `/` and `/docs`, without a key: where everything is, and the documentation of each API by Scalar. */
import { hash } from "node:crypto"
import { readFileSync } from "node:fs"
import { Context, Effect, Function, Layer, Option, Record } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { type HttpApi, type HttpApiGroup, HttpApiScalar, OpenApi } from "effect/http-api"
import { downgrade } from "../api/openapi/JsonSchemas.ts"
import { baseStyle, serveDocument, document, h, secured } from "./Html.ts"

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
    about: "Read the records of your organization, with its API key.",
    path: "/api/v3"
  },
  intake: {
    name: "Invoice deletion intake",
    about: "Send webhooks about deleted invoices and invoice lines.",
    path: "/api/v1"
  }
} as const

export type Served = Readonly<Record<keyof typeof apis, boolean>>

const style = `${baseStyle}
main { max-width: 46rem; margin: 0 auto; padding: 1.5rem }
ul { list-style: none; padding: 0; display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 1rem }
.cards li { border: 1px solid var(--line); border-radius: 6px; padding: .75rem 1rem; background: var(--surface) }
.cards h2 { margin-top: 0 }`

const card = (title: string, about: string, ...links: ReadonlyArray<readonly [text: string, href: string]>) =>
  h("li")(
    h("h2")(title),
    h("p")(about),
    links.map(([text, href]) => h("p")(h("a", { href })(text)))
  )

const curl = (host: string, key: string) => `curl -s http://${host}/api/v3/charges/search \\
  -H 'Authorization: Bearer ${key}' \\
  -H 'Content-Type: application/json' -d '{"limit":2}'`

const demoSection = (keys: ReadonlyArray<DemoKey>, host: string) =>
  keys.length > 0 && [
    h("h2")("Demo data"),
    h("p")("This service runs on its embedded database. Anyone may use these API keys:"),
    h("ul")(keys.map(({ key, organization }) => h("li")(h("code")(key), ` ${organization}`))),
    h("pre")(curl(host, keys[0]?.key ?? ""))
  ]

/**
 * Serves `/`: the APIs of the process, the demo's keys, and where to look next.
 *
 * @param operationsUrl the address of the operators' pages, to show to everybody
 */
export const landing = (served: Served, operationsUrl?: string) =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const keys = yield* DemoKeys
      const shown = Record.values(Record.filter(apis, (_, name) => served[name]))
      const cards = h("ul", { class: "cards" })(
        shown.map(({ about, name, path }) =>
          card(
            name,
            about,
            ["Documentation", `${path}/docs`],
            ["OpenAPI 3.1", `${path}/openapi.json`],
            ["OpenAPI 3.0", `${path}/openapi-3.0.json`]
          )
        ),
        operationsUrl !== undefined && card("Operations", "Requests and deletions.", ["Open", operationsUrl]),
        card("Health", "For probes.", ["Health", "/api/v1/health"], ["Readiness", "/api/v1/health/ready"])
      )
      const page = (host: string) =>
        document(
          "Practice Data",
          style,
          h("main")(
            h("h1")("Practice Data"),
            h("p")("The data of a veterinary wellness-plan business, for its partners."),
            cards,
            demoSection(keys, host),
            h("p")("The guides are in the package. ", h("code")("README.md"), " names them.")
          )
        )
      yield* router.add("GET", "/", ({ headers }) =>
        Effect.succeed(secured(HttpServerResponse.html(page(headers["host"] ?? "127.0.0.1:3000"))))
      )
    })
  )

/** The paths below each API that no operation has. */
export const documentPaths: ReadonlyArray<string> = ["/openapi.json", "/openapi-3.0.json", "/docs"]

const inlineScripts = (page: string) =>
  Array.from(page.matchAll(/<script>(.*?)<\/script>/gs), ([, source = ""]) => {
    return `'sha256-${hash("sha256", source, "base64")}'`
  }).join(" ")

/** Protects the page of Scalar, which runs no script but its own. Its response is the same object each time. */
const protect = Function.memoize((response: HttpServerResponse.HttpServerResponse) => {
  const { body } = response
  const page = body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : ""
  return serveDocument(secured(response, inlineScripts(page)))
})

const protectedPage = HttpRouter.middleware((handled) => Effect.flatMap(handled, protect)).layer

/** The configuration of Scalar: nothing is loaded from elsewhere, and fields are in the contract's order. */
const scalar = (key: string | undefined, scheme: string | undefined) => ({
  withDefaultFonts: false,
  orderSchemaPropertiesBy: "preserve",
  telemetry: false,
  showDeveloperTools: "never",
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
  ...(scheme !== undefined && {
    authentication: { preferredSecurityScheme: scheme, securitySchemes: { [scheme]: { token: key ?? "" } } }
  })
})

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8")

/** Serves a document, which is made at the first request. */
const serve = (path: `/${string}`, make: () => object) =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const response = yield* Effect.cached(Effect.sync(() => serveDocument(HttpServerResponse.jsonUnsafe(make()))))
      yield* router.add("GET", path, Effect.flatten(response))
    })
  )

/**
 * Serves the OpenAPI documents of an API, and its documentation, where requests can be sent. The documentation begins with
 * a quick start in Markdown, with the first demo key.
 *
 * @param scheme the security scheme of its requests
 */
export const documentation = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
  start: `quick-start-${string}.md`,
  scheme?: string
) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const [demo] = yield* DemoKeys
      const { key, organization } = demo ?? { key: "<your API key>", organization: "org_1" }
      const quickStart = read(start).replaceAll("{key}", key).replaceAll("{organization}", organization)
      const introduction = Option.getOrElse(Context.getOption(api.annotations, OpenApi.Description), () => "")
      const page = HttpApiScalar.layer(
        api.annotate(OpenApi.Description, `${quickStart}\n\n## Introduction\n\n${introduction}`),
        { scalar: scalar(demo?.key, scheme) }
      )
      return Layer.mergeAll(
        Layer.provide(page, protectedPage),
        serve("/openapi.json", () => OpenApi.fromApi(api)),
        serve("/openapi-3.0.json", () => downgrade(OpenApi.fromApi(api)))
      )
    })
  )
