/** Records for tests. */
import { Option, Predicate, Schema } from "effect"
import type * as Field from "../api/records/Field.ts"
import type { Filters, Resource, Stored } from "../api/records/Resource.ts"

/** What is looked at of a JSON schema. */
interface JsonSchema {
  readonly type: string | ReadonlyArray<string>
  readonly examples: ReadonlyArray<unknown>
  readonly properties: Readonly<Record<string, unknown>>
  readonly allOf: ReadonlyArray<unknown>
  readonly anyOf: ReadonlyArray<unknown>
}

const absent: JsonSchema = { type: [], examples: [], properties: {}, allOf: [], anyOf: [] }

/** The example of a JSON schema: its own, or one that is made of those of its parts. */
const exampleIn = (schema: unknown): Option.Option<unknown> => {
  if (!Predicate.isObject(schema)) return Option.none()
  const { allOf, anyOf, examples, properties, type } = { ...absent, ...schema }
  const types = [type].flat()
  if (examples.length > 0) return Option.some(examples[0])
  if (types.includes("object")) {
    const parts = Object.entries(properties).flatMap(([name, part]) =>
      Option.toArray(Option.map(exampleIn(part), (example) => [name, example] as const))
    )
    return Option.some(Object.fromEntries(parts))
  }
  if (types.includes("boolean")) return Option.some(false)
  return Option.firstSomeOf([
    ...[...allOf, ...anyOf].map(exampleIn),
    types.includes("null") ? Option.some(null) : Option.none()
  ])
}

const exampleOf = <Fields extends Field.Fields>(fields: Fields): Schema.Struct.Type<Fields> => {
  const schema = Schema.Struct(fields)
  const document = Schema.toJsonSchemaDocument(schema)
  // oxlint-disable-next-line effecttsgo/schema-sync -- a field without an example is a bug
  return Schema.decodeUnknownSync(schema)(Option.getOrElse(exampleIn(document.schema), () => ({})))
}

/**
 * A record that is valid in every field: with the values that are given, and otherwise with the examples that its schema
 * shows. Its organization is `org_oakridge` unless another is given. Two records of one resource need ids of their own.
 */
export const build = <Name extends string, Fields extends Field.Fields, Hidden extends Field.Fields, F extends Filters>(
  resource: Resource<Name, Fields, Hidden, F>,
  values: Partial<Stored<Resource<Name, Fields, Hidden, F>>> = {}
): Stored<Resource<Name, Fields, Hidden, F>> => ({
  organization_id: "org_oakridge",
  ...exampleOf(resource.hidden),
  ...exampleOf(resource.record.fields),
  ...values
})
