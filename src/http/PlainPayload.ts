/**
 * Tests whether a value is valid for a schema and decodes to itself: that of most requests does, and needs no decoder.
 * A value that fails the test may still be valid.
 */
import { Exit, Predicate, Schema, SchemaAST } from "effect"
import type { HttpApiEndpoint } from "effect/http-api"

type Test = (value: unknown) => boolean

const isPure = (ast: SchemaAST.AST) => SchemaAST.toType(ast) === ast

/** The test of a field. Null needs no decoder. */
const testOfField = (ast: SchemaAST.AST): Test => {
  if (SchemaAST.isNull(ast)) return Predicate.isNull
  if (isPure(ast) && SchemaAST.isUnion(ast) && ast.checks === undefined) {
    const tests = ast.types.map(testOfField)
    return (value) => tests.some((test) => test(value))
  }
  if (isPure(ast)) return Schema.is(Schema.make<Schema.Schema<unknown>>(ast))
  const decode = Schema.decodeUnknownExit(Schema.make<Schema.Codec<unknown>>(ast))
  return (value) => {
    const decoded = decode(value)
    return Exit.isSuccess(decoded) && decoded.value === value
  }
}

/** The test for a struct of fields; undefined for a schema of another form. */
const testOfStruct = ({ ast }: Schema.Top): Test | undefined => {
  if (!SchemaAST.isObjects(ast) || ast.encoding !== undefined || ast.checks !== undefined) return undefined
  if (ast.indexSignatures.length > 0) return undefined
  const tests = new Map(ast.propertySignatures.map(({ name, type }) => [String(name), testOfField(type)]))
  // A field that its schema makes, or that may not be left out.
  const required = ast.propertySignatures.filter(({ type }) => !isPure(type) || !SchemaAST.isOptional(type))
  const names = required.map(({ name }) => String(name))
  return (value) => {
    if (!Predicate.isObject(value)) return false
    const given: Readonly<Record<string, unknown>> = value
    for (const name in given) {
      const test = tests.get(name)
      if (test === undefined || !test(given[name])) return false
    }
    return names.every((name) => given[name] !== undefined)
  }
}

/** An endpoint whose payloads have a type. */
interface Endpoint<Payload> {
  readonly payload: HttpApiEndpoint.PayloadMap
  readonly "~Payload": { readonly Type: Payload }
}

/** The test of the payloads of an endpoint. */
// Unchecked, as at run time the payloads of an endpoint have no types.
export function testOf<Payload>(endpoint: Endpoint<Payload>): (value: unknown) => value is Payload
export function testOf({ payload }: Endpoint<unknown>): Test {
  const [schema] = Array.from(payload.values()).flatMap(({ schemas }) => schemas)
  return (schema === undefined ? undefined : testOfStruct(schema)) ?? (() => false)
}
