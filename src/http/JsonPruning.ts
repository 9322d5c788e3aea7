/**
 * JSON bodies as the schemas of endpoints take them. A large one is pruned first, in the worker thread: what its schema
 * does not look at is checked for its syntax and left out, so that a malicious body costs no more than a well-meant one.
 * No value is made of it meanwhile: memory stays small, and the position of a fault is known.
 */
import { Result, type Schema, SchemaAST } from "effect"
import type { RequestInvalid, ValidationError } from "../api/Errors.ts"
import { faults, invalidAt, maximumFaults, tooLong } from "../api/Faults.ts"

/** The part of a value that a schema looks at: the members of an object, the items of a list, or not into it. */
export type Shape =
  | { readonly _tag: "Fields"; readonly fields: ReadonlyMap<string, Shape> }
  | { readonly _tag: "List"; readonly item: Shape }
  | { readonly _tag: "Leaf" }

/** The shape of a request body, and the maximum number of items of its lists together. */
export interface Wanted {
  readonly shape: Shape
  readonly maximumItems: number
}

const shapeOf = (ast: SchemaAST.AST): Shape => {
  if (SchemaAST.isObjects(ast)) {
    const fields = new Map(ast.propertySignatures.map(({ name, type }) => [String(name), shapeOf(type)]))
    return { _tag: "Fields", fields }
  }
  if (SchemaAST.isArrays(ast) && ast.rest[0] !== undefined) return { _tag: "List", item: shapeOf(ast.rest[0]) }
  return { _tag: "Leaf" }
}

/** The part of a request body that its schema looks at. Objects and lists that can be null are not looked into. */
export const wantedBy = ({ ast }: Schema.Top): Wanted => ({
  shape: shapeOf(SchemaAST.toEncoded(ast)),
  maximumItems: SchemaAST.resolveAt<number>("maximumItems")(ast) ?? Infinity
})

/** Receives what a text holds, in order. */
interface Visitor {
  readonly open: (container: "object" | "array") => void
  readonly close: () => void
  /** The name of a member, quotes included; `end` is exclusive. */
  readonly name: (start: number, end: number) => void
  /** A string, number, boolean or null; `end` is exclusive. */
  readonly scalar: (start: number, end: number) => void
  /** True to stop reading. */
  readonly isDone: () => boolean
}

const quote = 0x22
const backslash = 0x5c

const escape = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y
const bare = /true|false|null|-?(?:0|[1-9]\d*(?!\d))(?:\.\d+(?!\d)|(?!\.))(?:[eE][+-]?\d+|(?![eE]))/y

/** The end of the token at a position; the position itself if there is none. */
const endOf = (token: RegExp, text: string, at: number): number => {
  token.lastIndex = at
  return token.test(text) ? token.lastIndex : at
}

/** The end of the string at a position; the complement of the faulty position if it is not valid. */
const endOfString = (text: string, start: number): number => {
  let at = start + 1
  for (;;) {
    const code = text.charCodeAt(at)
    if (code === quote) return at + 1
    const end = code === backslash ? endOf(escape, text, at) : code >= 0x20 ? at + 1 : at
    if (end === at) return ~at
    at = end
  }
}

/**
 * Reads a text. Returns the position, in characters, where the text stops being JSON; undefined if all of it is JSON, or
 * the visitor stopped before.
 */
const scan = (text: string, visitor: Visitor): number | undefined => {
  // A byte for each container that may be open: a text may be nested as deeply as it is long.
  const isObject = new Uint8Array(text.length + 1)
  let depth = 0
  let expected: "value" | "value or end" | "name" | "name or end" | "colon" | "comma or end" | "nothing" = "value"
  let position = 0
  for (;;) {
    const code = text.charCodeAt(position)
    const isName = expected === "name" || expected === "name or end"
    const isValue = expected === "value" || expected === "value or end"
    const isInObject = isObject[depth] === 1
    switch (code) {
      case 0x20:
      case 0x09:
      case 0x0a:
      case 0x0d:
        position++
        continue
      case 0x7b:
      case 0x5b:
        if (!isValue) return position
        visitor.open(code === 0x7b ? "object" : "array")
        isObject[++depth] = code === 0x7b ? 1 : 0
        expected = code === 0x7b ? "name or end" : "value or end"
        position++
        continue
      case 0x3a:
        if (expected !== "colon") return position
        expected = "value"
        position++
        continue
      case 0x2c:
        if (expected !== "comma or end") return position
        expected = isInObject ? "name" : "value"
        position++
        continue
      case 0x7d:
      case 0x5d:
        if (expected !== "comma or end" && expected !== (isInObject ? "name or end" : "value or end")) return position
        if (depth === 0 || isInObject !== (code === 0x7d)) return position
        depth--
        visitor.close()
        position++
        break
      default: {
        if (position >= text.length && expected === "nothing") return undefined
        if (!isValue && !(isName && code === quote)) return position
        const end = code === quote ? endOfString(text, position) : endOf(bare, text, position)
        if (end < 0) return ~end
        if (end === position) return position
        if (isName) {
          visitor.name(position, end)
          expected = "colon"
        } else visitor.scalar(position, end)
        position = end
        if (isName) continue
      }
    }
    // A value ended.
    if (visitor.isDone()) return undefined
    expected = depth === 0 ? "nothing" : "comma or end"
  }
}

type Frame =
  | {
      readonly _tag: "Object"
      readonly fields: ReadonlyMap<string, Shape>
      /** The JSON of each member's value, by the JSON of its name. */
      readonly members: Map<string, string>
      /** The JSON of the name of the member that is being read; undefined if the member is left out. */
      name: string | undefined
      /** The shape of that member; undefined if it is unknown. */
      shape: Shape | undefined
      /** The number of unknown members that are still kept. */
      unknownLeft: number
    }
  | { readonly _tag: "Array"; readonly item: Shape; readonly items: Array<string> }

const jsonOf = (frame: Frame) =>
  frame._tag === "Array"
    ? `[${frame.items.join(",")}]`
    : `{${Array.from(frame.members, ([name, value]) => `${name}:${value}`).join(",")}}`

/** No schema knows a longer name, even with each character escaped. */
const longestName = 6 * 64

const nameOf = (json: string): string | undefined => {
  if (json.length > longestName) return undefined
  return json.includes("\\") ? String(JSON.parse(json)) : json.slice(1, -1)
}

class Pruning implements Visitor {
  json = ""
  count = 0
  readonly #frames: Array<Frame> = []
  /** The number of open containers that are left out. */
  #skipped = 0
  #skippedAs = ""
  readonly #text: string
  readonly #wanted: Wanted

  constructor(text: string, wanted: Wanted) {
    this.#text = text
    this.#wanted = wanted
  }

  open(container: "object" | "array") {
    if (this.#skipped > 0) {
      this.#skipped++
      return
    }
    const frame = this.#frames.at(-1)
    const shape = frame === undefined ? this.#wanted.shape : frame._tag === "Array" ? frame.item : frame.shape
    if (shape?._tag === "Fields" && container === "object") {
      const unknownLeft = frame === undefined ? maximumFaults : 0
      const { fields } = shape
      this.#frames.push({ _tag: "Object", fields, members: new Map(), name: undefined, shape: undefined, unknownLeft })
    } else if (shape?._tag === "List" && container === "array") {
      this.#frames.push({ _tag: "Array", item: shape.item, items: [] })
    } else {
      this.#skipped = 1
      this.#skippedAs = container === "object" ? "{}" : "[]"
    }
  }

  close() {
    if (this.#skipped === 0) {
      const frame = this.#frames.pop()
      if (frame !== undefined) this.#put(jsonOf(frame))
    } else if (--this.#skipped === 0) this.#put(this.#skippedAs)
  }

  name(start: number, end: number) {
    const frame = this.#frames.at(-1)
    if (this.#skipped > 0 || frame?._tag !== "Object") return
    const json = this.#text.slice(start, end)
    const name = nameOf(json)
    frame.shape = name === undefined ? undefined : frame.fields.get(name)
    if (frame.shape !== undefined) frame.name = JSON.stringify(name)
    else frame.name = frame.unknownLeft-- > 0 ? json : undefined
  }

  scalar(start: number, end: number) {
    if (this.#skipped === 0) this.#put(this.#text.slice(start, end))
  }

  isDone() {
    return this.count > this.#wanted.maximumItems
  }

  #put(json: string) {
    const frame = this.#frames.at(-1)
    if (frame === undefined) this.json = json
    else if (frame._tag === "Array") {
      frame.items.push(json)
      this.count++
    } else if (frame.name !== undefined) frame.members.set(frame.name, frame.shape === undefined ? "null" : json)
  }
}

const isMissing = (text: string): boolean => ["", "null"].includes(text.trim())

const missing = invalidAt(["body"], faults.missing)

const notJson = (text: string, position: number): RequestInvalid =>
  isMissing(text) ? missing : invalidAt(["body", position], faults.json)

/**
 * Prunes a text to what a schema looks at. Of members that the schema does not know, it keeps the names of the first
 * hundred in the outermost object, for the error response. Reading stops at one item too many.
 */
export const prune = (text: string, wanted: Wanted): Result.Result<string, RequestInvalid> => {
  const pruning = new Pruning(text, wanted)
  const position = scan(text, pruning)
  if (pruning.isDone()) return Result.fail(invalidAt(["body"], tooLong(wanted.maximumItems, pruning.count)))
  return position === undefined ? Result.succeed(pruning.json) : Result.fail(notJson(text, position))
}

const anything: Wanted = { shape: { _tag: "Leaf" }, maximumItems: Infinity }

/** The value of a text that is small or was pruned. */
export const parse = (text: string): Result.Result<unknown, RequestInvalid> =>
  isMissing(text)
    ? Result.fail(missing)
    : Result.try({
        try: (): unknown => JSON.parse(text),
        catch: () => Result.getOrElse(Result.flip(prune(text, anything)), () => notJson(text, text.length))
      })

/** The outcome of a job: the value, or the faults of the body. */
export type Outcome<A> = { readonly value: A } | { readonly detail: ReadonlyArray<ValidationError> }

export const outcomeOf = <A>(result: Result.Result<A, RequestInvalid>): Outcome<A> =>
  Result.match(result, { onSuccess: (value) => ({ value }), onFailure: ({ detail }) => ({ detail }) })

const decoder = new TextDecoder()

/** Prunes a body. Runs in the worker thread. */
export const job = ({ body, wanted }: { readonly body: Uint8Array; readonly wanted: Wanted }): Outcome<string> =>
  outcomeOf(prune(decoder.decode(body), wanted))
