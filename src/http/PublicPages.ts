/** The pages at `/` and `/docs`, without a key: where everything is, and the documentation of each API. */
import { hash } from "node:crypto"
import { readFileSync } from "node:fs"
import { Context, Effect, Record, Schema } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { type HttpApi, type HttpApiGroup, OpenApi } from "effect/http-api"
import { Document } from "../api/openapi/Parsed.ts"
import * as Documentation from "./Documentation.ts"
import { markdown } from "./Markdown.ts"
import { baseStyle, cacheable, type Content, document, h, Html, secured } from "./Html.ts"

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

export type Served = Readonly<Record<keyof typeof apis, boolean>>

const health = { health: "/api/v1/health", ready: "/api/v1/health/ready" }

const style = `${baseStyle}
body { max-width: 46rem; margin: 0 auto; padding: 1.5rem }
.links { display: flex; gap: 1.25rem }`

const respond = (html: string) => cacheable(secured(HttpServerResponse.html(html), "inline"))

const page = (title: string, ...content: ReadonlyArray<Content>) =>
  respond(document(title, Html.markup(`<style>${style}</style>`), h("main")(content)))

const section = (title: string, ...content: ReadonlyArray<Content>) => h("section")(h("h2")(title), content)

const links = (all: Readonly<Record<string, string>>) =>
  h("p", { class: "links" })(Object.entries(all).map(([text, href]) => h("a", { href })(text)))

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
  page(
    "Practice Data",
    h("h1")("Practice Data"),
    h("p")("The data of a veterinary wellness-plan business, for its partners."),
    shown.map(({ about, documentation: path, name, openapi }) =>
      section(name, h("p")(about), links({ Documentation: path, "OpenAPI document": openapi }))
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
          ? landingPage(shown, demo, hostOf(headers))
          : Effect.succeed(json)
        ).pipe(Effect.map(HttpServerResponse.setHeader("vary", "accept")))
      )
    })
  )

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8")

const script = read("docs.js")

/** The path of the script beside each page of documentation. It changes with the script, and may be kept forever. */
const scriptPath = `/docs/${hash("sha256", script, "hex").slice(0, 16)}.js` as const

const guidePath = "/docs/connectors"

const fileOf = (contentType: string, text: string) => HttpServerResponse.text(text, { contentType })

const connectors = ["practice_data.py", "dlt_source.py", "airbyte.yaml"] as const

/** The paths below each API that no operation has. */
export const documentPaths: ReadonlyArray<string> = [
  "/openapi.json",
  "/docs",
  scriptPath,
  guidePath,
  ...connectors.map((name) => `/docs/${name}`)
]

const scriptResponse = HttpServerResponse.setHeaders(fileOf("text/javascript; charset=utf-8", script), {
  "cache-control": "public, max-age=31536000, immutable",
  "x-content-type-options": "nosniff"
})

/** Serves the documentation of an API, where requests can be sent, with a quick start and the first demo key. */
export const documentation = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
  start: `quick-start-${string}.md`
) =>
  HttpRouter.use((router) =>
    Effect.gen(function* () {
      const [demo] = yield* DemoKeys
      const { key, organization } = demo ?? { key: "<your API key>", organization: "org_1" }
      const quickStart = read(start).replaceAll("{key}", key).replaceAll("{organization}", organization)
      const docs = yield* Effect.cached(
        Effect.map(Effect.orDie(Schema.decodeUnknownEffect(Document)(OpenApi.fromApi(api))), (decoded) => {
          const path = `${decoded.servers[0].url}${scriptPath}`
          return respond(Documentation.render(decoded, quickStart, path, demo?.key))
        })
      )
      yield* router.add("GET", "/docs", Effect.flatten(docs))
      yield* router.add("GET", scriptPath, Effect.succeed(scriptResponse))
      yield* router.add("GET", guidePath, page("Connectors", markdown(read("../connectors/README.md"))))
      for (const name of connectors) {
        const text = read(`../connectors/${name}`)
        yield* router.add("GET", `/docs/${name}`, cacheable(fileOf("text/plain; charset=utf-8", text)))
      }
    })
  )
