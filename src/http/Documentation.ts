/** The documentation of an API as a page, made of its OpenAPI document. */
import { Array, Option, Record } from "effect"
import { bodyOf, type Document, type JsonSchema, lastOf, type Operation } from "../api/openapi/Parsed.ts"
import { baseStyle, type Content, document as page, h, Html } from "./Html.ts"
import { inline, markdown } from "./Markdown.ts"
import { clientExample, curlExample } from "./QuickStart.ts"

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

const separated = (parts: ReadonlyArray<Content>, separator: string): Content => Array.intersperse(parts, separator)

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
  if (schema.enum !== undefined) return separated(schema.enum.map(literal), " or ")
  if (schema.anyOf !== undefined) return separated(schema.anyOf.map(typeOf), " or ")
  if (schema.format !== undefined) return schema.format
  if (isPair(schema)) {
    const members = Object.entries(schema.properties ?? {}).map(([name, member]) => [`${name}: `, typeOf(member)])
    return ["{ ", separated(members, ", "), " }"]
  }
  if (schema.type === "array") return ["list of ", typeOf(schema.items ?? {})]
  return [schema.type ?? "any"].flat().join(" or ")
}

const limitsOf = ({ default: preset, maximum = Infinity, minimum }: JsonSchema) => [
  ...(minimum !== undefined && maximum < 2 ** 31 - 1 ? [` From ${minimum} to ${maximum}.`] : []),
  ...(preset === undefined ? [] : [` ${JSON.stringify(preset)} by default.`])
]

/** A field with its description. */
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

/** A schema, or the one that it refers to. */
const resolve = ({ components: { schemas } }: Document, schema: JsonSchema): JsonSchema =>
  schema.$ref === undefined ? schema : (schemas[lastOf(schema.$ref)] ?? schema)

const schemaOf = ({ responses }: Operation): JsonSchema =>
  Option.match(
    Array.findFirst(Object.entries(responses), ([status]) => isSuccess(status)),
    { onNone: () => ({}), onSome: ([, { content }]) => content?.["application/json"].schema ?? {} }
  )

const referencesOf = ({ $ref, anyOf = [], items, properties = {} }: JsonSchema): ReadonlyArray<string> => [
  ...($ref === undefined ? [] : [lastOf($ref)]),
  ...[...anyOf, ...(items ? [items] : []), ...Object.values(properties)].flatMap(referencesOf)
]

const provisional = (isProvisional = false) => isProvisional && h("small")(" provisional")

interface Endpoint {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

const endpointsOf = ({ paths, servers: [{ url }] }: Document): ReadonlyArray<Endpoint> =>
  Object.entries(paths).flatMap(([path, { get, post }]) => [
    ...(get ? [{ method: "GET", path: `${url}${path}`, operation: get }] : []),
    ...(post ? [{ method: "POST", path: `${url}${path}`, operation: post }] : [])
  ])

/** Fields of more operations than these are described once. */
const fewOperations = 3

/** The page of a document. */
class Documentation {
  readonly #document: Document
  readonly #endpoints: ReadonlyArray<Endpoint>
  /** The names of types that others refer to, which stand by themselves. */
  readonly #shared: ReadonlyArray<string>
  /** The fields that many operations have, by their HTML. */
  readonly #common: Readonly<Record<string, Field>>

  constructor(given: Document) {
    const { components } = given
    const schemas = Record.map(components.schemas, (schema) => expanded(components.schemas, schema))
    const document = { ...given, components: { ...components, schemas } }
    this.#document = document
    this.#endpoints = endpointsOf(document)
    this.#shared = Array.dedupe(Object.values(document.components.schemas).flatMap(referencesOf))
    const fields = this.#endpoints.flatMap(({ operation }) => [
      ...this.#requestOf(operation),
      ...this.#responseOf(operation)
    ])
    const many = Record.filter(Array.groupBy(fields, keyOf), ({ length }) => length > fewOperations)
    this.#common = Record.map(many, ([field]) => field)
  }

  #requestOf(operation: Operation): ReadonlyArray<Field> {
    const body = bodyOf(this.#document, operation)?.content["application/json"]
    return fieldsOf(resolve(this.#document, body?.schema ?? {}), true)
  }

  #responseOf(operation: Operation): ReadonlyArray<Field> {
    return fieldsOf(resolve(this.#document, schemaOf(operation)), false)
  }

  /** Fields under a title, those that many operations have by their names. */
  #fields(title: string, fields: ReadonlyArray<Field>): Content {
    const isCommon = (field: Field) => keyOf(field) in this.#common
    const common = fields.filter(isCommon)
    const own = fields.filter((field) => !isCommon(field))
    return (
      fields.length > 0 && [
        h("h4")(title),
        htmlOf(own),
        common.length > 0 && h("p")(`Common fields: ${common.map(({ name }) => name).join(", ")}`)
      ]
    )
  }

  #returned(operation: Operation): Content {
    const { $ref = "" } = schemaOf(operation)
    return this.#shared.includes(lastOf($ref))
      ? [h("h4")("Response"), h("p")(typeOf({ $ref }))]
      : this.#fields("Response", this.#responseOf(operation))
  }

  /** The description and the statuses of an operation, or a link to the first operation that has the same. */
  #about({ description = "", operationId, responses }: Operation): Content {
    const first = this.#endpoints.find(({ operation }) => operation.description === description)?.operation
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

  #operation({ method, operation, path }: Endpoint): Html {
    const { operationId, parameters, summary = operationId } = operation
    const example = bodyOf(this.#document, operation)?.content["application/json"].examples?.demo.value
    const client = clientExample(operation, example)
    return h("article", { id: operationId })(
      h("h3")(summary, provisional(operation["x-provisional"])),
      h("p")(h("code")(`${method} ${path}`)),
      this.#about(operation),
      h("pre", { "data-request": true })(curlExample(method, path, operation, example)),
      client !== undefined && h("pre")(client),
      this.#fields(
        "Request headers",
        parameters.map(({ description = "", name, required = false, schema }) =>
          fieldOf(name, typeOf(schema), required, description)
        )
      ),
      this.#fields("Request", this.#requestOf(operation)),
      this.#returned(operation)
    )
  }

  #type(name: string): Html {
    const schema = this.#document.components.schemas[name] ?? {}
    return h("article", { id: name })(
      h("h3")(name, provisional(schema["x-provisional"])),
      schema.description !== undefined && h("p")(inline(schema.description)),
      htmlOf(fieldsOf(schema, false))
    )
  }

  /** The endpoints of a tag, and the names of the types that they return. */
  #tagged(tag: string) {
    const endpoints = this.#endpoints.filter(({ operation }) => operation.tags.includes(tag))
    const types = endpoints.flatMap(({ operation }) => referencesOf(resolve(this.#document, schemaOf(operation))))
    return { endpoints, types: Array.dedupe(types) }
  }

  /** A tag with its operations, and the types that no later tag has. */
  #tag(tag: string, about: string, later: ReadonlyArray<string>): Html {
    const { endpoints, types } = this.#tagged(tag)
    const others = later.flatMap((name) => this.#tagged(name).types)
    return h("section", { id: tag })(
      h("h2")(tag),
      h("p")(inline(about)),
      endpoints.map((endpoint) => this.#operation(endpoint)),
      types.filter((name) => !others.includes(name)).map((name) => this.#type(name))
    )
  }

  #errors(): Html {
    const errors = this.#endpoints.flatMap(({ operation: { operationId, responses } }) =>
      Object.entries(responses).flatMap(([status, { description }]) =>
        isSuccess(status) ? [] : [{ operationId, text: `**${status}** ${description}` }]
      )
    )
    const grouped = Object.entries(Array.groupBy(errors, ({ text }) => text)).toSorted(([a], [b]) => (a < b ? -1 : 1))
    return h("section", { id: "errors" })(
      h("h2")("Errors"),
      h("ul")(grouped.map(([text]) => h("li")(inline(text)))),
      ["ErrorDetail", "HTTPValidationError", "ValidationError"].map((name) => this.#type(name))
    )
  }

  #list(id: string, title: string, fields: ReadonlyArray<Field>): Content {
    return fields.length > 0 && h("section", { id })(h("h2")(title), htmlOf(fields))
  }

  render(start: string, script: string, key: string | undefined): string {
    const { components, info, servers, tags } = this.#document
    const sections = ["quick-start", "introduction", ...tags.map(({ name }) => name)]
    const names = [...sections, "common-fields", "errors", "headers"]
    const headers = Object.entries(components.headers).map(([name, about]) =>
      fieldOf(name, "", false, about.description)
    )
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
        h("section", { id: "introduction" })(h("h2")("Introduction"), markdown(info.description)),
        tags.map(({ description = "", name }, index) => {
          const later = tags.slice(index + 1).map((tag) => tag.name)
          return this.#tag(name, description, later)
        }),
        this.#list("common-fields", "Common fields", Object.values(this.#common)),
        this.#errors(),
        this.#list("headers", "Headers of responses", headers)
      ),
      h("nav", { id: "contents", "aria-label": "Contents" })(
        names.map((name) => h("a", { href: `#${name}` })(name.replaceAll("-", " ")))
      )
    )
  }
}

/**
 * The page of an OpenAPI document.
 *
 * @param start markdown at the top
 * @param script the address of the script that sends requests
 * @param key an API key to try it with
 */
export const render = (document: Document, start: string, script: string, key: string | undefined): string =>
  new Documentation(document).render(start, script, key)
