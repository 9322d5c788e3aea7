/** A page of changes from its rows: removals, and records that were deleted and exist again. */
import { assert, it } from "@effect/vitest"
import { searchable } from "../../../src/api/records/index.ts"
import * as Pages from "../../../src/records/Pages.ts"

const written = (id: string, position: number): Pages.ChangeRow => ({
  removal: null,
  position,
  record: Pages.fromText(`{"id":"${id}"}`)
})
const deleted = (id: string, position: number): Pages.ChangeRow => ({ removal: `-${id}`, position, record: null })
/** The removal of a record that exists again. */
const replaced = (id: string, position: number): Pages.ChangeRow => ({ removal: `+${id}`, position, record: null })

const shown = (rows: ReadonlyArray<Pages.ChangeRow>, limit: number) => {
  const page = Pages.changesPage(rows, limit)
  const cursor = `${page.last?.position} ${page.last?.id}`
  return Pages.toText(Pages.changesResponse(page, { cursor, lag: 0, isComplete: true }).json)
}

it.each(searchable)("the record of %s begins with its id", ({ record }) => {
  assert.strictEqual(Object.keys(record.fields)[0], "id")
})

it.each(["a", 'a "quoted" one', "back\\slash", "\u{1F436}", "a\nb"])(
  "the cursor is after the id of the last record: %s",
  (id) => {
    const row: Pages.ChangeRow = {
      removal: null,
      position: 7,
      record: Pages.fromText(JSON.stringify({ id, name: '","id":"other"' }))
    }
    assert.deepStrictEqual(Pages.changesPage([row], 1).last, { id, position: 7 })
  }
)

it("a removal is its id, unless there is a record again", () => {
  const rows = [deleted("a", 1), replaced("b", 2), written("c", 3)]
  assert.strictEqual(shown(rows, 3), `{"body":[{"id":"c"}],"removed":["a"],"cursor":"3 c","has_more":false}`)
})

it.each([[[replaced("a", 1), written("a", 1)]], [[written("a", 1), replaced("a", 1)]]])(
  "the two rows of a record that one transaction deleted and inserted are not cut apart",
  (rows) => {
    assert.strictEqual(shown(rows, 1), `{"body":[{"id":"a"}],"removed":[],"cursor":"1 a","has_more":true}`)
  }
)
