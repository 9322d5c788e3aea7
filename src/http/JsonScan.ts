/**
 * Checks the syntax of JSON in steps, so that a long text does not block other requests. `JSON.parse` cannot be
 * interrupted, and takes longest for malicious texts.
 */

/** Receives what a text holds, in order. */
export interface Visitor {
  readonly open: (container: "object" | "array") => void
  readonly close: () => void
  /** The name of a member, quotes included; `end` is exclusive. */
  readonly name: (start: number, end: number) => void
  /** A string, number, boolean or null; `end` is exclusive. */
  readonly scalar: (start: number, end: number) => void
  /** Whether to stop reading. */
  readonly isDone: () => boolean
}

const space = 0x20
const quote = 0x22
const backslash = 0x5c

const isSpace = (code: number) => code === space || code === 0x0a || code === 0x0d || code === 0x09

const isDigit = (code: number) => code >= 0x30 && code <= 0x39

const isHexDigit = (code: number) => isDigit(code) || ((code | space) >= 0x61 && (code | space) <= 0x66)

/** How many characters the escape at a position has; 0 if it is not valid. */
const escapeLength = (text: string, at: number): number => {
  if (text.charCodeAt(at + 1) !== 0x75) return /["\\/bfnrt]/.test(text.charAt(at + 1)) ? 2 : 0
  for (let index = at + 2; index < at + 6; index++) if (!isHexDigit(text.charCodeAt(index))) return 0
  return 6
}

const afterDigits = (text: string, at: number): number => {
  let position = at
  while (isDigit(text.charCodeAt(position))) position++
  return position
}

/** Where the number at a position ends; the position itself if there is none. */
const numberEnd = (text: string, at: number): number => {
  const first = text.charAt(at) === "-" ? at + 1 : at
  let end = text.charAt(first) === "0" ? first + 1 : afterDigits(text, first)
  if (end === first) return at
  if (text.charAt(end) === ".") {
    const fraction = afterDigits(text, end + 1)
    if (fraction === end + 1) return at
    end = fraction
  }
  if ((text.charCodeAt(end) | space) !== 0x65) return end
  const digits = /[+-]/.test(text.charAt(end + 1)) ? end + 2 : end + 1
  const exponent = afterDigits(text, digits)
  return exponent === digits ? at : exponent
}

const literals = ["true", "false", "null"]

/** Where the number or literal at a position ends; the position itself if there is none. */
const bareEnd = (text: string, at: number): number => {
  const literal = literals.find((word) => text.startsWith(word, at))
  return literal === undefined ? numberEnd(text, at) : at + literal.length
}

/** How many characters are read between two yields: a fraction of a millisecond. */
const stride = 8192

/** Which containers are open, a byte each: a text may be nested as deeply as it is long. */
class Nesting {
  private kinds = new Uint8Array(64)
  depth = 0

  push(isObject: boolean) {
    if (this.depth === this.kinds.length) {
      const grown = new Uint8Array(2 * this.depth)
      grown.set(this.kinds)
      this.kinds = grown
    }
    this.kinds[this.depth++] = isObject ? 1 : 0
  }

  get isObject() {
    return this.kinds[this.depth - 1] === 1
  }
}

/**
 * Reads a text, yielding now and then. Returns the position, in characters, where the text stops being JSON; undefined
 * if all of it is JSON, or the visitor stopped before.
 */
export function* scan(text: string, visitor: Visitor): Generator<void, number | undefined> {
  const { length } = text
  const nesting = new Nesting()
  let expected: "value" | "value or end" | "name" | "name or end" | "colon" | "comma or end" | "nothing" = "value"
  let position = 0
  let nextYield = stride
  for (;;) {
    if (position >= nextYield) {
      yield
      nextYield = position + stride
    }
    if (position >= length) return expected === "nothing" ? undefined : length
    const code = text.charCodeAt(position)
    if (isSpace(code)) {
      position++
      continue
    }
    const isName = expected === "name" || expected === "name or end"
    const isValue = expected === "value" || expected === "value or end"
    if (code === quote && (isName || isValue)) {
      const start = position++
      for (;;) {
        const limit = Math.min(length, nextYield)
        let at = space
        while (position < limit) {
          at = text.charCodeAt(position)
          if (at === quote || at === backslash || at < space) break
          position++
        }
        if (position >= length) return length
        if (position >= limit) {
          yield
          nextYield = position + stride
        } else if (at === quote) {
          position++
          break
        } else {
          const escape = at === backslash ? escapeLength(text, position) : 0
          if (escape === 0) return position
          position += escape
        }
      }
      if (isName) {
        visitor.name(start, position)
        expected = "colon"
        continue
      }
      visitor.scalar(start, position)
    } else if ((code === 0x7b || code === 0x5b) && isValue) {
      const isObject = code === 0x7b
      visitor.open(isObject ? "object" : "array")
      nesting.push(isObject)
      expected = isObject ? "name or end" : "value or end"
      position++
      continue
    } else if (
      (code === 0x7d && nesting.isObject && (expected === "name or end" || expected === "comma or end")) ||
      (code === 0x5d && !nesting.isObject && (expected === "value or end" || expected === "comma or end"))
    ) {
      nesting.depth--
      visitor.close()
      position++
    } else if (code === 0x3a && expected === "colon") {
      expected = "value"
      position++
      continue
    } else if (code === 0x2c && expected === "comma or end") {
      expected = nesting.isObject ? "name" : "value"
      position++
      continue
    } else {
      const end = isValue ? bareEnd(text, position) : position
      if (end === position) return position
      visitor.scalar(position, end)
      position = end
    }
    // A value ended.
    if (visitor.isDone()) return undefined
    expected = nesting.depth === 0 ? "nothing" : "comma or end"
  }
}
