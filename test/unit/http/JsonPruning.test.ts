/** JSON that is pruned for a schema: as strict as `JSON.parse`, and the same to the schema. */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { invalidAt, tooLong } from "../../../src/api/Faults.ts"
import { prune, wantedBy } from "../../../src/http/JsonPruning.ts"

const Body = Schema.Struct({
  list: Schema.Array(Schema.Struct({ id: Schema.String, name: Schema.optionalKey(Schema.NullOr(Schema.String)) })),
  text: Schema.String,
  number: Schema.Unknown
}).annotate({ maximumItems: 5 })

const wanted = wantedBy(Body)

const pruned = (text: string) => prune(text, wanted)

const tooLongBy = (count: number) => Result.fail(invalidAt(["body"], tooLong(5, count)))

const isPruned = (text: string) => Result.isSuccess(pruned(text))

const isJson = (text: string) => Result.isSuccess(Result.try((): unknown => JSON.parse(text)))

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
  ["the last member of a name", String.raw`{"text":"a","x":1,"\u0074ext":"b"}`, String.raw`{"\u0074ext":"b","x":null}`],
  ["names however they are written", String.raw`{"\u0074ext":[1]}`, String.raw`{"\u0074ext":[]}`],
  ["names of unknown members, not their values", '{"x":[1],"text":"a","y":2}', '{"x":null,"text":"a","y":null}'],
  ["no object where a list should be", '{"list":{"id":"a"}}', '{"list":{}}'],
  ["a scalar as it is", ' "a" ', '"a"'],
  ["a list as an empty one", "[1,[2]]", "[]"]
] as const

describe("pruned JSON", () => {
  it.each(kept)("has %s", (_, text, expected) => {
    assert.deepStrictEqual(pruned(text), Result.succeed(expected))
  })

  it("has the first hundred names that the schema does not know, and all that it knows", () => {
    const unknown = Array.from({ length: 300 }, (_, index) => `"x${index}":[]`)
    const first = Array.from({ length: 100 }, (_, index) => `"x${index}":null`)
    const expected = Result.succeed(`{${first.join(",")},"text":"a"}`)
    assert.deepStrictEqual(pruned(`{${unknown.join(",")},"text":"a"}`), expected)
  })

  it("has as many items as there may be, and is not read on after one more", () => {
    assert.isTrue(isPruned('{"list":[1,2,3,4,5]}'))
    assert.deepStrictEqual(pruned('{"list":[1,2,3,4,5,6, no JSON'), tooLongBy(6))
    assert.deepStrictEqual(pruned('{"list":[1,2,3],"list":[1,2,3]}'), tooLongBy(6))
    assert.isTrue(isPruned('{"other":[1,2,3,4,5,6]}'))
  })

  const Pieces = Schema.Array(Piece).check(Schema.isMaxLength(10))

  it.prop("is JSON exactly where the text is", { all: Pieces }, ({ all }) => {
    const text = all.join("")
    assert.strictEqual(isPruned(text), isJson(text), text)
  })

  it.prop("is as strict around what is JSON", { value: Schema.Json, piece: Piece }, ({ value, piece }) => {
    const json = JSON.stringify(value, undefined, 1)
    assert.isTrue(isPruned(json))
    for (const text of [`${json}${piece}`, `${piece}${json}`, `{"x":${json}${piece}}`, json.slice(0, -1)]) {
      assert.strictEqual(isPruned(text), isJson(text), text)
    }
  })
})
