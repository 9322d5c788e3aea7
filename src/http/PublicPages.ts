/** The pages at `/` and `/docs`, without a key: where everything is, and the documentation of each API. */
import { readFileSync } from "node:fs"
import { Context, Effect, Record, Schema } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { type HttpApi, type HttpApiGroup, OpenApi } from "effect/http-api"
import { Document } from "../api/openapi/Parsed.ts"
import * as Documentation from "./Documentation.ts"
import { markdown } from "./Markdown.ts"
import { baseStyle, cacheable, document, h, Html, secured } from "./Html.ts"

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
body { max-width: 46rem; margin: 0 auto; padding: 1.5rem }`

const respond = (html: string) => cacheable(secured(HttpServerResponse.html(html), "inline"))

/** A page of markdown, with the script beside a documentation. */
const page = (title: string, text: string, documentation = "") => {
  const script = documentation !== "" && h("script", { src: `${documentation}/page.js`, defer: true })()
  return respond(
    document(title, [Html.markup(`<style>${style}</style>`), script], h("main", { id: "main" })(markdown(text)))
  )
}

const demoText = (demo: ReadonlyArray<DemoKey>) => [
  "## Demo data",
  "This service runs on its embedded database. Anyone may use the API keys below:",
  `    curl -s http://127.0.0.1:3000/api/v3/charges/search -H 'Authorization: Bearer ${demo[0]?.key}' \\
      -H 'Content-Type: application/json' -d '{"limit":2}'`,
  demo.map(({ key, organization }) => `- \`${key}\` ${organization}`).join("\n")
]

const landingText = (shown: ReadonlyArray<Api>, demo: ReadonlyArray<DemoKey>) =>
  [
    "# Practice Data",
    "The data of a veterinary wellness-plan business, for its partners.",
    ...shown.flatMap(({ about, documentation: path, name, openapi }) => [
      `## ${name}`,
      `${about} [Documentation](${path}), [OpenAPI document](${openapi})`
    ]),
    ...(demo.length > 0 ? demoText(demo) : []),
    "## Health",
    `[Health](${health.health}), [readiness](${health.ready})`
  ].join("\n\n")

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
      const html = page("Practice Data", landingText(shown, demo), shown[0]?.documentation)
      yield* router.add("GET", "/", ({ headers }) =>
        Effect.map(
          headers["accept"]?.includes("text/html") === true ? html : Effect.succeed(json),
          HttpServerResponse.setHeader("vary", "accept")
        )
      )
    })
  )

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8")

/** The files beside the documentation, by their names below `/docs`. */
const files = {
  "page.js": { type: "text/javascript", source: "docs.js" },
  "practice_data.py": { type: "text/plain", source: "../connectors/practice_data.py" },
  "dlt_source.py": { type: "text/plain", source: "../connectors/dlt_source.py" },
  "airbyte.yaml": { type: "text/plain", source: "../connectors/airbyte.yaml" }
}

/** The paths below each API that no operation has. */
export const documentPaths: ReadonlyArray<string> = [
  "/openapi.json",
  "/docs",
  "/docs/connectors",
  ...Object.keys(files).map((name) => `/docs/${name}`)
]

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
          const script = `${decoded.servers[0].url}/docs/page.js`
          return respond(Documentation.render(decoded, quickStart, script, demo?.key))
        })
      )
      yield* router.add("GET", "/docs", Effect.flatten(docs))
      yield* router.add("GET", "/docs/connectors", page("Connectors", read("../connectors/README.md"), "."))
      for (const [name, { source, type }] of Record.toEntries(files)) {
        const text = HttpServerResponse.text(read(source), { contentType: `${type}; charset=utf-8` })
        yield* router.add("GET", `/docs/${name}`, cacheable(secured(text, "inline")))
      }
    })
  )
