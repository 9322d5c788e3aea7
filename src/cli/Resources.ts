/** The resources that the commands of clients name, and the filters of their searches. */
import { Effect, Option, Predicate } from "effect"
import { Argument } from "effect/cli"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../api/DataApi.ts"
import { resources, type Verb } from "../client/index.ts"
import { nearest } from "../process/Variable.ts"
import { misused } from "./Usage.ts"

/** The names of the resources that can be asked so. */
export const namesOf = (verb: Verb) => resources.filter(({ verbs }) => verbs.includes(verb)).map(({ name }) => name)

/** The argument that names a resource. */
export const resource = (verb: Verb) =>
  Argument.Literals("resource", namesOf(verb)).pipe(
    Argument.withMetavar("resource"),
    Argument.withDescription("The resource, as in the API's paths")
  )

const dig = (value: unknown, ...path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((found, key) => (Predicate.hasProperty(found, key) ? found[key] : undefined), value)

/** The types of the fields of a search, as the OpenAPI document has them. */
const typesOf = (name: string): Readonly<Record<string, ReadonlyArray<string>>> => {
  const document = OpenApi.fromApi(DataApi)
  const reference = dig(document, "paths", `/${name}/search`, "post", "requestBody", "$ref")
  const component = String(reference).split("/").at(-1) ?? ""
  const properties = dig(
    document,
    "components",
    "requestBodies",
    component,
    "content",
    "application/json",
    "schema",
    "properties"
  )
  return Predicate.isObject(properties)
    ? Object.fromEntries(
        Object.entries(properties).map(([field, schema]) => [field, [dig(schema, "type")].flat().map(String)])
      )
    : {}
}

const own = ["limit", "offset", "starting_after"]

const valueOf = (types: ReadonlyArray<string>, text: string): Option.Option<string | number | boolean> => {
  if (types.includes("boolean"))
    return text === "true" || text === "false" ? Option.some(text === "true") : Option.none()
  if (types.includes("integer")) return /^-?\d{1,15}$/.test(text) ? Option.some(Number(text)) : Option.none()
  return Option.some(text)
}

/** The filters of a search, from `name=value` to what the API takes. */
export const filtersOf = Effect.fnUntraced(function* (name: string, given: Readonly<Record<string, string>>) {
  const types = typesOf(name)
  const known = Object.keys(types).filter((field) => !own.includes(field))
  const filters: Record<string, string | number | boolean> = {}
  for (const [field, text] of Object.entries(given)) {
    const type = known.includes(field) ? types[field] : undefined
    if (type === undefined) {
      const meant = nearest(field, known)
      const hint = meant === undefined ? "" : ` Did you mean ${meant}?`
      return yield* misused(["search"], `${name} has no filter ${field}.${hint} There are ${known.join(", ")}.`)
    }
    const value = valueOf(type, text)
    if (Option.isNone(value)) {
      const expected = type.includes("boolean") ? "true or false" : "an integer"
      return yield* misused(["search"], `The filter ${field} expects ${expected}, not "${text}".`)
    }
    filters[field] = value.value
  }
  return filters
})
