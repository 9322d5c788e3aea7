/**
 * The faults of a request in the vocabulary of pydantic 2, which generated clients of this error shape know. A schema or
 * a check names its fault with the annotation `fault`; by default, its type decides.
 */
import { Predicate, type Schema, type SchemaAST, SchemaIssue } from "effect"
import { RequestInvalid, type ValidationError } from "./Errors.ts"

export interface Fault {
  readonly type: string
  readonly msg: string
}

declare module "effect/Schema" {
  namespace Annotations {
    interface Augment {
      /** The item of a 422 when this schema or check refuses a value. */
      readonly fault?: Fault | undefined
    }
  }
}

/** The faults that more than one schema can have. */
export const faults = {
  missing: { type: "missing", msg: "Field required" },
  string: { type: "string_type", msg: "Input should be a valid string" },
  stringUnicode: {
    type: "string_unicode",
    msg: "Input should be a valid string, unable to parse raw data as a unicode string"
  },
  int: { type: "int_type", msg: "Input should be a valid integer" },
  intFromFloat: { type: "int_from_float", msg: "Input should be a valid integer, got a number with a fractional part" },
  boolean: { type: "bool_type", msg: "Input should be a valid boolean" },
  datetime: { type: "datetime_type", msg: "Input should be a valid datetime" },
  list: { type: "list_type", msg: "Input should be a valid list" },
  object: { type: "model_attributes_type", msg: "Input should be a valid dictionary or object to extract fields from" },
  extra: { type: "extra_forbidden", msg: "Extra inputs are not permitted" },
  contentType: { type: "content_type", msg: "Content-Type should be application/json" },
  json: { type: "json_invalid", msg: "JSON decode error" },
  value: { type: "value_error", msg: "Value error" },
  stringTooShort: { type: "string_too_short", msg: "String should have at least 1 character" },
  idempotencyKeyReused: {
    type: "idempotency_key_reused",
    msg: "This Idempotency-Key was used with a different payload"
  },
  noItems: { type: "value_error", msg: "Value error, invoices or invoice_lines should have at least 1 item" },
  noLists: { type: "value_error", msg: "Value error, unknown name: use invoices or invoice_lines" }
} as const satisfies Record<string, Fault>

export const stringTooLong = (maximum: number): Fault => ({
  type: "string_too_long",
  msg: `String should have at most ${maximum} characters`
})

export const patternMismatch = (pattern: string): Fault => ({
  type: "string_pattern_mismatch",
  msg: `String should match pattern '${pattern}'`
})

export const tooLong = (maximum: number, actual: number): Fault => ({
  type: "too_long",
  msg: `List should have at most ${maximum} items after validation, not ${actual}`
})

/** An issue that a check returns to name its fault. */
export const refuse = (fault: Fault): SchemaIssue.Issue => new SchemaIssue.InvalidValue({ fault })

const isFault = (u: unknown): u is Fault => Predicate.hasProperty(u, "type") && Predicate.hasProperty(u, "msg")

const faultIn = (annotations: Schema.Annotations.Annotations | undefined) => {
  const named = annotations?.["fault"]
  return isFault(named) ? named : undefined
}

const faultsOfTypes: Partial<Record<SchemaAST.AST["_tag"], Fault>> = {
  String: faults.string,
  Boolean: faults.boolean,
  Arrays: faults.list,
  Objects: faults.object
}

const schemaFault = (ast: SchemaAST.AST): Fault => {
  const named = faultIn(ast.annotations)
  if (named !== undefined) return named
  if (ast._tag !== "Union") return faultsOfTypes[ast._tag] ?? faults.value
  const first = ast.types.find((type) => type._tag !== "Null")
  return first === undefined ? faults.value : schemaFault(first)
}

/** The fault of an issue that holds no other. */
const issueFault = (issue: SchemaIssue.Issue): Fault => {
  switch (issue._tag) {
    case "MissingKey":
      return faults.missing
    case "UnexpectedKey":
      return faults.extra
    case "InvalidType":
    case "AnyOf":
      return schemaFault(issue.ast)
    default:
      return ("annotations" in issue ? faultIn(issue.annotations) : undefined) ?? faults.value
  }
}

type Loc = ValidationError["loc"]

const item = (loc: Loc, { type, msg }: Fault): ValidationError => ({ loc, msg, type })

const isExtra = (issue: SchemaIssue.Issue): boolean =>
  issue._tag === "UnexpectedKey" || (issue._tag === "Pointer" && isExtra(issue.issue))

const maximumFaults = 100

/** The first faults of an issue, in the order of the schema's fields, unknown fields last. */
export const validationErrors = (issue: SchemaIssue.Issue, loc: Loc): ReadonlyArray<ValidationError> => {
  const named = issue._tag === "Filter" ? faultIn(issue.filter.annotations) : undefined
  if (named !== undefined) return [item(loc, named)]
  if ("issue" in issue) {
    const path = issue._tag === "Pointer" ? issue.path : []
    return validationErrors(issue.issue, [...loc, ...path.map((key) => (Predicate.isNumber(key) ? key : String(key)))])
  }
  if (!("issues" in issue) || issue.issues.length === 0) return [item(loc, issueFault(issue))]
  const known = issue.issues.filter((inner) => !isExtra(inner))
  const errors: Array<ValidationError> = []
  for (const inner of [...known, ...issue.issues.filter(isExtra)]) {
    if (errors.length < maximumFaults) errors.push(...validationErrors(inner, loc))
  }
  return errors
}

const longestName = 64

// Without half of a pair of surrogates at the end.
const shown = (part: string | number) =>
  typeof part === "string" && part.length > longestName
    ? `${part.slice(0, longestName).replace(/[\ud800-\udbff]$/, "")}\u2026`
    : part

/** A 422 with the first faults, their names cut short: it is small whatever was sent. */
export const invalidRequest = (errors: ReadonlyArray<ValidationError>): RequestInvalid =>
  new RequestInvalid({
    detail: errors.slice(0, maximumFaults).map(({ loc, msg, type }) => ({ loc: loc.map(shown), msg, type }))
  })

/** A 422 with one fault. */
export const invalidAt = (loc: Loc, fault: Fault): RequestInvalid => invalidRequest([item(loc, fault)])
