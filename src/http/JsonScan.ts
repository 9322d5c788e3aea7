/** Checks the syntax of JSON without making its values: memory stays small, and the position of the fault is known. */

/** Receives what a text holds, in order. */
export interface Visitor {
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
export const scan = (text: string, visitor: Visitor): number | undefined => {
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
