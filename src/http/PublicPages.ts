/** The pages at `/` and `/docs`, without a key: where everything is, and the documentation of each API. */
import { readFileSync } from "node:fs"
import { Context, Effect, Record, Schema } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { type HttpApi, type HttpApiGroup, OpenApi } from "effect/http-api"
import { Document } from "../api/openapi/Parsed.ts"
import * as Documentation from "./Documentation.ts"
import { baseStyle, cacheable, document, h, Html, markdown, secured } from "./Html.ts"

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
    path: "/api/v3"
  },
  intake: {
    name: "Invoice deletion intake",
    about: "Accepts webhooks about deleted invoices and invoice lines.",
    path: "/api/v1"
  }
} as const

type Api = (typeof apis)[keyof typeof apis]

export type Served = Readonly<Record<keyof typeof apis, boolean>>

const style = `${baseStyle}
body { max-width: 46rem; margin: 0 auto; padding: 1.5rem }`

const respond = (html: string) => cacheable(secured(HttpServerResponse.html(html), "inline"))

/** A page of Markdown, with the script beside a documentation. */
const page = (title: string, text: string, script?: string) =>
  respond(
    document(
      title,
      [Html.markup(`<style>${style}</style>`), script !== undefined && h("script", { src: script, defer: true })()],
      h("main", { id: "main" })(markdown(text))
    )
  )

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
    ...shown.flatMap(({ about, name, path }) => [
      `## ${name}`,
      `${about} [Documentation](${path}/docs), [OpenAPI document](${path}/openapi.json)`
    ]),
    ...(demo.length > 0 ? demoText(demo) : []),
    "## Health",
    "[Health](/api/v1/health), [readiness](/api/v1/health/ready)"
  ].join("\n\n")

/** Serves `/`. */
export const landing = (served: Served) =>
  HttpRouter.use((router) =>
    Effect.flatMap(DemoKeys, (demo) => {
      const shown = Record.values(Record.filter(apis, (_, name) => served[name]))
      const script = shown[0] && `${shown[0].path}/docs/page.js`
      return router.add("GET", "/", page("Practice Data", landingText(shown, demo), script))
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
      yield* router.add("GET", "/docs/connectors", page("Connectors", read("../connectors/README.md"), "page.js"))
      for (const [name, { source, type }] of Record.toEntries(files)) {
        const text = HttpServerResponse.text(read(source), { contentType: `${type}; charset=utf-8` })
        yield* router.add("GET", `/docs/${name}`, cacheable(secured(text, "inline")))
      }
    })
  )
