/** The cursors that a feed resumes, after a restore, on a standby and after a failover; and the cursors that it gives out. */
import { assert, it } from "@effect/vitest"
import {
  type Cursor,
  cursorAfter,
  decode,
  encode,
  type FeedSnapshot,
  type FeedState,
  isOf,
  isUnchanged,
  type Place,
  type Verdict,
  verdictOf
} from "../../../src/records/Cursor.ts"

const cursor: Cursor = {
  feed: "feed0000",
  mark: "mark0001",
  ceiling: 100,
  wal: 5000,
  target: 0,
  floor: 0,
  position: 90,
  id: "a"
}

const here: FeedSnapshot = {
  token: "feed0000",
  mark: "mark0001",
  isStandby: false,
  run: "run",
  horizon: 120,
  ceiling: 120,
  inFlight: 0,
  wal: 6000,
  organization: "org"
}

const state: FeedState = { snapshot: here, isInPlace: true, isMarked: true, proven: 95, durableUntil: null }

/** The difference to a primary that gave the cursor out. */
type But = Partial<FeedState> & Partial<FeedSnapshot>

const standby: But = { isStandby: true }
const promoted: But = { mark: "mark0002" }

const verdicts: ReadonlyArray<readonly [string, Verdict, But, Cursor?]> = [
  ["is resumed where it was given out", "Readable", {}, cursor],
  ["may be missing", "Readable", {}],
  ["is resumed on a standby, which may lag", "Readable", { ...standby, ceiling: 50 }, cursor],
  ["waits until the order has restarted in a replaced table", "Unsettled", { isInPlace: false }, cursor],
  ["waits for the first mark of the run of a server", "Unsettled", { isMarked: false }, cursor],
  ["is expired where the order has restarted", "Expired", { token: "another0" }, cursor],
  ["is resumed just below the ceiling of its primary", "Readable", { ceiling: 91 }, cursor],
  ["is expired on a primary that was set back to its position", "Expired", { ceiling: 90 }, cursor],
  ["is resumed after a failover if the last mark proves its ceiling", "Readable", { ...promoted, proven: 100 }, cursor],
  ["is expired after a failover beyond the last mark", "Expired", { ...promoted, proven: 99 }, cursor],
  ["is resumed after a switchover up to its end", "Readable", { ...promoted, durableUntil: 5000 }, cursor],
  ["is expired after a switchover beyond its end", "Expired", { ...promoted, durableUntil: 4999 }, cursor],
  ["is expired if a primary does not know its mark", "Expired", { mark: "other000", proven: null }, cursor],
  ["is behind if a standby does not know its mark", "Behind", { ...standby, ...promoted, proven: null }, cursor]
]

it.for(verdicts)("a cursor %s", ([, verdict, but, given]) =>
  assert.strictEqual(verdictOf({ ...state, ...but, snapshot: { ...here, ...but } }, given), verdict)
)

const examined: ReadonlyArray<readonly [string, Partial<FeedSnapshot>, Partial<Cursor>?]> = [
  ["of another run of the server, or another table", { run: "another" }],
  ["of another order", { token: "another0" }],
  ["of a server with another mark", promoted],
  ["of a server that was promoted", standby],
  ["of a cursor of another order", {}, { feed: "another0" }],
  ["of a cursor with another mark", {}, { mark: "mark0002" }],
  ["of a cursor at the ceiling", { ceiling: 90 }, {}]
]

it.for(examined)("the whole state is examined %s", ([, but, given]) => {
  const at = given && { ...cursor, ...given }
  assert.isTrue(isUnchanged(here, here, at && cursor))
  assert.isFalse(isUnchanged(here, { ...here, ...but }, at))
})

it("the ceiling of a standby says nothing about a cursor", () =>
  assert.isTrue(isUnchanged({ ...here, ...standby }, { ...here, ...standby, ceiling: 90 }, cursor)))

const page = (hasMore: boolean, last?: Place) => ({ hasMore, last })

it("a cursor has the order and the mark of its last server, and the highest ceiling and log of all servers", () => {
  const last = { position: 95, id: "b" }
  const ahead = cursorAfter(cursor, page(true, last), { ...here, ...promoted, token: "another0" })
  assert.deepStrictEqual(ahead, { ...cursor, ...last, feed: "another0", mark: "mark0002", ceiling: 120, wal: 6000 })
  const behind = cursorAfter(cursor, page(true, last), { ...here, horizon: 96, ceiling: 97, wal: 4000 })
  assert.deepStrictEqual(behind, { ...cursor, ...last })
})

/** A load that began at a horizon of 100, with transactions up to 120 in progress, after a page. */
const loading = cursorAfter(undefined, page(true, { position: 40, id: "a" }), { ...here, horizon: 100, ceiling: 120 })

it("a first load is complete after a last page at or above the ceiling of its beginning", () => {
  assert.deepInclude(loading, { target: 120, floor: 100, ceiling: 120, position: 40 })
  const last = cursorAfter(loading, page(false), { ...here, horizon: 119, ceiling: 150 })
  assert.strictEqual(last.target, 120)
  assert.strictEqual(cursorAfter(last, page(true), { ...here, horizon: 120, ceiling: 160 }).target, 120)
  assert.strictEqual(cursorAfter(last, page(false), { ...here, horizon: 120, ceiling: 160 }).target, 0)
})

it("removals from before the first load are skipped, and none that follow, whichever server answers", () => {
  const passed = cursorAfter(loading, page(false), { ...here, horizon: 100 })
  assert.deepInclude(passed, { position: 99, id: "~", floor: 0 })
  const ofOneBehind = cursorAfter(loading, page(true, { position: 60, id: "b" }), { ...here, horizon: 70 })
  assert.deepInclude(ofOneBehind, { position: 60, floor: 70 })
  const nothingOfOneBehind = cursorAfter(loading, page(false), { ...here, horizon: 99 })
  assert.deepInclude(nothingOfOneBehind, { position: 40, floor: 100 })
  const beyond = cursorAfter(loading, page(false, { position: 99, id: "c" }), { ...here, horizon: 100 })
  assert.deepInclude(beyond, { position: 99, id: "c", floor: 0 })
})

it("the text of a cursor keeps all of it, and is of one organization and resource", () => {
  const owner = { organization: "org", resource: "pets" }
  for (const id of ["a", "a.b", ""]) {
    const given = { ...cursor, feed: "0123abcd", mark: "89abcdef", id }
    for (const each of [given, { ...given, target: 7, floor: 5 }, { ...given, position: -1, target: 1 }]) {
      const text = encode(each, owner)
      assert.deepStrictEqual(decode(text), each)
      assert.isTrue(isOf(text, owner))
      assert.isFalse(isOf(text, { ...owner, resource: "charges" }))
      assert.isFalse(isOf(text, { ...owner, organization: "another" }))
    }
  }
})
