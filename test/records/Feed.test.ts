/** Which cursors a feed goes on from, after a restore, on a standby, after a failover. Decisions: changes, 410. */
import { assert, it } from "@effect/vitest"
import type { Cursor } from "../../src/records/Cursor.ts"
import { type Glance, type State, Verdict, verdictOf } from "../../src/records/Feed.ts"

const cursor: Cursor = {
  feed: "feed",
  mark: "mark1",
  timeline: 1,
  ceiling: 100,
  wal: 5000,
  position: 90,
  id: "a"
}

const here: Glance = {
  token: "feed",
  mark: "mark1",
  isStandby: false,
  key: "key",
  horizon: 120,
  ceiling: 120,
  inFlight: 0,
  wal: 6000,
  organization: "org"
}

const state: State = { glance: "", isInPlace: true, timeline: 1, markedTimeline: 1, proven: 95, forkedAt: null }

/** What differs from a primary on which the cursor was taken. */
type But = Partial<State> & Partial<Glance>

const standby: But = { isStandby: true, timeline: null }
const promoted: But = { timeline: 2, markedTimeline: 2, mark: "mark2" }

const readable = (timeline = 1) => Verdict.Readable({ timeline })
const expired = Verdict.Expired()

const cases: ReadonlyArray<readonly [string, Verdict, But, Cursor?]> = [
  ["goes on where it was taken", readable(), {}, cursor],
  ["begins without a cursor", readable(), {}],
  ["goes on on a standby, which may lag", readable(), { ...standby, ceiling: 50 }, cursor],
  ["is settled first where the table is not what it was", Verdict.Unsettled(), { isInPlace: false }, cursor],
  ["is settled first where there is no mark", Verdict.Unsettled(), { markedTimeline: null }],
  ["is settled first where the timeline has no mark yet", Verdict.Unsettled(), { timeline: 2 }, cursor],
  ["is expired where the order began anew", expired, { token: "another" }, cursor],
  ["is expired where a primary was set back to before it", expired, { ceiling: 90 }, cursor],
  ["goes on after a failover up to what the last mark proves", readable(2), { ...promoted, proven: 100 }, cursor],
  ["is expired after a failover beyond what the last mark proves", expired, { ...promoted, proven: 99 }, cursor],
  ["goes on after a switchover up to where the timelines part", readable(2), { ...promoted, forkedAt: 5000 }, cursor],
  ["is expired beyond where the timelines part", expired, { ...promoted, forkedAt: 4999 }, cursor],
  ["is expired where its mark is unknown to a primary", expired, { mark: "other", proven: null }, cursor],
  [
    "waits where a standby has not its mark yet",
    Verdict.Behind(),
    { ...standby, proven: null },
    { ...cursor, timeline: 2, mark: "mark2" }
  ]
]

for (const [what, verdict, but, given] of cases) {
  it(`a cursor ${what}`, () =>
    assert.deepStrictEqual(verdictOf({ ...state, ...but }, { ...here, ...but }, given), verdict))
}
