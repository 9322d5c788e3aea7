/** Pages of changes from their rows: of one resource, and of all. */
import { assert, it } from "@effect/vitest"
import { searchable } from "../../../src/api/records/index.ts"
import { pets } from "../../../src/api/records/Pets.ts"
import { type ChangeRow, ofAll, ofResource, placeOf } from "../../../src/records/FeedPages.ts"
import * as Pages from "../../../src/records/Pages.ts"

const written = (id: string, position: number, branch?: string): ChangeRow => ({
  removal: null,
  position,
  record: Pages.fromText(`{"id":"${id}"}`),
  ...(branch !== undefined && { branch })
})
const deleted = (id: string, position: number, branch?: string): ChangeRow => ({
  removal: `-${id}`,
  position,
  record: null,
  ...(branch !== undefined && { branch })
})
/** The removal of a record that exists again. */
const replaced = (id: string, position: number): ChangeRow => ({ removal: `+${id}`, position, record: null })

const state = { resets: [], cursor: "c", hasMore: false, isConsistent: true }

it.each(searchable)("the record of %s begins with its id", ({ record }) => {
  assert.strictEqual(Object.keys(record.fields)[0], "id")
})

it.each(["a", 'a "quoted" one', "back\\slash", "\u{1F436}", "a\nb"])("the place of a record has its id: %s", (id) => {
  const record = Pages.fromText(JSON.stringify({ id, name: '","id":"other"' }))
  assert.deepStrictEqual(placeOf({ removal: null, position: 7, record }), { id, position: 7, branch: "~" })
})

it("a removal is its id, unless there is a record again", () => {
  const rows = [deleted("a", 1), replaced("b", 2), written("c", 3)]
  assert.strictEqual(
    Pages.toText(ofResource(pets).render({ ...state, rows })),
    `{"body":[{"id":"c"}],"removed":["a"],"cursor":"c","has_more":false}`
  )
})

it("a page of all resources begins with those that begin anew, and names the resource of each change", () => {
  const rows = [written("a", 1, "invoices"), deleted("b", 1, "invoice_lines-")]
  const page = JSON.parse(Pages.toText(ofAll(searchable).render({ ...state, resets: ["pets"], rows })))
  assert.match(page.schema, /^[0-9a-f]{8}$/)
  assert.deepStrictEqual(page, {
    body: [
      { resource: "pets", reset: true },
      { resource: "invoices", record: { id: "a" } },
      { resource: "invoice-lines", removed: "b" }
    ],
    cursor: "c",
    has_more: false,
    is_consistent: true,
    schema: page.schema
  })
})

it("the version of the fields changes with a resource", () => {
  const versionOf = (...resources: ReadonlyArray<(typeof searchable)[number]>) =>
    JSON.parse(Pages.toText(ofAll(resources).render({ ...state, rows: [] }))).schema
  const [first, second] = searchable
  assert.notStrictEqual(versionOf(first), versionOf(first, ...(second === undefined ? [] : [second])))
})

it.each([
  { positions: [1, 1, 2, 2, 2], limit: 4, length: 2 },
  { positions: [1, 1, 2, 2, 3], limit: 4, length: 4 },
  { positions: [1, 1, 1, 1, 1], limit: 4, length: 4 },
  { positions: [1, 2], limit: 1, length: 1 }
])("a transaction that fits into a page of all resources is not cut apart: %o", ({ length, limit, positions }) => {
  const rows = positions.map((position) => written("a", position, "pets"))
  assert.strictEqual(ofAll(searchable).lengthOf(rows, limit), length)
})

it.each([[[replaced("a", 1), written("a", 1)]], [[written("a", 1), replaced("a", 1)]]])(
  "the two rows of a record that one transaction deleted and inserted are not cut apart",
  (rows) => assert.strictEqual(ofResource(pets).lengthOf(rows, 1), 2)
)
