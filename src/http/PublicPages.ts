/** The pages at `/` and `/docs`, without a key: where everything is, and the documentation of each API. */
import { readFileSync } from "node:fs"
import { Array, Context, Effect, Record, Schema } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { type HttpApi, type HttpApiGroup, OpenApi } from "effect/http-api"
import { errorHeader } from "../api/Errors.ts"
import { Document, type JsonSchema, lastOf, type Operation } from "../api/openapi/Parsed.ts"
import { baseStyle, cacheable, type Content, document, h, Html, inline, markdown, secured } from "./Html.ts"

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

/** A page with a style, and the address of its script. */
const page = (title: string, style: string, script: string | undefined, ...body: ReadonlyArray<Content>) => {
  const head = [
    Html.markup(`<style>${baseStyle}\n${style}</style>`),
    script !== undefined && h("script", { src: script, defer: true })()
  ]
  return cacheable(secured(HttpServerResponse.html(document(title, head, ...body)), "inline"))
}

/** A page of Markdown, with the script beside a documentation. */
const textPage = (title: string, text: string, script?: string) =>
  page(
    title,
    "body { max-width: 46rem; margin: 0 auto; padding: 1.5rem }",
    script,
    h("main", { id: "main" })(markdown(text))
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
      return router.add("GET", "/", textPage("Practice Data", landingText(shown, demo), script))
    })
  )

const style = `.skip { position: absolute; left: -99rem } .skip:focus { left: 1rem; top: 1rem }
header, main, nav { padding: 0 1.25rem; min-width: 0 } nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem } header p { display: flex; flex-wrap: wrap; gap: 0 1rem; align-items: center }
[hidden] { display: none !important } html { scroll-padding-top: 6rem } header { position: sticky; top: 0; z-index: 1; background: var(--ground) } header p { max-width: none } header input { width: 14rem }
main { max-width: 60rem; overflow-wrap: anywhere }
section { margin-top: 3rem } article { margin-top: 2rem; border-top: 1px solid var(--line) }
dt { margin-top: .4rem; font: var(--mono) } i { font: 15px system-ui, sans-serif } dd { margin: 0 0 0 1rem; color: var(--muted) } small { color: var(--muted) }
td, th { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0 }
.code { display: block; font: var(--mono); white-space: pre-wrap }
label { display: block; margin: .5rem 0 }
input, textarea { display: block; width: 100% } input, textarea, button { font: inherit; padding: .3rem .6rem }
@media (min-width: 60rem) {
  body { display: grid; grid-template-columns: 17rem 1fr; align-items: start } header { grid-column: 1 / 3 }
  nav { grid-row: 2; position: sticky; top: 4rem; max-height: calc(100vh - 4rem); overflow: auto; flex-flow: column }
}`

const literal = (value: unknown) => h("code")(JSON.stringify(value))

/** The type of a value. Types with a name are links. */
const typeOf = (schema: JsonSchema): Content => {
  if (schema.$ref !== undefined) return h("a", { href: `#${lastOf(schema.$ref)}` })(lastOf(schema.$ref))
  if (schema.const !== undefined) return literal(schema.const)
  if (schema.enum !== undefined) return Array.intersperse(schema.enum.map(literal), " or ")
  if (schema.anyOf !== undefined) return Array.intersperse(schema.anyOf.map(typeOf), " or ")
  if (schema.format !== undefined) return schema.format
  if (schema.type === "array") return ["list of ", typeOf(schema.items ?? {})]
  return [schema.type ?? "any"].flat().join(" or ")
}

const limitsOf = ({ default: preset, maximum = Infinity, minimum }: JsonSchema) => [
  ...(minimum !== undefined && maximum < 2 ** 31 - 1 ? [` From ${minimum} to ${maximum}.`] : []),
  ...(preset === undefined ? [] : [` ${JSON.stringify(preset)} by default.`])
]

const field = (name: string, type: Content, about: string): Content => [
  h("dt")(name, " ", h("i")(type)),
  h("dd")(inline(about))
]

type Types = Document["components"]["schemas"]

/** A schema itself, or the one that it refers to. */
const resolved = (schema: JsonSchema = {}, types: Types): JsonSchema =>
  schema.$ref === undefined ? schema : (types[lastOf(schema.$ref)] ?? {})

/** The fields of an object, with those of the objects inside of it. Fields of a response are always present. */
const fieldsOf = (schema: JsonSchema, types: Types, isRequest: boolean, prefix = ""): ReadonlyArray<Content> =>
  Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const isRequired = isRequest && schema.required?.includes(name) === true
    const inner = resolved(property.type === "array" ? property.items : property, types)
    const path = `${prefix}${name}${property.type === "array" && inner.properties ? "[]" : ""}`
    const about = `${property.description ?? ""}${limitsOf(property).join("")}`
    const own = field(path, [typeOf(property), isRequired && ", required"], about)
    return [own, ...fieldsOf(inner, types, isRequest, `${path}.`)]
  })

const fieldList = (title: string, fields: ReadonlyArray<Content>): Content =>
  fields.length > 0 && [h("h4")(title), h("dl")(fields)]

const provisional = (isProvisional = false) => isProvisional && h("small")(" provisional")

const section = (id: string, title: string, ...content: ReadonlyArray<Content>) =>
  h("section", { id })(h("h2")(title), content)

/** A request with curl. Its variables are those of the quick start. */
const curlExample = (method: string, path: string, operation: Operation, body: unknown): string => {
  const lines = [
    `curl -s "$PRACTICE_DATA_URL${path}"`,
    ...(operation.security.length > 0 ? ['-H "Authorization: Bearer $PRACTICE_DATA_API_KEY"'] : []),
    ...operation.parameters.flatMap(({ examples, name }) =>
      examples ? [`-H '${name}: ${String(examples.demo.value)}'`] : []
    ),
    ...(method === "POST" ? ["-H 'Content-Type: application/json'", `-d '${JSON.stringify(body)}'`] : [])
  ]
  return lines.join(" \\\n  ")
}

type Response = Operation["responses"][string]

const schemaOf = ({ content }: Response) => content?.["application/json"].schema ?? {}

const typeNameOf = (response: Response) => lastOf(schemaOf(response).$ref ?? "")

/** The names of the errors of a response, and the type of another body. */
const resultOf = (response: Response): Content => {
  const schema = schemaOf(response)
  const error = response.headers[errorHeader]
  if (error === undefined || !("schema" in error)) return typeOf(schema)
  const isPlain = schema.$ref?.endsWith("/ErrorDetail") === true
  return [error.schema.enum?.join(" or "), !isPlain && [", ", typeOf(schema)]]
}

const isError = (status: string) => Number(status) >= 400

/** The errors that most operations describe alike, by status, and the response that shows the fields of each type. */
const sharedOf = ({ paths }: Document) => {
  const operations = Object.values(paths).flatMap((item) => Object.values(item))
  const responses = operations.flatMap((operation) => Object.entries(operation.responses))
  const errors = responses.filter(([status]) => isError(status))
  const alike = Object.values(Array.groupBy(errors, ([status, { description }]) => `${status} ${description}`))
  const common = alike.filter(({ length }) => length > operations.length / 2)
  const results = responses.filter(([status]) => !isError(status))
  return {
    errors: Object.fromEntries(common.map(([[status, { description }]]) => [status, description])),
    shownAt: Object.fromEntries(results.map(([, response]) => [typeNameOf(response), response]))
  }
}

interface Shared extends ReturnType<typeof sharedOf>, Document {}

/** The responses of an operation: an example and the fields of those that succeed, then errors. */
const responsesOf = ({ components: { schemas }, errors, shownAt }: Shared, operation: Operation): Content => {
  const responses = Object.entries(operation.responses)
  const common = responses.filter(([status, { description }]) => errors[status] === description)
  const line = ([status, response]: readonly [string, Response]) => [h("code")(status), " ", resultOf(response)]
  return [
    Array.difference(responses, common).map(([status, response]) => {
      const name = typeNameOf(response)
      const id = shownAt[name] === response && name
      return [
        h("p")(line([status, response]), ": ", inline(response.description)),
        !isError(status) && [
          h("pre")(JSON.stringify(response.content?.["application/json"].example, null, 2)),
          h("dl", { id })(fieldsOf(resolved(schemaOf(response), schemas), schemas, false))
        ]
      ]
    }),
    h("p")(h("a", { href: "#errors" })("Errors of most endpoints"), ": ", Array.intersperse(common.map(line), "; "))
  ]
}

const operationArticle = (api: Shared, method: string, path: string, operation: Operation): Html => {
  const { description = "", operationId, parameters, requestBody, summary = operationId } = operation
  const { schemas } = api.components
  const [{ url }] = api.servers
  const body = requestBody?.content["application/json"]
  const example = body?.examples?.demo.value
  const headers = parameters.map(({ description: about = "", name, required = false, schema }) =>
    field(name, [typeOf(schema), required && ", required"], about)
  )
  return h("article", { id: operationId })(
    h("h3")(summary, provisional(operation["x-provisional"])),
    h("p")(h("code")(`${method} ${url}${path}`)),
    markdown(description),
    h("pre", { "data-request": true })(curlExample(method, `${url}${path}`, operation, example)),
    fieldList("Request headers", headers),
    fieldList("Request", fieldsOf(resolved(body?.schema, schemas), schemas, true)),
    h("h4")("Responses"),
    responsesOf(api, operation)
  )
}

const typeArticle = (schema: JsonSchema, name: string): Html =>
  h("article", { id: name })(
    h("h3")(name, provisional(schema["x-provisional"])),
    schema.description !== undefined && h("p")(inline(schema.description)),
    h("dl")(fieldsOf(schema, {}, false))
  )

/** The documentation of an API, with Markdown at its start, and a key for its requests. */
const documentationPage = (parsed: Document, start: string, key: string | undefined) => {
  const api = { ...parsed, ...sharedOf(parsed) }
  const { components, errors, info, paths, servers, shownAt, tags } = api
  const [{ url }] = servers
  const articlesOf = (tag: string) =>
    Object.entries(paths).flatMap(([path, operations]) =>
      (["get", "post"] as const).map((method) => {
        const operation = operations[method]
        return operation?.tags.includes(tag) === true && operationArticle(api, method.toUpperCase(), path, operation)
      })
    )
  const headers = Object.entries(components.headers).map(([name, { description }]) => field(name, "", description))
  const sections = ["quick-start", "introduction", ...tags.map(({ name }) => name), "errors", "types", "headers"]
  return page(
    info.title,
    style,
    `${url}/docs/page.js`,
    h("a", { class: "skip", href: "#main" })("Skip to the content"),
    h("header")(
      h("p")(
        h("a", { href: "/" })("Practice Data"),
        h("a", { href: `${url}/openapi.json` })("OpenAPI document"),
        h("a", { href: "#contents" })("Contents")
      )
    ),
    h("main", { id: "main", "data-key": key })(
      h("h1")(`${info.title} ${info.version}`),
      markdown(start),
      section("introduction", "Introduction", markdown(info.description)),
      tags.map(({ description = "", name }) => section(name, name, h("p")(inline(description)), articlesOf(name))),
      section(
        "errors",
        "Errors of most endpoints",
        Object.entries(errors).map(([status, about]) => h("p")(h("code")(status), ": ", inline(about)))
      ),
      section(
        "types",
        "Types",
        Object.entries(components.schemas).map(([name, schema]) => !(name in shownAt) && typeArticle(schema, name))
      ),
      section("headers", "Headers of responses", h("dl")(headers))
    ),
    h("nav", { id: "contents", "aria-label": "Contents" })(
      sections.map((name) => h("a", { href: `#${name}` })(name.replaceAll("-", " ")))
    )
  )
}

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8")

/** The paths below each API that no operation has. */
export const documentPaths: ReadonlyArray<string> = ["/openapi.json", "/docs", "/docs/page.js"]

/**
 * Serves the OpenAPI document of an API, and its documentation, where requests can be sent, with a quick start and the
 * first demo key.
 */
export const documentation = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
  start: `quick-start-${string}.md`
) =>
  HttpRouter.use((router) =>
    Effect.gen(function* () {
      const [demo] = yield* DemoKeys
      const { key, organization } = demo ?? { key: "<your API key>", organization: "org_1" }
      const quickStart = read(start).replaceAll("{key}", key).replaceAll("{organization}", organization)
      const openApi = yield* Effect.cached(
        Effect.sync(() => cacheable(HttpServerResponse.jsonUnsafe(OpenApi.fromApi(api))))
      )
      yield* router.add("GET", "/openapi.json", Effect.flatten(openApi))
      const docs = yield* Effect.cached(
        Effect.map(Effect.orDie(Schema.decodeUnknownEffect(Document)(OpenApi.fromApi(api))), (parsed) =>
          documentationPage(parsed, quickStart, demo?.key)
        )
      )
      yield* router.add("GET", "/docs", Effect.flatten(docs))
      const script = HttpServerResponse.text(read("docs.js"), { contentType: "text/javascript; charset=utf-8" })
      yield* router.add("GET", "/docs/page.js", cacheable(secured(script, "inline")))
    })
  )
