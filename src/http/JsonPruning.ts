/**
 * JSON texts, read without making values of them. `JSON.parse` silently drops the first of two members with the same name,
 * and 4 MiB of nested lists take 350 MiB: in the thread of large bodies, it would end the jobs of all senders. Imports
 * little: with effect, the thread would take 50 MiB more.
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

const hashOf = (name: string) => {
  let hash = seed
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

/** Reads a text from its start, or throws a `Refusal`. */
class Reader {
  readonly #text: string
  readonly #maximumItems: number
  readonly #pause: () => void
  /**
   * The open containers: for each, the index of the one around it (`~index` for a list), and behind it the positions of its
   * names. Sets of names would take 130 MiB for 4 MiB of nested objects. No entry has fewer characters than one, and the
   * system gives memory only to those that are written.
   */
  readonly #open: Int32Array<ArrayBuffer>
  /** The innermost container; 0 outside of all. */
  #container = 0
  #end = 1
  #at = 0
  #items = 0
  #steps = 0

  constructor(text: string, maximumItems: number, pause: () => void) {
    this.#text = text
    this.#maximumItems = maximumItems
    this.#pause = pause
    this.#open = new Int32Array(text.length + 1)
  }

  #isObject(container = this.#container) {
    return (this.#open[container] ?? 0) >= 0
  }

  #around(container: number) {
    const index = this.#open[container] ?? 0
    return index < 0 ? ~index : index
  }

  /** Ends the reading, at the first name that stands twice if there is one. */
  #refuse(pruned: Pruned = { invalidAt: this.#at }): never {
    let first = Infinity
    let end = this.#end
    for (let container = this.#container; container > 0; container = this.#around(container)) {
      first = Math.min(first, this.#repeatedIn(container, end) ?? Infinity)
      end = container
    }
    throw new Refusal(first < Infinity ? { invalidAt: first } : pruned)
  }

  /** The next character after white space; NaN at the end. */
  #next() {
    const next = this.#text.charCodeAt(this.#at)
    if (next > 0x20) return next
    this.#at = endOf(space, this.#text, this.#at)
    return this.#text.charCodeAt(this.#at)
  }

  #take(character: number) {
    if (this.#next() !== character) this.#refuse()
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
        if (end === this.#at) this.#refuse()
        this.#at = end
        this.#step()
      } else if (next >= 0x20) this.#at += 1
      else this.#refuse()
    }
  }

  /** Reads a string, number, boolean or null. */
  #scalar() {
    if (this.#next() === quote) return this.#string()
    const start = this.#at
    this.#at = endOf(bare, this.#text, start)
    return this.#at > start ? this.#text.slice(start, this.#at) : this.#refuse()
  }

  /** Reads the name of a member, and returns it with its quotes. */
  #name() {
    this.#next()
    this.#open[this.#end] = this.#at
    const name = this.#string()
    this.#end += 1
    this.#take(colon)
    return name
  }

  /** The name at a position, as it is without escapes. */
  #nameAt(position: number) {
    this.#at = position
    const name = this.#string()
    return name.includes("\\") ? String(JSON.parse(name)) : name.slice(1, -1)
  }

  /** The first position of a name that stands before it in the same object. */
  #repeatedIn(container: number, end: number): number | undefined {
    if (!this.#isObject(container) || end - container < 3) return undefined
    const at = this.#at
    // A hash table, at most half full: a set takes 30 MiB for the names of 4 MiB.
    const table = new Int32Array(2 ** Math.ceil(Math.log2(2 * (end - container))))
    for (const position of this.#open.subarray(container + 1, end)) {
      const name = this.#nameAt(position)
      let slot = hashOf(name) & (table.length - 1)
      for (let found = 0; (found = table[slot] ?? 0) > 0; slot = (slot + 1) & (table.length - 1))
        if (this.#nameAt(found) === name) return position
      table[slot] = position
    }
    this.#at = at
    return undefined
  }

  /** Opens a container, and returns whether it has a member or an item. */
  #enter() {
    const isObject = this.#text.charCodeAt(this.#at++) === brace
    this.#open[this.#end] = isObject ? this.#container : ~this.#container
    this.#container = this.#end++
    return this.#next() !== (isObject ? closingBrace : closingBracket) || this.#hasNext()
  }

  /** Takes a comma, or closes the innermost container. */
  #hasNext() {
    if (this.#next() === comma) {
      this.#at += 1
      return true
    }
    this.#take(this.#isObject() ? closingBrace : closingBracket)
    if (this.#repeatedIn(this.#container, this.#end) !== undefined) this.#refuse()
    this.#end = this.#container
    this.#container = this.#around(this.#end)
    return false
  }

  /** Reads a value of any depth, and leaves it out. */
  #skip() {
    const outside = this.#container
    let isOpen = false
    do {
      this.#step()
      if (isOpen && this.#isObject()) this.#name()
      const first = this.#next()
      isOpen = (first === brace || first === bracket) && this.#enter()
      if (first !== brace && first !== bracket) this.#scalar()
      while (!isOpen && this.#container > outside) isOpen = this.#hasNext()
    } while (isOpen)
  }

  /** Reads an object or a list, whose members or items are read by `each`. */
  #each(read: () => void) {
    if (this.#enter())
      do read()
      while (this.#hasNext())
  }

  #value({ fields, item }: Shape, unknown = 0): string {
    const first = this.#next()
    if (first !== brace && first !== bracket) return this.#scalar()
    const kept: Array<string> = []
    if (first === brace && fields !== undefined) {
      let unknownLeft = unknown
      this.#each(() => {
        const name = String(JSON.parse(this.#name()))
        const shape = fields.get(name)
        const value = this.#value(shape ?? {})
        if (shape !== undefined) kept.push(`${JSON.stringify(name)}:${value}`)
        else if (unknownLeft-- > 0) kept.push(`${JSON.stringify(name)}:null`)
      })
    } else if (first === bracket && item !== undefined) {
      this.#each(() => {
        kept.push(this.#value(item))
        if (++this.#items > this.#maximumItems) this.#refuse({ items: this.#items })
      })
    } else this.#skip()
    return first === brace ? `{${kept.join(",")}}` : `[${kept.join(",")}]`
  }

  read({ maximumUnknown, shape }: Wanted): string {
    const text = this.#value(shape, maximumUnknown)
    return Number.isNaN(this.#next()) ? text : this.#refuse()
  }

  /** Gives the memory of the containers back. V8 would keep it until there is much more. */
  release() {
    this.#open.buffer.transfer(0)
  }
}

/**
 * Prunes a text to what a schema looks at. White space alone is the empty text. Of members that the schema does not know,
 * it keeps the names of the first ones in the outermost object, for the error response. Reading stops at one item too many.
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
