/** The documentation of an API as a page, made of its OpenAPI document. */
import { Array, Record } from "effect"
import { bodyOf, type Document, type JsonSchema, lastOf, type Operation } from "../api/openapi/Parsed.ts"
import { baseStyle, type Content, document as page, h, Html, inline, markdown } from "./Html.ts"

const style = `${baseStyle}
.skip { position: absolute; left: -99rem } .skip:focus { left: 1rem; top: 1rem }
header, main, nav { padding: 0 1.25rem; min-width: 0 } nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem } header p { display: flex; flex-wrap: wrap; gap: 0 1rem }
main { max-width: 60rem; overflow-wrap: anywhere }
section { margin-top: 3rem } article { margin-top: 2rem; border-top: 1px solid var(--line) }
dt { margin-top: .4rem; font: var(--mono) } i { font: 15px system-ui, sans-serif } dd { margin: 0 0 0 1rem; color: var(--muted) } small { color: var(--muted) }
td, th { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0 }
.code { display: block; font: var(--mono); white-space: pre-wrap }
.bar { display: flex; gap: .5rem } label { display: block; margin: .5rem 0 }
input, textarea { display: block; width: 100% } input, textarea, button { font: inherit; padding: .3rem .6rem }
@media (min-width: 60rem) {
  body { display: grid; grid-template-columns: 17rem 1fr; align-items: start } header { grid-column: 1 / 3 }
  nav { grid-row: 2; position: sticky; top: 0; max-height: 100vh; overflow: auto; flex-flow: column }
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

/** The fields of an object, with those of the objects inside of it. Fields of a response are always present. */
const fieldsOf = (schema: JsonSchema, isRequest: boolean, prefix = ""): ReadonlyArray<Content> =>
  Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const isRequired = isRequest && schema.required?.includes(name) === true
    const inner = property.type === "array" ? property.items : property
    const path = `${prefix}${name}${property.type === "array" && inner?.properties ? "[]" : ""}`
    const about = `${property.description ?? ""}${limitsOf(property).join("")}`
    const own = field(path, [typeOf(property), isRequired && ", required"], about)
    return [own, ...fieldsOf(inner ?? {}, isRequest, `${path}.`)]
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

const operationArticle = (document: Document, method: "GET" | "POST", path: string, operation: Operation): Html => {
  const { description = "", operationId, parameters, responses, summary = operationId } = operation
  const [{ url }] = document.servers
  const body = bodyOf(document, operation)?.content["application/json"]
  const example = body?.examples?.demo.value
  const request = body?.schema.$ref === undefined ? body?.schema : document.components.schemas[lastOf(body.schema.$ref)]
  const headers = parameters.map(({ description: about = "", name, required = false, schema }) =>
    field(name, [typeOf(schema), required && ", required"], about)
  )
  return h("article", { id: operationId })(
    h("h3")(summary, provisional(operation["x-provisional"])),
    h("p")(h("code")(`${method} ${url}${path}`)),
    markdown(description),
    h("pre", { "data-request": true })(curlExample(method, `${url}${path}`, operation, example)),
    fieldList("Request headers", headers),
    fieldList("Request", fieldsOf(request ?? {}, true)),
    h("h4")("Responses"),
    Object.entries(responses).map(([status, { content, description: about }]) =>
      h("p")(h("code")(status), " ", typeOf(content?.["application/json"].schema ?? {}), ": ", inline(about))
    )
  )
}

const typeArticle = (schema: JsonSchema, name: string): Html =>
  h("article", { id: name })(
    h("h3")(name, provisional(schema["x-provisional"])),
    schema.description !== undefined && h("p")(inline(schema.description)),
    h("dl")(fieldsOf(schema, false))
  )

/** The page of a document: with markdown at its start, the address of the script that sends requests, and a key. */
export const render = (document: Document, start: string, script: string, key: string | undefined): string => {
  const { components, info, paths, servers, tags } = document
  const endpoints = Object.entries(paths).flatMap(([path, { get, post }]) => [
    ...(get ? [{ method: "GET", path, operation: get } as const] : []),
    ...(post ? [{ method: "POST", path, operation: post } as const] : [])
  ])
  const articlesOf = (tag: string) =>
    endpoints
      .filter(({ operation }) => operation.tags.includes(tag))
      .map(({ method, operation, path }) => operationArticle(document, method, path, operation))
  const headers = Object.entries(components.headers).map(([name, { description }]) => field(name, "", description))
  const sections = ["quick-start", "introduction", ...tags.map(({ name }) => name), "types", "headers"]
  return page(
    info.title,
    [Html.markup(`<style>${style}</style>`), h("script", { src: script, defer: true })()],
    h("a", { class: "skip", href: "#main" })("Skip to the content"),
    h("header")(
      h("p")(
        h("a", { href: "/" })("Practice Data"),
        h("a", { href: `${servers[0].url}/openapi.json` })("OpenAPI document"),
        h("a", { href: "#contents" })("Contents")
      )
    ),
    h("main", { id: "main", "data-key": key })(
      h("h1")(`${info.title} ${info.version}`),
      markdown(start),
      section("introduction", "Introduction", markdown(info.description)),
      tags.map(({ description = "", name }) => section(name, name, h("p")(inline(description)), articlesOf(name))),
      section("types", "Types", Object.values(Record.map(components.schemas, typeArticle))),
      section("headers", "Headers of responses", h("dl")(headers))
    ),
    h("nav", { id: "contents", "aria-label": "Contents" })(
      sections.map((name) => h("a", { href: `#${name}` })(name.replaceAll("-", " ")))
    )
  )
}
