/**
 * Generated records, derived from the schemas of their resources: values that collide, so that filters and the order
 * have something to do, among values at the limits of what a table can hold.
 */
import { Arbitrary, Array, DateTime, Result, Schema, SchemaAST } from "effect"
import type * as Field from "../../src/api/records/Field.ts"
import type { Resource, Stored } from "../../src/api/records/Resource.ts"

/** The organizations that generated records belong to. */
export const owners = ["org_a", "org_b"] as const

const literal = <const L extends ReadonlyArray<string | number | boolean>>(...values: L) =>
  Arbitrary.schema(Schema.Literals(values))

/** An integer of a range, both ends included. */
export const integer = (minimum: number, maximum: number) =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })))

/** One of several arbitraries, each as likely as the others. */
export const oneOf = <A>(first: Arbitrary.Arbitrary<A>, ...others: ReadonlyArray<Arbitrary.Arbitrary<A>>) =>
  Arbitrary.flatMap(
    Arbitrary.schema(Schema.Literals(others.map((_, index) => index + 1).concat(0))),
    (index) => others[index - 1] ?? first
  )

/** Texts that are easily taken for one another, or for something other than text. */
const collidingText = literal("a", "A", "á", "a\u0301", "", " ", "null", "\uff5e", "😀", 'q"', "b\\", "{a,b}", "1")

const marks = ['"', "\\", "\\u0041", "/", "'", ",", "{", "}", "%", "$1", "x", " ", "ß", "日本", "👩‍⚕️"]
const separators = ["\u007f", "\u0080", "\u00a0", "\u2028", "\u2029", "\ufeff", "\uffff", "\u{10ffff}"]
const controls = Array.makeBy(31, (index) => String.fromCharCode(index + 1))
const pieces = literal(...marks, ...separators, ...controls)

const anyCharacter = Arbitrary.map(integer(1, 0x10ffff), (code) =>
  code >= 0xd800 && code <= 0xdfff ? "?" : String.fromCodePoint(code)
)

/** Any text that a database can hold. */
export const text = oneOf<string>(
  collidingText,
  collidingText,
  Arbitrary.map(Arbitrary.array(oneOf<string>(pieces, anyCharacter), { maxLength: 12 }), (parts) => parts.join(""))
)

/** Decimals of up to 15 significant digits, from 1e-30 to just below 1e21, and their limits. */
const decimal = oneOf<number>(
  literal(0, 1, -1, 0.1, 100001, -4.25),
  literal(1e-7, -1.5e-10, 1e-6, 9.99999e-7, 1e-30, 1e20, 999999999999999e6, -999999999999999, 0.000123456789012345),
  Arbitrary.map(
    Arbitrary.all([integer(-999_999_999_999_999, 999_999_999_999_999), integer(-30, 5)]),
    ([digits, exponent]) => Number(`${digits}e${exponent}`)
  )
)

const int32 = oneOf<number>(literal(0, 1, -1, 2147483647, -2147483648), integer(-2147483648, 2147483647))

const earliest = Date.parse("0001-01-01T00:00:00.000Z")
const latest = Date.parse("9999-12-31T23:59:59.999Z")

/** Times to the millisecond, most of which several records share. */
export const instant = oneOf<string>(
  literal("2026-01-31T09:30:00.000Z", "2026-01-31T09:30:00.001Z", "2026-01-31T09:30:00.999Z"),
  literal("2026-01-31T09:30:01.000Z", "1969-12-31T23:59:59.999Z", "2024-02-29T00:00:00.000Z"),
  Arbitrary.map(integer(earliest, latest), (millis) => DateTime.formatIso(DateTime.makeUnsafe(millis)))
)

const day = Arbitrary.map(instant, (time) => time.slice(0, 10))

const formatOf = SchemaAST.resolveAt<string>("format")

const isWholeOnly = (ast: SchemaAST.AST) => !Schema.is(Schema.make(ast))(0.5)

const isDay = (ast: SchemaAST.AST) => {
  const fits = Schema.is(Schema.make(ast))
  return fits("2019-04-12") && !fits("")
}

/** Values of the JSON form that a schema describes. */
const encoded = (ast: SchemaAST.AST): Arbitrary.Arbitrary<unknown> => {
  switch (ast._tag) {
    case "Union":
      return Arbitrary.flatMap(integer(0, 4), (choice) =>
        encoded(ast.types.find((type) => (type._tag === "Null") === (choice === 0)) ?? ast)
      )
    case "Null":
      return Arbitrary.Constant(null)
    case "String":
      return formatOf(ast) === "date-time" ? instant : isDay(ast) ? day : text
    case "Number":
      return isWholeOnly(ast) ? int32 : decimal
    case "Boolean":
      return Arbitrary.schema(Schema.Boolean)
    case "Arrays":
      return Arbitrary.array(text, { minLength: ast.elements.length, maxLength: 4 })
    case "Objects":
      return Arbitrary.all(
        Object.fromEntries(ast.propertySignatures.map(({ name, type }) => [String(name), encoded(type)]))
      )
    default:
      throw new Error(`no arbitrary of ${ast._tag}`)
  }
}

const fieldsOf = (fields: Field.Fields): Readonly<Record<string, Arbitrary.Arbitrary<unknown>>> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, { ast }]) => [name, encoded(SchemaAST.toEncoded(ast))] as const)
  )

/** Ids that bytes order otherwise than characters or a language would. */
const id = Arbitrary.map(
  Arbitrary.all([literal("a", "A", "b", "B", "é", "e", "\uff5e", "😀", "a b", 'a"', "a\\"), integer(0, 3)]),
  ([start, number]) => `${start}${number}`
)

const part = oneOf<string | null>(
  literal("Gold", "Canine", "Wellness"),
  literal("", " ", "\t\n"),
  Arbitrary.Constant(null),
  Arbitrary.map(text, (value) => value.trim())
)

/** The plan name that its parts make, as the contract composes it. */
const planNameOf = (parts: ReadonlyArray<unknown>) =>
  parts.filter((value) => typeof value === "string" && value.trim() !== "").join(" ") || null

/** What fields say together: a composed name. */
const consistent = (values: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => ({
  ...values,
  ...("wellnes_plan_name" in values && {
    wellnes_plan_name: planNameOf([values["plan_name"], values["species"], values["plan_header"]])
  })
})

/**
 * Records of a resource, of both organizations, interleaved. Organizations often have the same ids, and never the same
 * id twice.
 */
export const recordsOf = (
  { name, record, hidden }: Resource,
  options: Arbitrary.ArrayOptions
): Arbitrary.Arbitrary<ReadonlyArray<Stored>> => {
  const decodeRecord = Schema.decodeUnknownResult(record)
  const decodeHidden = Schema.decodeUnknownResult(Schema.Struct(hidden))
  const fields = Arbitrary.all({
    ...fieldsOf(record.fields),
    ...fieldsOf(hidden),
    ...("plan_header" in hidden && { plan_name: part, species: part, plan_header: part }),
    // The database knows time zones.
    ...("time_zone" in record.fields && {
      time_zone: oneOf<string | null>(literal("America/Denver", "Etc/GMT-14", "UTC"), Arbitrary.Constant(null))
    }),
    id
  })
  const stored = Arbitrary.map(
    Arbitrary.all({ values: fields, organization_id: literal(...owners) }),
    ({ values, organization_id }): Stored => {
      const encodedRecord = { ...consistent(values), ...(name === "organization" && { id: organization_id }) }
      return {
        ...Result.getOrThrow(decodeHidden(encodedRecord)),
        ...Result.getOrThrow(decodeRecord(encodedRecord)),
        organization_id
      }
    }
  )
  return Arbitrary.map(Arbitrary.array(stored, options), (all) =>
    Array.dedupeWith(all, (a, b) => a.organization_id === b.organization_id && a["id"] === b["id"])
  )
}
