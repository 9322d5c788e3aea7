/** The documentation of an API as a page, made of its OpenAPI document. */
import { Array, Record } from "effect"
import { bodyOf, type Document, type JsonSchema, lastOf, type Operation } from "../api/openapi/Parsed.ts"
import { baseStyle, type Content, document as page, h, Html } from "./Html.ts"
import { inline, markdown } from "./Markdown.ts"
import { clientExample, curlExample } from "./Examples.ts"

const style = `${baseStyle}
.skip { position: absolute; left: -99rem } .skip:focus { left: 1rem; top: 1rem }
header, main, nav { padding: 0 1.25rem; min-width: 0 } nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem } header a { margin-right: 1rem; white-space: nowrap }
main { max-width: 60rem } main a { overflow-wrap: anywhere }
section { margin-top: 3rem } article { margin-top: 2rem; border-top: 1px solid var(--line) }
dt { margin-top: .4rem; font: var(--mono) } i { font: 15px system-ui, sans-serif } dd { margin: 0 0 0 1rem; color: var(--muted) } small { color: var(--muted) }
td, th { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; overflow-wrap: anywhere }
.code { display: block; font: var(--mono); white-space: pre-wrap; overflow-wrap: anywhere }
.bar { display: flex; gap: .5rem } label { display: block; margin: .5rem 0 }
input, textarea { display: block; width: 100% } input, textarea, button { font: inherit; padding: .3rem .6rem }
@media (min-width: 60rem) {
  body { display: grid; grid-template-columns: 17rem 1fr; align-items: start } header { grid-column: 1 / 3 }
  nav { grid-row: 2; position: sticky; top: 0; max-height: 100vh; overflow: auto; flex-flow: column }
}`

const literal = (value: unknown) => h("code")(JSON.stringify(value))

/** True for an object of constants and references, which has no description of its own. */
const isPair = ({ properties = {} }: JsonSchema) =>
  Object.keys(properties).length > 0 &&
  Object.values(properties).every((member) => (member.const ?? member.enum ?? member.$ref) !== undefined)

/** A schema with such objects in the place of references to them. */
const expanded = (schemas: Readonly<Record<string, JsonSchema>>, schema: JsonSchema): JsonSchema => {
  const { $ref, anyOf, items, properties } = schema
  const found = $ref === undefined ? undefined : schemas[lastOf($ref)]
  if (found !== undefined && isPair(found)) return found
  return {
    ...schema,
    ...(anyOf && { anyOf: anyOf.map((member) => expanded(schemas, member)) }),
    ...(items && { items: expanded(schemas, items) }),
    ...(properties && { properties: Record.map(properties, (member) => expanded(schemas, member)) })
  }
}

/** The type of a value. Types with a name are links. */
const typeOf = (schema: JsonSchema): Content => {
  if (schema.$ref !== undefined) return h("a", { href: `#${lastOf(schema.$ref)}` })(lastOf(schema.$ref))
  if (schema.const !== undefined) return literal(schema.const)
  if (schema.enum !== undefined) return Array.intersperse(schema.enum.map(literal), " or ")
  if (schema.anyOf !== undefined) return Array.intersperse(schema.anyOf.map(typeOf), " or ")
  if (schema.format !== undefined) return schema.format
  if (isPair(schema)) {
    const members = Object.entries(schema.properties ?? {}).map(([name, member]) => [`${name}: `, typeOf(member)])
    return ["{ ", Array.intersperse(members, ", "), " }"]
  }
  if (schema.type === "array") return ["list of ", typeOf(schema.items ?? {})]
  return [schema.type ?? "any"].flat().join(" or ")
}

const limitsOf = ({ default: preset, maximum = Infinity, minimum }: JsonSchema) => [
  ...(minimum !== undefined && maximum < 2 ** 31 - 1 ? [` From ${minimum} to ${maximum}.`] : []),
  ...(preset === undefined ? [] : [` ${JSON.stringify(preset)} by default.`])
]

interface Field {
  readonly name: string
  readonly html: ReadonlyArray<Html>
}

const fieldOf = (name: string, type: Content, isRequired: boolean, about: string): Field => ({
  name,
  html: [h("dt")(name, " ", h("i")(type, isRequired && ", required")), h("dd")(inline(about))]
})

/** Equal for equal fields. */
const keyOf = ({ html }: Field) => html.map(({ text }) => text).join("")

/** The fields of an object, with those of the objects inside of it. */
const fieldsOf = (schema: JsonSchema, isRequest: boolean, prefix = ""): ReadonlyArray<Field> =>
  Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const isRequired = isRequest && schema.required?.includes(name) === true
    const inner = property.type === "array" ? property.items : property
    const path = `${prefix}${name}${property.type === "array" && inner?.properties ? "[]" : ""}`
    const about = `${property.description ?? ""}${limitsOf(property).join("")}`
    return [fieldOf(path, typeOf(property), isRequired, about), ...fieldsOf(inner ?? {}, isRequest, `${path}.`)]
  })

const htmlOf = (fields: ReadonlyArray<Field>) => fields.length > 0 && h("dl")(fields.map(({ html }) => html))

const isSuccess = (status: string) => status.startsWith("2")

const referencesOf = ({ $ref, anyOf = [], items, properties = {} }: JsonSchema): ReadonlyArray<string> => [
  ...($ref === undefined ? [] : [lastOf($ref)]),
  ...[...anyOf, ...(items ? [items] : []), ...Object.values(properties)].flatMap(referencesOf)
]

const provisional = (isProvisional = false) => isProvisional && h("small")(" provisional")

const section = (id: string, title: string, ...content: ReadonlyArray<Content>) =>
  h("section", { id })(h("h2")(title), content)

/** Fields of more operations than these are described once. */
const fewOperations = 3

/** The operations of a document, with their schemas and fields. */
const endpointsOf = (document: Document, schemas: Readonly<Record<string, JsonSchema>>) => {
  const resolve = (schema: JsonSchema = {}) =>
    schema.$ref === undefined ? schema : (schemas[lastOf(schema.$ref)] ?? schema)
  const endpointOf = (method: string, path: string, operation: Operation) => {
    const body = bodyOf(document, operation)?.content["application/json"]
    const [success] = Object.entries(operation.responses).filter(([status]) => isSuccess(status))
    const returned = success?.[1].content?.["application/json"].schema ?? {}
    return {
      method,
      path: `${document.servers[0].url}${path}`,
      operation,
      example: body?.examples?.demo.value,
      returned,
      request: fieldsOf(resolve(body?.schema), true),
      response: fieldsOf(resolve(returned), false),
      /** The names of the types in the response. */
      types: referencesOf(resolve(returned))
    }
  }
  return Object.entries(document.paths).flatMap(([path, { get, post }]) => [
    ...(get ? [endpointOf("GET", path, get)] : []),
    ...(post ? [endpointOf("POST", path, post)] : [])
  ])
}

type Endpoint = ReturnType<typeof endpointsOf>[number]

/** The errors of all operations by their status, each once. */
const errorsOf = (endpoints: ReadonlyArray<Endpoint>) => {
  const errors = endpoints.flatMap(({ operation }) =>
    Object.entries(operation.responses).flatMap(([status, { description }]) =>
      isSuccess(status) ? [] : [`**${status}** ${description}`]
    )
  )
  return h("ul")(
    Array.dedupe(errors)
      .toSorted()
      .map((text) => h("li")(inline(text)))
  )
}

/** The page of a document: with markdown at its start, the address of the script that sends requests, and a key. */
export const render = (document: Document, start: string, script: string, key: string | undefined): string => {
  const { components, info, servers, tags } = document
  const schemas = Record.map(components.schemas, (schema) => expanded(components.schemas, schema))
  const endpoints = endpointsOf(document, schemas)
  // Types that others refer to stand by themselves.
  const shared = Object.values(schemas).flatMap(referencesOf)
  const all = endpoints.flatMap(({ request, response }) => [...request, ...response])
  const many = Record.filter(Array.groupBy(all, keyOf), ({ length }) => length > fewOperations)

  /** Fields under a title, those that many operations have by their names. */
  const fieldList = (title: string, fields: ReadonlyArray<Field>): Content => {
    const isCommon = (field: Field) => keyOf(field) in many
    const own = fields.filter((field) => !isCommon(field))
    const common = fields.filter(isCommon).map(({ name }) => name)
    return (
      fields.length > 0 && [
        h("h4")(title),
        htmlOf(own),
        common.length > 0 && h("p")(`Common fields: ${common.join(", ")}`)
      ]
    )
  }

  /** The description and the statuses of an operation, or a link to the first operation that has the same. */
  const aboutOf = ({ description = "", operationId, responses }: Operation): Content => {
    const first = endpoints.find(({ operation }) => operation.description === description)?.operation
    const { operationId: id = operationId, summary = id } = first ?? {}
    if (id !== operationId) {
      return h("p")("Description and statuses: ", h("a", { href: `#${id}` })(summary), ".")
    }
    const errors = Object.keys(responses).filter((status) => !isSuccess(status))
    return [
      markdown(description),
      Object.entries(responses).flatMap(([status, response]) =>
        isSuccess(status) ? [h("p")(h("code")(status), " ", inline(response.description))] : []
      ),
      h("p")(h("a", { href: "#errors" })("Errors"), `: ${errors.join(", ")}`)
    ]
  }

  const articleOf = ({ example, method, operation, path, request, response, returned }: Endpoint): Html => {
    const { operationId, parameters, summary = operationId } = operation
    const client = clientExample(operation, example)
    const headers = parameters.map(({ description = "", name, required = false, schema }) =>
      fieldOf(name, typeOf(schema), required, description)
    )
    const isShared = returned.$ref !== undefined && shared.includes(lastOf(returned.$ref))
    return h("article", { id: operationId })(
      h("h3")(summary, provisional(operation["x-provisional"])),
      h("p")(h("code")(`${method} ${path}`)),
      aboutOf(operation),
      h("pre", { "data-request": true })(curlExample(method, path, operation, example)),
      client !== undefined && h("pre")(client),
      fieldList("Request headers", headers),
      fieldList("Request", request),
      isShared ? [h("h4")("Response"), h("p")(typeOf(returned))] : fieldList("Response", response)
    )
  }

  const typeArticle = (name: string): Html => {
    const schema = schemas[name] ?? {}
    return h("article", { id: name })(
      h("h3")(name, provisional(schema["x-provisional"])),
      schema.description !== undefined && h("p")(inline(schema.description)),
      htmlOf(fieldsOf(schema, false))
    )
  }

  const tagged = (tag: string) => endpoints.filter(({ operation }) => operation.tags.includes(tag))
  /** A tag with its operations, and the types that no later tag has. */
  const tagSection = ({ description = "", name }: Document["tags"][number], index: number): Html => {
    const others = tags.slice(index + 1).flatMap((later) => tagged(later.name).flatMap(({ types }) => types))
    const types = tagged(name).flatMap((endpoint) => endpoint.types)
    const own = Array.dedupe(types).filter((type) => !others.includes(type))
    return section(name, name, h("p")(inline(description)), tagged(name).map(articleOf), own.map(typeArticle))
  }

  const listSection = (id: string, title: string, fields: ReadonlyArray<Field>): Content =>
    fields.length > 0 && section(id, title, htmlOf(fields))
  const common = Object.values(many).map(([field]) => field)
  const headers = Object.entries(components.headers).map(([name, about]) => fieldOf(name, "", false, about.description))
  const errorTypes = ["ErrorDetail", "HTTPValidationError", "ValidationError"].map(typeArticle)
  const sections = [
    "quick-start",
    "introduction",
    ...tags.map(({ name }) => name),
    "common-fields",
    "errors",
    "headers"
  ]
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
      tags.map(tagSection),
      listSection("common-fields", "Common fields", common),
      section("errors", "Errors", errorsOf(endpoints), errorTypes),
      listSection("headers", "Headers of responses", headers)
    ),
    h("nav", { id: "contents", "aria-label": "Contents" })(
      sections.map((name) => h("a", { href: `#${name}` })(name.replaceAll("-", " ")))
    )
  )
}
