/** The tables of commands. */
import { assert, it } from "@effect/vitest"
import * as Output from "../../../src/cli/Output.ts"

it("A table is aligned by width, and a cell is cut, and is no command to the terminal", () => {
  const rows = [
    ["nothing", null],
    ["ファイル", "a wide name"],
    ["\u001b[31mred", "one\ntwo\ud800"],
    ["a time", "2026-01-31T09:30:00.123Z"],
    ["a day", "2026-01-31"],
    ["long", "é".repeat(201)]
  ]
  const records = rows.map(([name, note]) => ({ name, note }))
  assert.deepStrictEqual(Output.lines(["name", "note"], records), [
    "name           note",
    "nothing        -",
    "ファイル       a wide name",
    String.raw`\u001b[31mred  one\ntwo\ud800`,
    "a time         2026-01-31 09:30:00",
    "a day          2026-01-31",
    `long           ${"é".repeat(199)}…`
  ])
})
