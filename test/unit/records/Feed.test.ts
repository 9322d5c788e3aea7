/** Which cursors a feed goes on from, after a restore, on a standby, after a failover. Decisions: changes, 410. */
import { assert, it } from "@effect/vitest"
import {
  type Cursor,
  cursorAfter,
  type FeedSnapshot,
  type FeedState,
  type Place,
  type Verdict,
  verdictOf
} from "../../../src/records/Cursor.ts"

const cursor: Cursor = {
  feed: "feed",
  mark: "mark1",
  ceiling: 100,
  wal: 5000,
  target: 0,
  floor: 0,
  position: 90,
  id: "a"
}

const here: FeedSnapshot = {
  token: "feed",
  mark: "mark1",
  isStandby: false,
  run: "run",
  horizon: 120,
  ceiling: 120,
  inFlight: 0,
  wal: 6000,
  organization: "org"
}

const state: FeedState = { snapshot: here, isInPlace: true, isMarked: true, proven: 95, durableUntil: null }

/** What differs from a primary on which the cursor was taken. */
type But = Partial<FeedState> & Partial<FeedSnapshot>

const standby: But = { isStandby: true }
const promoted: But = { mark: "mark2" }

const cases: ReadonlyArray<readonly [string, Verdict, But, Cursor?]> = [
  ["goes on where it was taken", "Readable", {}, cursor],
  ["begins without a cursor", "Readable", {}],
  ["goes on on a standby, which may lag", "Readable", { ...standby, ceiling: 50 }, cursor],
  ["is settled first where the table is not what it was", "Unsettled", { isInPlace: false }, cursor],
  ["is settled first where the run of the server has no mark yet", "Unsettled", { isMarked: false }, cursor],
  ["is expired where the order began anew", "Expired", { token: "another" }, cursor],
  ["is expired where a primary was set back to before it", "Expired", { ceiling: 90 }, cursor],
  ["goes on after a failover up to what the last mark proves", "Readable", { ...promoted, proven: 100 }, cursor],
  ["is expired after a failover beyond what the last mark proves", "Expired", { ...promoted, proven: 99 }, cursor],
  [
    "goes on after a switchover up to where the timelines part",
    "Readable",
    { ...promoted, durableUntil: 5000 },
    cursor
  ],
  ["is expired beyond where the timelines part", "Expired", { ...promoted, durableUntil: 4999 }, cursor],
  ["is expired where its mark is unknown to a primary", "Expired", { mark: "other", proven: null }, cursor],
  ["waits where a standby has not its mark yet", "Behind", { ...standby, proven: null }, { ...cursor, mark: "mark2" }]
]

for (const [what, verdict, but, given] of cases) {
  it(`a cursor ${what}`, () =>
    assert.strictEqual(verdictOf({ ...state, ...but, snapshot: { ...here, ...but } }, given), verdict))
}

const page = (hasMore: boolean, last?: Place) => ({ hasMore, last })

/** Where a load that began at a horizon of 100, with transactions up to 120 in progress, is after a page. */
const loading = cursorAfter(undefined, page(true, { position: 40, id: "a" }), { ...here, horizon: 100, ceiling: 120 })

it("a load ends at the first last page whose horizon has passed its beginning, whatever is in progress then", () => {
  assert.deepInclude(loading, { target: 120, floor: 100 })
  const last = cursorAfter(loading, page(false), { ...here, horizon: 119, ceiling: 150 })
  assert.strictEqual(last.target, 120)
  assert.strictEqual(cursorAfter(last, page(true), { ...here, horizon: 120, ceiling: 160 }).target, 120)
  assert.strictEqual(cursorAfter(last, page(false), { ...here, horizon: 120, ceiling: 160 }).target, 0)
})

it("a reader has no removal from before it began, and all that follow those of a server that is behind", () => {
  const passed = cursorAfter(loading, page(false), { ...here, horizon: 110 })
  assert.deepInclude(passed, { position: 99, floor: 0 })
  const ofOneBehind = cursorAfter(loading, page(true, { position: 60, id: "b" }), { ...here, horizon: 70 })
  assert.deepInclude(ofOneBehind, { position: 60, floor: 70 })
  const nothingOfOneBehind = cursorAfter(loading, page(false), { ...here, horizon: 30 })
  assert.deepInclude(nothingOfOneBehind, { position: 40, floor: 100 })
})
