/** The tables of commands. */
import { assert, it } from "@effect/vitest"
import * as Table from "../../../src/cli/Output.ts"

const columns: Table.Columns<{ readonly name: string; readonly note: string | null }> = { NAME: "name", NOTE: "note" }

it("A table is aligned, also where characters are wide, and has a dash for nothing", () => {
  const rows = [
    { name: "a", note: "first" },
    { name: "ファイル", note: null },
    { name: "longest name", note: "z" }
  ]
  assert.deepStrictEqual(Table.lines(columns, rows), [
    "NAME          NOTE",
    "a             first",
    "ファイル      -",
    "longest name  z"
  ])
})

it("A line of a table is cut to the width of the terminal", () => {
  assert.deepStrictEqual(Table.lines(columns, [{ name: "ファイル", note: "1234567890" }], 14), [
    "NAME      NOTE",
    "ファイル  123…"
  ])
})

it("Text from elsewhere stays in its line and is no command to the terminal", () => {
  const [, line] = Table.lines(columns, [{ name: "\u001b[31mred\u001b[0m", note: "one\ntwo\ud800" }])
  assert.strictEqual(line, String.raw`\u001b[31mred\u001b[0m  one\ntwo\ud800`)
})

it("A time is shown to the second", () => {
  assert.strictEqual(Table.second("2026-01-31T09:30:00.123Z"), "2026-01-31 09:30:00")
})
