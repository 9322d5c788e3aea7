/** Which cursors a feed goes on from, after a restore, on a standby, after a failover. Decisions: changes, 410. */
import { assert, it } from "@effect/vitest"
import type { Cursor } from "../../src/records/Cursor.ts"
import { type State, Verdict, verdictOf } from "../../src/records/Feed.ts"

const cursor: Cursor = {
  feed: "feed",
  mark: "mark1",
  timeline: 1,
  ceiling: 100,
  wal: 5000,
  position: 90,
  id: "a"
}

const primary: State = {
  organization: "org",
  token: "feed",
  isInPlace: true,
  timeline: 1,
  markedTimeline: 1,
  mark: "mark1",
  proven: 95,
  forkedAt: null,
  wal: 6000,
  horizon: 120,
  ceiling: 120,
  inFlight: 0
}

const standby: State = { ...primary, timeline: null }
const promoted: State = { ...primary, timeline: 2, markedTimeline: 2, mark: "mark2" }

const readable = (mark = "mark1", timeline = 1) => Verdict.Readable({ mark, timeline })
const expired = Verdict.Expired()

const cases: ReadonlyArray<readonly [string, Verdict, State, Cursor?]> = [
  ["goes on where it was taken", readable(), primary, cursor],
  ["begins without a cursor", readable(), primary],
  ["goes on on a standby, which may lag", readable(), { ...standby, ceiling: 50 }, cursor],
  [
    "is settled first where the table is not what it was",
    Verdict.Unsettled(),
    { ...primary, isInPlace: false },
    cursor
  ],
  ["is settled first where there is no mark", Verdict.Unsettled(), { ...primary, mark: null, markedTimeline: null }],
  ["is settled first where the timeline has no mark yet", Verdict.Unsettled(), { ...primary, timeline: 2 }, cursor],
  ["is expired where the order began anew", expired, { ...primary, token: "another" }, cursor],
  ["is expired where a primary was set back to before it", expired, { ...primary, ceiling: 90 }, cursor],
  [
    "goes on after a failover up to what the last mark proves",
    readable("mark2", 2),
    { ...promoted, proven: 100 },
    cursor
  ],
  ["is expired after a failover beyond what the last mark proves", expired, { ...promoted, proven: 99 }, cursor],
  [
    "goes on after a switchover up to where the timelines part",
    readable("mark2", 2),
    { ...promoted, forkedAt: 5000 },
    cursor
  ],
  ["is expired beyond where the timelines part", expired, { ...promoted, forkedAt: 4999 }, cursor],
  ["is expired where its mark is unknown to a primary", expired, { ...primary, mark: "other", proven: null }, cursor],
  [
    "waits where a standby has not its mark yet",
    Verdict.Behind(),
    { ...standby, proven: null },
    { ...cursor, timeline: 2, mark: "mark2" }
  ]
]

for (const [what, verdict, state, given] of cases) {
  it(`a cursor ${what}`, () => assert.deepStrictEqual(verdictOf(state, given), verdict))
}
