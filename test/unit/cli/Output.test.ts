/** The tables of commands. */
import { assert, it } from "@effect/vitest"
import * as Table from "../../../src/cli/Output.ts"

const fields = ["name", "note"]

it("A table is aligned, also where characters are wide, and has a dash for nothing", () => {
  const rows = [
    { name: "a", note: "first" },
    { name: "ファイル", note: null },
    { name: "longest name", note: "z" }
  ]
  assert.deepStrictEqual(Table.lines(fields, rows), [
    "name          note",
    "a             first",
    "ファイル      -",
    "longest name  z"
  ])
})

it("A cell of a table is cut", () => {
  const [, line] = Table.lines(fields, [{ name: "n", note: "é".repeat(201) }])
  assert.strictEqual(line, `n     ${"é".repeat(199)}…`)
})

it("Text from elsewhere stays in its line and is no command to the terminal", () => {
  const [, line] = Table.lines(fields, [{ name: "\u001b[31mred\u001b[0m", note: "one\ntwo\ud800" }])
  assert.strictEqual(line, String.raw`\u001b[31mred\u001b[0m  one\ntwo\ud800`)
})

it("A time is shown to the second", () => {
  const [, line] = Table.lines(fields, [{ name: "2026-01-31T09:30:00.123Z", note: "2026-01-31" }])
  assert.strictEqual(line, "2026-01-31 09:30:00  2026-01-31")
})
