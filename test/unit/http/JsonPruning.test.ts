/** JSON that is pruned for a schema: as strict as `JSON.parse`, but for names that stand twice. */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { wantedBy } from "../../../src/http/JsonBodyServer.ts"
import { faultAt, mayRepeat, prune } from "../../../src/http/JsonPruning.ts"

const Body = Schema.Struct({
  list: Schema.Array(Schema.Struct({ id: Schema.String, name: Schema.optionalKey(Schema.NullOr(Schema.String)) })),
  text: Schema.String,
  number: Schema.Unknown
}).annotate({ maximumItems: 5 })

const wanted = wantedBy(Body)

const pruned = (text: string) => prune(text, wanted)

/**
 * The members of a text with the places of their names, as `JSON.parse` sees them: a scanner of tokens alone, for a text
 * that is JSON.
 */
const firstRepeated = (text: string) => {
  const open: Array<Set<unknown> | undefined> = []
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/g)) {
    if (token === "{" || token === "[") open.push(token === "{" ? new Set() : undefined)
    else if (token === "}" || token === "]") open.pop()
    else if (/^\s*:/.test(text.slice(index + token.length))) {
      const name: unknown = JSON.parse(token)
      if (open.at(-1)?.has(name) === true) return index
      open.at(-1)?.add(name)
    }
  }
  return undefined
}

const isJson = (text: string) => Result.isSuccess(Result.try((): unknown => JSON.parse(text)))

/** True if a text is JSON in which no name stands twice. */
const isGood = (text: string) => isJson(text) && firstRepeated(text) === undefined

const isPruned = (text: string) => "text" in pruned(text) && faultAt(text) === undefined

const tokens = String.raw`{ } [ ] , : "id" "list" "x" "\u0069d" "__proto__" "\ud800" " \ "\u12" "\x" é // 0 -0 - 1.5 1e400 01 1. .5 1e
  1E+5 0x1 true false null nul NaN`
const pieces = [...tokens.split(/\s+/), " ", "\n", "\t", "\r", "\u0000", '"a\u0000"', '"a\n"', "\ufeff"]

const Piece = Schema.Literals(pieces)

const kept = [
  ["all that the schema knows", '{"text":"a","number":1e400}', '{"text":"a","number":1e400}'],
  ["numbers to the letter", '{"number":-0.10E+02}', '{"number":-0.10E+02}'],
  ["no white space", ' { "text" :\t"a b" ,\r\n"number" : 1 } ', '{"text":"a b","number":1}'],
  ["the kind of a container that should be none", '{"text":{"a":[1]},"number":[{}]}', '{"text":{},"number":[]}'],
  ["items, and of these what the schema knows", '{"list":[{"id":"a","x":[1]},3,[4]]}', '{"list":[{"id":"a"},3,[]]}'],
  ["names however they are written", String.raw`{"\u0074ext":[1]}`, '{"text":[]}'],
  ["names of unknown members, not their values", '{"x":[1],"text":"a","y":2}', '{"x":null,"text":"a","y":null}'],
  ["no object where a list should be", '{"list":{"id":"a"}}', '{"list":{}}'],
  ["a scalar as it is", ' "a" ', '"a"'],
  ["a list as an empty one", "[1,[2]]", "[]"]
] as const

/** Texts in which a name stands twice, and where. */
const repeated = [
  ['{"text":"a","text":"b"}', 12],
  [String.raw`{"text":"a", "\u0074ext":"b"}`, 13],
  ['{"list":[{"id":"a"},{"id":"b","id":"c"}]}', 30],
  ['{"x":[[{"y":{"a":1,"b":{},"a":1}}]]}', 26],
  ['{"a":{"a":1,"b":{"a":1}},"b":1,"a":2}', 31],
  ['{"__proto__":1,"__proto__":1}', 15],
  ['{"":1,"":1}', 6],
  ['[{"1":1,"1":1}]', 8],
  [`${'{"a":'.repeat(300_000)}{"b":1,"b":2}${"}".repeat(300_000)}`, 1_500_007]
] as const

const notRepeated = [
  '{"1":0,"01":0,"1.0":0,"A":0,"a":0}',
  '{"\u00e9":0,"e\u0301":0}',
  '{"a":{"a":{"a":[{"a":1},{"a":1}]}}}',
  '{"text":"a\\",\\"text","x":"{\\"a\\":1,\\"a\\":1}"}',
  `{${Array.from({ length: 5000 }, (_, index) => `"${index}":1`).join(",")}}`
]

/** JSON of names and containers in this order; a container that is closed, or left open, ends there. */
const nested = (parts: ReadonlyArray<string>) => {
  const open = ["}"]
  let text = "{"
  for (const token of parts) {
    if (token === "}" || token === "]") {
      if (open.length > 1) text += `${open.pop()},`
    } else if (token === "{" || token === "[") {
      text += `${open.at(-1) === "}" ? `"${open.length}${text.length}":` : ""}${token}`
      open.push(token === "{" ? "}" : "]")
    } else text += open.at(-1) === "}" ? `${token} :1,` : `${token},`
  }
  return `${text}${open.toReversed().join("")}`.replaceAll(/,+([}\]])/g, "$1")
}

describe("pruned JSON", () => {
  it.each(kept)("has %s", (_, text, expected) => {
    assert.deepStrictEqual(pruned(text), { text: expected })
  })

  it("has the first hundred names that the schema does not know, and all that it knows", () => {
    const unknown = Array.from({ length: 300 }, (_, index) => `"x${index}":[]`)
    const first = Array.from({ length: 100 }, (_, index) => `"x${index}":null`)
    assert.deepStrictEqual(pruned(`{${unknown.join(",")},"text":"a"}`), { text: `{${first.join(",")},"text":"a"}` })
  })

  it("has as many items as there may be, and is not read on after one more", () => {
    assert.isTrue(isPruned('{"list":[1,2,3,4,5]}'))
    assert.deepStrictEqual(pruned('{"list":[1,2,3,4,5,6, no JSON'), { items: 6 })
    assert.isTrue(isPruned('{"other":[1,2,3,4,5,6]}'))
  })

  it("has no name that stands twice in an object", () => {
    for (const [text, invalidAt] of repeated) {
      assert.deepStrictEqual([pruned(text), faultAt(text), mayRepeat(text)], [{ invalidAt }, invalidAt, true])
    }
    for (const text of notRepeated) assert.isTrue(isPruned(text), text)
  })

  const Pieces = Schema.Array(Piece).check(Schema.isMaxLength(10))

  it.prop("is JSON exactly where the text is", { all: Pieces }, ({ all }) => {
    const text = all.join("")
    assert.strictEqual(isPruned(text) && text.trim() !== "", isGood(text), text)
  })

  it.prop("is as strict around what is JSON", { value: Schema.Json, piece: Piece }, ({ value, piece }) => {
    const json = JSON.stringify(value, undefined, 1)
    assert.isTrue(isPruned(json))
    for (const text of [`${json}${piece}`, `${piece}${json}`, `{"x":${json}${piece}}`, json.slice(0, -1)]) {
      assert.strictEqual(isPruned(text) && text !== "", isGood(text), text)
    }
  })

  const Name = Schema.Literals(['"a"', String.raw`"\u0061"`, '"b"', '""', '"__proto__"', '"1"', String.raw`"\\"`])

  it.prop(
    "is refused exactly where a name stands twice",
    { names: Schema.Array(Schema.Union([Name, Schema.Literals(["{", "[", "}", "]"])])) },
    ({ names }) => {
      const text = nested(names)
      const at = firstRepeated(text)
      assert.strictEqual(faultAt(text), at, text)
      assert.strictEqual(isPruned(text), at === undefined, text)
      if (at !== undefined) assert.isTrue(mayRepeat(text), text)
    }
  )
})
