/**
 * JSON texts, read without making values of them: `JSON.parse` takes 242 MiB for 4 MiB of nested lists, and silently drops
 * the first of two members with the same name. Runs in the thread of large bodies, and imports little: with effect, the
 * thread would take 50 MiB more.
 */
import { randomInt } from "node:crypto"

/** The part of a value that a schema looks at: members of an object, or items of a list. Without either, not into it. */
export interface Shape {
  readonly fields?: ReadonlyMap<string, Shape>
  readonly item?: Shape
}

/** The shape of a request body, the maximum number of items of its lists together, and of names that it does not know. */
export interface Wanted {
  readonly shape: Shape
  readonly maximumItems: number
  readonly maximumUnknown: number
}

/** The text without what its schema does not look at; or where it is not JSON, or a name stands twice; or too many items. */
export type Pruned = { readonly text: string } | { readonly invalidAt: number } | { readonly items: number }

const space = /[ \t\n\r]*/y
const escape = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y
const bare = /true|false|null|-?(?:0|[1-9]\d*(?!\d))(?:\.\d+(?!\d)|(?!\.))(?:[eE][+-]?\d+|(?![eE]))/y

const code = (character: string) => character.charCodeAt(0)
const [quote, backslash, comma, colon] = [code('"'), code("\\"), code(","), code(":")]
const [brace, closingBrace, bracket, closingBracket] = [code("{"), code("}"), code("["), code("]")]

/** The end of a pattern at a position; the position itself if it is not there. */
const endOf = (pattern: RegExp, text: string, at: number): number => {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}

// Otherwise a text could be made of names that have the same hash.
const seed = randomInt(2 ** 32)

const hashOf = (name: string, object: number) => {
  let hash = seed ^ object
  for (let index = 0; index < name.length; index++) hash = Math.imul(hash ^ name.charCodeAt(index), 0x9e3779b1)
  // The end of MurmurHash3: each bit changes all others.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}

/** The end of a text that is refused. */
// oxlint-disable-next-line effecttsgo/extends-native-error -- it never leaves this module, which has no effects
class Refusal extends Error {
  readonly pruned: Pruned

  constructor(pruned: Pruned) {
    super()
    this.pruned = pruned
  }
}

/** The number of strings and values between two pauses: about a millisecond. */
const stride = 10_000

/** Gives the memory of an array back. V8 would keep it until there is much more. */
const release = ({ buffer }: Int32Array<ArrayBuffer>) => void buffer.transfer(0)

/** The first size of the arrays of a reader, a power of 2. They grow: most texts are flat, and mostly values. */
const firstSize = (text: string) => 2 ** Math.ceil(Math.log2(text.length / 16 + 16))

/** Reads a text from its start, or throws a `Refusal`. */
class Reader {
  readonly #text: string
  readonly #maximumItems: number
  readonly #pause: () => void
  // Arrays of numbers: a set of names for each open object would take 130 MiB for 4 MiB of nested ones.
  /** The open containers: the number of an object, 0 for a list. A text may be nested as deeply as it is long. */
  #open: Int32Array<ArrayBuffer>
  /** A hash table of all names, at most half full: the number of the object, and the position. */
  #objects: Int32Array<ArrayBuffer>
  #positions: Int32Array<ArrayBuffer>
  #names = 0
  #depth = 0
  #lastObject = 0
  #at = 0
  #items = 0
  #steps = 0

  constructor(text: string, maximumItems: number, pause: () => void) {
    this.#text = text
    this.#maximumItems = maximumItems
    this.#pause = pause
    const size = firstSize(text)
    this.#open = new Int32Array(size)
    this.#objects = new Int32Array(size)
    this.#positions = new Int32Array(size)
  }

  #fail(at = this.#at): never {
    throw new Refusal({ invalidAt: at })
  }

  /** The next character after white space; NaN at the end. */
  #next() {
    const next = this.#text.charCodeAt(this.#at)
    if (next > 0x20) return next
    this.#at = endOf(space, this.#text, this.#at)
    return this.#text.charCodeAt(this.#at)
  }

  #take(character: number) {
    if (this.#next() !== character) this.#fail()
    this.#at += 1
  }

  #step() {
    if (++this.#steps % stride === 0) this.#pause()
  }

  /** Reads a string, and returns it with its quotes. */
  #string() {
    const start = this.#at
    this.#take(quote)
    this.#step()
    for (;;) {
      const next = this.#text.charCodeAt(this.#at)
      if (next === quote) return this.#text.slice(start, ++this.#at)
      if (next === backslash) {
        const end = endOf(escape, this.#text, this.#at)
        if (end === this.#at) this.#fail()
        this.#at = end
        this.#step()
      } else if (next >= 0x20) this.#at += 1
      else this.#fail()
    }
  }

  #nameAt(position: number) {
    this.#at = position
    const json = this.#string()
    return json.includes("\\") ? String(JSON.parse(json)) : json.slice(1, -1)
  }

  /** Reads a string, number, boolean or null. */
  #scalar() {
    if (this.#next() === quote) return this.#string()
    const start = this.#at
    this.#at = endOf(bare, this.#text, start)
    return this.#at > start ? this.#text.slice(start, this.#at) : this.#fail()
  }

  /** The object that is read, 0 in a list. */
  get #object() {
    return this.#open[this.#depth] ?? 0
  }

  /** Reads the name of a member, which may stand once in its object. */
  #name() {
    this.#next()
    const position = this.#at
    const name = this.#nameAt(position)
    const end = this.#at
    const object = this.#object
    const last = this.#positions.length - 1
    let slot = hashOf(name, object) & last
    for (let found = 0; (found = this.#positions[slot] ?? 0) !== 0; slot = (slot + 1) & last)
      if (this.#objects[slot] === object && this.#nameAt(found) === name) this.#fail(position)
    this.#objects[slot] = object
    this.#positions[slot] = position
    if (++this.#names * 2 > last) this.#growTable()
    this.#at = end
    this.#take(colon)
    return name
  }

  #growTable() {
    const [objects, positions] = [this.#objects, this.#positions]
    const last = positions.length * 2 - 1
    this.#objects = new Int32Array(last + 1)
    this.#positions = new Int32Array(last + 1)
    positions.forEach((position, index) => {
      const object = objects[index] ?? 0
      if (object === 0) return
      let slot = hashOf(this.#nameAt(position), object) & last
      while (this.#objects[slot] !== 0) slot = (slot + 1) & last
      this.#objects[slot] = object
      this.#positions[slot] = position
    })
    release(objects)
    release(positions)
  }

  /** Opens a container, and returns whether it has a member or an item. */
  #enter() {
    const isObject = this.#text.charCodeAt(this.#at++) === brace
    if (++this.#depth === this.#open.length) {
      const open = this.#open
      this.#open = new Int32Array(2 * open.length)
      this.#open.set(open)
      release(open)
    }
    this.#open[this.#depth] = isObject ? ++this.#lastObject : 0
    return this.#next() !== (isObject ? closingBrace : closingBracket) || this.#hasNext()
  }

  /** Takes a comma, or closes the innermost container. */
  #hasNext() {
    if (this.#next() === comma) {
      this.#at += 1
      return true
    }
    this.#take(this.#object > 0 ? closingBrace : closingBracket)
    this.#depth -= 1
    return false
  }

  /** Reads an object or a list, whose members or items are read by `each`. */
  #container(each: () => void) {
    if (this.#enter())
      do each()
      while (this.#hasNext())
  }

  /** Reads a value of any depth, and leaves it out. */
  #skip() {
    const outside = this.#depth
    let isOpen = false
    do {
      this.#step()
      if (isOpen && this.#object > 0) this.#name()
      const first = this.#next()
      isOpen = (first === brace || first === bracket) && this.#enter()
      if (first !== brace && first !== bracket) this.#scalar()
      while (!isOpen && this.#depth > outside) isOpen = this.#hasNext()
    } while (isOpen)
  }

  #value({ fields, item }: Shape, unknown = 0): string {
    const first = this.#next()
    if (first !== brace && first !== bracket) return this.#scalar()
    const kept: Array<string> = []
    if (first === brace && fields !== undefined) {
      let unknownLeft = unknown
      this.#container(() => {
        const name = this.#name()
        const shape = fields.get(name)
        const value = this.#value(shape ?? {})
        if (shape !== undefined) kept.push(`${JSON.stringify(name)}:${value}`)
        else if (unknownLeft-- > 0) kept.push(`${JSON.stringify(name)}:null`)
      })
    } else if (first === bracket && item !== undefined) {
      this.#container(() => {
        kept.push(this.#value(item))
        if (++this.#items > this.#maximumItems) throw new Refusal({ items: this.#items })
      })
    } else this.#skip()
    return first === brace ? `{${kept.join(",")}}` : `[${kept.join(",")}]`
  }

  release() {
    for (const array of [this.#open, this.#objects, this.#positions]) release(array)
  }

  read({ maximumUnknown, shape }: Wanted): string {
    const text = this.#value(shape, maximumUnknown)
    return Number.isNaN(this.#next()) ? text : this.#fail()
  }
}

/**
 * Prunes a text to what a schema looks at. White space alone is the empty text. Of members that the schema does not know, it keeps the names of the first ones
 * in the outermost object, for the error response. Reading stops at one item too many.
 *
 * @param pause called about each millisecond
 */
export const prune = (text: string, wanted: Wanted, pause = (): void => {}): Pruned => {
  const reader = new Reader(text, wanted.maximumItems, pause)
  try {
    return { text: reader.read(wanted) }
  } catch (error) {
    if (error instanceof Refusal) return text.trim() === "" ? { text: "" } : error.pruned
    throw error
  } finally {
    reader.release()
  }
}

const nothing: Wanted = { shape: {}, maximumItems: Infinity, maximumUnknown: 0 }

/** The position where a text is not JSON, or where a name stands twice in an object; undefined for a good one. */
export const faultAt = (text: string): number | undefined => {
  const pruned = prune(text, nothing)
  return "invalidAt" in pruned ? pruned.invalidAt : undefined
}

/** False if no name stands twice in a text, whichever its object: a tenth of the time of `faultAt` for a small search. */
export const mayRepeat = (text: string): boolean => {
  if (text.includes("\\")) return true
  const names: Array<string> = []
  const parts = text.split('"', 64)
  for (let index = 2; index < parts.length; index += 2) {
    if (parts[index]?.trimStart().startsWith(":") !== true) continue
    const name = parts[index - 1] ?? ""
    if (names.includes(name)) return true
    names.push(name)
  }
  return parts.length === 64
}
