/**
 * JSON bodies as the schemas of endpoints take them. A large one is pruned first, in the worker thread: what its schema
 * does not look at is checked for its syntax and left out, so that a malicious body costs no more than a well-meant one.
 * No value is made of it meanwhile: `JSON.parse` took 242 MiB for 4 MiB of nested lists.
 */
import { Result, Schema, SchemaAST } from "effect"
import { RequestInvalid, type ValidationError } from "../api/Errors.ts"
import { faults, invalidAt, maximumFaults, tooLong } from "../api/Faults.ts"

/** The part of a value that a schema looks at: members of an object, or items of a list. Without either, not into it. */
interface Shape {
  readonly fields?: ReadonlyMap<string, Shape>
  readonly item?: Shape
}

/** The shape of a request body, and the maximum number of items of its lists together. */
interface Wanted {
  readonly shape: Shape
  readonly maximumItems: number
}

const shapeOf = (ast: SchemaAST.AST): Shape => {
  if (SchemaAST.isObjects(ast)) {
    return { fields: new Map(ast.propertySignatures.map(({ name, type }) => [String(name), shapeOf(type)])) }
  }
  return SchemaAST.isArrays(ast) && ast.rest[0] !== undefined ? { item: shapeOf(ast.rest[0]) } : {}
}

/** The part of a request body that its schema looks at. Objects and lists that can be null are not looked into. */
export const wantedBy = ({ ast }: Schema.Top): Wanted => ({
  shape: shapeOf(SchemaAST.toEncoded(ast)),
  maximumItems: SchemaAST.resolveAt<number>("maximumItems")(ast) ?? Infinity
})

const space = /[ \t\n\r]*/y
// oxlint-disable-next-line no-control-regex -- JSON has none in a string
const plain = /[^"\\\u0000-\u001f]*/y
const escape = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y
const bare = /true|false|null|-?(?:0|[1-9]\d*(?!\d))(?:\.\d+(?!\d)|(?!\.))(?:[eE][+-]?\d+|(?![eE]))/y

/** The end of a pattern at a position; the position itself if it is not there. */
const endOf = (pattern: RegExp, text: string, at: number): number => {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}

const isInvalid = Schema.is(RequestInvalid)
const missing = invalidAt(["body"], faults.missing)
const isMissing = (text: string): boolean => ["", "null"].includes(text.trim())

/** Reads a text from its start. Throws a `RequestInvalid` where it is not JSON. */
class Reader {
  readonly #text: string
  readonly #maximumItems: number
  // A byte for each container that may be open: a text may be nested as deeply as it is long.
  readonly #isObject: Uint8Array
  #at = 0
  #items = 0

  constructor(text: string, maximumItems: number) {
    this.#text = text
    this.#maximumItems = maximumItems
    this.#isObject = new Uint8Array(text.length + 1)
  }

  #fail(): never {
    throw invalidAt(["body", this.#at], faults.json)
  }

  /** The next character after white space. */
  #next() {
    if (this.#text.charCodeAt(this.#at) <= 0x20) this.#at = endOf(space, this.#text, this.#at)
    return this.#text[this.#at]
  }

  #take(characters: string) {
    const found = this.#next()
    if (found === undefined || !characters.includes(found)) return this.#fail()
    this.#at += 1
    return found
  }

  #string() {
    const start = this.#at
    this.#take('"')
    for (;;) {
      const end = endOf(plain, this.#text, this.#at)
      this.#at = endOf(escape, this.#text, end)
      if (this.#text[this.#at] === '"') return this.#text.slice(start, ++this.#at)
      if (this.#at === end) this.#fail()
    }
  }

  /** Reads a string, number, boolean or null. */
  #scalar() {
    if (this.#next() === '"') return this.#string()
    const start = this.#at
    this.#at = endOf(bare, this.#text, start)
    return this.#at > start ? this.#text.slice(start, this.#at) : this.#fail()
  }

  #name() {
    this.#next()
    const json = this.#string()
    this.#take(":")
    return json
  }

  /** Reads an object or a list, whose members or items are read by `each`. */
  #container(close: "}" | "]", each: () => void) {
    this.#at += 1
    if (this.#next() === close) this.#at += 1
    else
      do each()
      while (this.#take(`,${close}`) === ",")
  }

  /** Reads a value of any depth, and leaves it out. */
  #skip() {
    const isObject = this.#isObject
    let depth = 0
    do {
      const open = this.#next()
      if (open === "{" || open === "[") {
        this.#at += 1
        isObject[++depth] = open === "{" ? 1 : 0
        if (this.#next() !== (open === "{" ? "}" : "]")) {
          if (open === "{") this.#name()
          continue
        }
      } else this.#scalar()
      while (depth > 0 && this.#take(isObject[depth] === 1 ? ",}" : ",]") !== ",") depth -= 1
      if (depth > 0 && isObject[depth] === 1) this.#name()
    } while (depth > 0)
  }

  #value({ fields, item }: Shape, unknownLeft = 0): string {
    const open = this.#next()
    if (open !== "{" && open !== "[") return this.#scalar()
    if (open === "{" && fields !== undefined) {
      // Of members with the same name, the last one counts.
      const members = new Map<string, string>()
      this.#container("}", () => {
        const json = this.#name()
        const name = String(JSON.parse(json))
        const shape = fields.get(name)
        const value = this.#value(shape ?? {})
        if (shape !== undefined) members.set(name, `${json}:${value}`)
        else if (unknownLeft-- > 0) members.set(name, `${json}:null`)
      })
      return `{${Array.from(members.values()).join(",")}}`
    }
    if (open === "[" && item !== undefined) {
      const items: Array<string> = []
      this.#container("]", () => {
        items.push(this.#value(item))
        if (++this.#items > this.#maximumItems) throw invalidAt(["body"], tooLong(this.#maximumItems, this.#items))
      })
      return `[${items.join(",")}]`
    }
    this.#skip()
    return open === "{" ? "{}" : "[]"
  }

  read(shape: Shape) {
    const json = this.#value(shape, maximumFaults)
    return this.#next() === undefined ? json : this.#fail()
  }
}

/**
 * Prunes a text to what a schema looks at. Of members that the schema does not know, it keeps the names of the first
 * hundred in the outermost object, for the error response. Reading stops at one item too many.
 */
export const prune = (text: string, { maximumItems, shape }: Wanted): Result.Result<string, RequestInvalid> =>
  Result.try({
    try: () => new Reader(text, maximumItems).read(shape),
    catch: (error) => {
      if (!isInvalid(error)) throw error
      return isMissing(text) ? missing : error
    }
  })

/** The value of a text that is small or was pruned. */
export const parse = (text: string): Result.Result<unknown, RequestInvalid> =>
  isMissing(text)
    ? Result.fail(missing)
    : Result.orElse(
        Result.try((): unknown => JSON.parse(text)),
        () => prune(text, { shape: {}, maximumItems: Infinity })
      )

/** The outcome of a job: the value, or the faults of the body. */
export type Outcome<A> = { readonly value: A } | { readonly detail: ReadonlyArray<ValidationError> }

export const outcomeOf = <A>(result: Result.Result<A, RequestInvalid>): Outcome<A> =>
  Result.match(result, { onSuccess: (value) => ({ value }), onFailure: ({ detail }) => ({ detail }) })

const decoder = new TextDecoder()

/** Prunes a body. Runs in the worker thread. */
export const job = ({ body, wanted }: { readonly body: Uint8Array; readonly wanted: Wanted }): Outcome<string> =>
  outcomeOf(prune(decoder.decode(body), wanted))
