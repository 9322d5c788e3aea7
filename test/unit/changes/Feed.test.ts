/** The cursors that the feed resumes, after a restore and after a failover; the text of a cursor; pages of changes from their rows; the readers that wait. */
import { assert, it } from "@effect/vitest"
import { Arbitrary, Duration, Effect, Fiber, Option, Schema } from "effect"
import { TestClock } from "effect/testing"
import { CurrentOrganization } from "../../../src/api/Authorization.ts"
import { pets } from "../../../src/api/records/Pets.ts"
import { searchable } from "../../../src/api/records/index.ts"
import * as Cursor from "../../../src/changes/Cursor.ts"
import type { FeedSnapshot } from "../../../src/changes/Cursor.ts"
import * as Feed from "../../../src/changes/Feed.ts"
import { fromText, toText } from "../../../src/database/Columns.ts"
import { type ChangeRow, makeRender, pageLength, rowPlace } from "../../../src/changes/FeedPage.ts"
import * as Walk from "../../../src/changes/Walk.ts"

const walk: Walk.Walk = { feeds: { pets: "feed0000" }, place: { position: 90, id: "a", branch: "~" }, running: [] }

const cursor: Cursor.Cursor = { order: "feed0000", mark: "aaaa0001", ceiling: 100, wal: 5000, walks: [walk] }

const here: FeedSnapshot = {
  base: 0,
  snapshot: "120:120:",
  organization: "org",
  tokens: { organizations: "feed0000", pets: "feed0000" },
  mark: "aaaa0001",
  marked: 120,
  keptFrom: 0,
  wal: 6000,
  isInPlace: true,
  isMarked: true,
  proven: 95,
  durableUntil: null
}

/** The difference to a primary that gave the cursor out. */
type But = Partial<FeedSnapshot>

const promoted: But = { mark: "aaaa0002" }
const restarted: But = { tokens: { pets: "another0" } }

const orderOf = ({ tokens }: FeedSnapshot) => tokens["pets"]

it.for<readonly [string, Cursor.Verdict, But, Cursor.Cursor?]>([
  ["is resumed where it was given out", "Readable", {}, cursor],
  ["may be missing", "Readable", {}],
  ["waits until the order has restarted in a replaced table", "Unsettled", { isInPlace: false }, cursor],
  ["waits for the first mark of the run of a server", "Unsettled", { isMarked: false }, cursor],
  ["is expired where the order has restarted", "Expired", restarted, cursor],
  ["is resumed where it needs no removals that are deleted", "Readable", { keptFrom: 91 }, cursor],
  ["is expired where it needs removals that are deleted", "Expired", { keptFrom: 92 }, cursor],
  ["is resumed just below the ceiling of its primary", "Readable", { snapshot: "91:91:" }, cursor],
  ["is expired on a primary that was set back to its position", "Expired", { snapshot: "90:90:" }, cursor],
  ["is resumed after a failover if the last mark proves its ceiling", "Readable", { ...promoted, proven: 100 }, cursor],
  ["is expired after a failover beyond the last mark", "Expired", { ...promoted, proven: 99 }, cursor],
  ["is resumed after a switchover up to its end", "Readable", { ...promoted, durableUntil: 5000 }, cursor],
  ["is expired after a switchover beyond its end", "Expired", { ...promoted, durableUntil: 4999 }, cursor],
  ["is expired if a primary does not know its mark", "Expired", { mark: "other000", proven: null }, cursor]
])("a cursor %s", ([, verdict, but, given]) => {
  const snapshot = { ...here, ...but }
  assert.strictEqual(Cursor.judge(snapshot, orderOf(snapshot), given), verdict)
})

const owner = here.organization

const partial: Walk.Place = { position: 3, id: ".", branch: "" }
const lines: Walk.Walk = { ...walk, partial, floor: 5 }

it.each<readonly [string, ReadonlyArray<Walk.Walk>]>([
  ["a place", [walk]],
  ["an id with dots", [{ ...walk, place: { ...walk.place, id: "a.b" } }]],
  ["the start", [{ ...walk, place: { position: -1, id: "", branch: "~" } }]],
  ["a load", [{ ...walk, floor: 95 }]],
  ["running transactions", [{ ...walk, running: [7, 8, 80] }]],
  ["several walks, one of them with a transaction that is read in part", [walk, lines]],
  ["walks that have read nothing yet", [Walk.fromStart({ pets: "" }), walk, Walk.fromStart({})]]
])("the text of a cursor keeps %s, and is of one organization", (_, walks) => {
  const given = { ...cursor, walks }
  const text = Cursor.encode(given, owner)
  assert.deepStrictEqual(JSON.parse(JSON.stringify(Cursor.decode(text))), given)
  assert.isTrue(Cursor.belongsTo(text, owner))
  assert.isFalse(Cursor.belongsTo(text, "another"))
})

it.each([
  "",
  "a\0",
  "x".repeat(10_000),
  '[{"feeds":{"pets":"x"},"place":{"position":1e300,"id":"","branch":""},"running":[]}]',
  '[{"feeds":{"pets":"x"},"place":{"position":1,"id":"\\u0000","branch":""},"running":[]}]',
  '[{"feeds":{"pets":"x"},"place":{"position":1,"id":"\\ud800","branch":""},"running":[]}]',
  '[{"feeds":{"pets":"x"},"place":{"position":1,"id":"","branch":""},"running":[9e15,9e15]}]',
  "[{}]",
  `[${" ".repeat(128 * 1024)}]`
])("a cursor with odd characters, walks that no feed gave out, or over 128 KiB is none (%#)", (walks) => {
  const text = Cursor.encode({ ...cursor, walks: [] }, owner)
  const forged = Buffer.from(text.slice(0, -8), "base64url").toString().replace('"walks":[]', `"walks":${walks}`)
  assert.isDefined(Cursor.decode(text))
  assert.isUndefined(Cursor.decode(Buffer.from(forged).toString("base64url") + text.slice(-8)))
  for (const damaged of [`${text}=`, ` ${text}`, text.slice(1), text.toUpperCase()])
    assert.isFalse(Cursor.belongsTo(damaged, owner) && Cursor.decode(damaged) !== undefined)
})

const Length = Schema.Literals([0, 1, 3, 700, Walk.maximumRunning, 2 * Walk.maximumRunning])
const lists = Arbitrary.array(Arbitrary.schema(Length), { minLength: 1, maxLength: 20 })

it.prop("a cursor has at most as many ranges as one walk can have", { lists }, ({ lists: lengths }) => {
  const walks = lengths.map((length) => ({ ...walk, running: Array.from({ length }, (_, index) => index) }))
  const fitting = Cursor.fitting(walks)
  const decoded = [walks, fitting].map((of) => Cursor.decode(Cursor.encode({ ...cursor, walks: of }, owner))?.walks)
  assert.deepStrictEqual(decoded, [fitting.length === walks.length ? walks : undefined, fitting])
  assert.deepStrictEqual(fitting[0], walks[0])
  assert.isAtMost(fitting.flatMap(Walk.toRanges).length, 2 * Walk.maximumRunning + 3 * lengths.length)
})

const seen = (next: number, ...running: ReadonlyArray<number>): Walk.Visible => ({ next, running })

it("an idle walk advances no further than ended ids that no crash gives out again", () => {
  const positionAfter = (snapshot: Walk.Visible, durable: number) =>
    Walk.advanceToEnd(walk, snapshot, undefined, durable).place.position
  assert.strictEqual(positionAfter(seen(200), 150), 149)
  assert.strictEqual(positionAfter(seen(200, 120), 150), 119)
  assert.deepStrictEqual(Walk.advanceToEnd(walk, seen(200), undefined, 50).place, walk.place)
})

it("a transaction that was read in part on another server is read again as a whole", () => {
  const part = { ...walk, partial: { position: 40, id: "a", branch: "" } }
  assert.deepStrictEqual(Walk.advanceToEnd(part, seen(40), undefined, 0).running, [40])
  assert.deepStrictEqual(Walk.advanceToEnd(part, seen(200), undefined, 0).running, [])
})

it("a walk is set back to what a mark proves, with what it had not read below that", () => {
  const part = { position: 60, id: "a", branch: "" }
  const given = { ...walk, running: [40, 70], partial: part }
  const back = Walk.setBack(given, 50)
  assert.deepStrictEqual([back.place.position, back.running, back.partial], [49, [40], undefined])
  assert.isUndefined(Walk.setBack(given, 60).partial)
  assert.deepStrictEqual(Walk.setBack(given, 65).partial, part)
  assert.deepStrictEqual(Walk.setBack(given, 91), given)
})

/** A page of a feed of pets. */
const readBy = (read: Feed.Store<never, never>["read"], given?: string) =>
  Feed.make([pets], { read, polls: { poll: () => Effect.succeedNone } })({ cursor: given, limit: 10 }).pipe(
    Effect.provideService(CurrentOrganization, CurrentOrganization.of({ id: owner }))
  )

it.effect("what no mark proves is read again in another run, once the server has a mark of it", () =>
  Effect.gen(function* () {
    const marks = [undefined, "89abcdef"]
    const places: Array<number | undefined> = []
    const read: Feed.Store<never, never>["read"] = (walks, _, of) => {
      if (of === "89abcdef") places.push(walks[0]?.place.position)
      const mark = of === "89abcdef" ? of : marks.shift()
      const found = { ...here, mark: mark ?? "", isMarked: mark !== undefined, proven: 50 }
      return Effect.succeed({ snapshot: found, rows: [] })
    }
    const given = Cursor.encode({ ...cursor, ceiling: 40, wal: 0 }, owner)
    const reading = yield* Effect.forkChild(readBy(read, given))
    yield* TestClock.adjust("500 millis")
    const { cursor: next } = yield* Fiber.join(reading)
    assert.deepStrictEqual([Cursor.decode(next)?.mark, places], ["89abcdef", [49]])
  })
)

it.effect("a reader's ceiling never falls, as after a server was set back", () =>
  Effect.gen(function* () {
    const snapshot = { ...here, snapshot: "91:91:", wal: 0 }
    const read = Effect.succeed({ snapshot, rows: [written("b", 90)] })
    const { cursor: next } = yield* readBy(() => read, Cursor.encode(cursor, owner))
    assert.deepInclude(Cursor.decode(next), { ceiling: 100, wal: 5000 })
  })
)

it.effect("a server with more running transactions than a cursor holds is busy", () => {
  const running = Array.from({ length: Walk.maximumRunning + 1 }, (_, index) => 100 + index)
  const snapshot = { ...here, snapshot: `100:2000:${running.join(",")}` }
  const reading = readBy(() => Effect.succeed({ snapshot, rows: [] }))
  return Effect.map(Effect.flip(reading), (error) => assert.strictEqual(error._tag, "RecordStoreDown"))
})

const written = (id: string, position: number, branch = ""): ChangeRow => {
  return { position, record: fromText(`{"id":"${id}"}`), detail: null, branch }
}
const removed = (id: string, position: number, { branch = "", existsAgain = false } = {}): ChangeRow => {
  return { record: null, detail: `${existsAgain ? "+" : "-"}${id}`, position, branch }
}

const page = { resets: [], cursor: "c", hasMore: false }

it.each(["a", 'a "quoted" one', "back\\slash", "\u{1F436}", "a\nb"])("the place of a record has its id: %s", (id) => {
  const record = fromText(JSON.stringify({ id, name: '","id":"other"' }))
  const at = { position: 7, branch: "pets" }
  assert.deepStrictEqual(rowPlace({ ...at, record, detail: null }), { ...at, id })
})

it("a page begins with the resources that restart, without removals of what exists again", () => {
  const rows = [
    written("a", 1, "invoices"),
    removed("b", 1, { branch: "invoice_lines-" }),
    removed("c", 2, { branch: "invoices-", existsAgain: true })
  ]
  const shown = JSON.parse(toText(makeRender(searchable)({ ...page, resets: ["pets"], rows })))
  assert.match(shown.schema, /^[0-9a-f]{8}$/)
  assert.deepStrictEqual(shown, {
    body: [
      { resource: "pets", reset: true },
      { resource: "invoices", record: { id: "a" } },
      { resource: "invoice-lines", removed: "b" }
    ],
    cursor: "c",
    has_more: false,
    is_consistent: true,
    schema: shown.schema
  })
})

it("the version of the fields changes with a resource", () => {
  const versionOf = (resources: typeof searchable) =>
    JSON.parse(toText(makeRender(resources)({ ...page, rows: [] }))).schema
  assert.notStrictEqual(versionOf(searchable), versionOf([searchable[0]]))
})

it.each([
  { positions: [1, 1, 2, 2, 2], limit: 4, length: 2 },
  { positions: [1, 1, 2, 2, 3], limit: 4, length: 4 },
  { positions: [1, 1, 1, 1, 1], limit: 4, length: 4 },
  { positions: [1, 2], limit: 1, length: 1 }
])("a transaction that fits into a page is not split: %o", ({ length, limit, positions }) => {
  const rows = positions.map((position) => written("a", position, "pets"))
  assert.strictEqual(pageLength(rows, limit), length)
})

const patience = Duration.seconds(20)

/** Polls for a result that is there after so many reads. */
const poll = (polls: Feed.LongPolls["Service"], count: number) => {
  let reads = 0
  return polls.poll(
    Effect.sync(() => ++reads),
    (read) => read === count,
    patience
  )
}

const atOnce = Effect.fnUntraced(function* <A>(polling: Effect.Effect<A>) {
  const fiber = yield* Effect.forkChild(polling, { startImmediately: true })
  return fiber.pollUnsafe() === undefined ? "waits" : yield* Fiber.join(fiber)
})

it.effect("a poll reads once a second, until it finds a result or the time is over", () =>
  Effect.gen(function* () {
    const polls = yield* Feed.LongPolls.make
    const found = yield* Effect.forkChild(poll(polls, 3), { startImmediately: true })
    const late = yield* Effect.forkChild(poll(polls, 30), { startImmediately: true })
    yield* TestClock.adjust("2999 millis")
    assert.isUndefined(found.pollUnsafe())
    yield* TestClock.adjust("1 millis")
    assert.deepStrictEqual(yield* Fiber.join(found), Option.some(3))
    yield* TestClock.adjust(patience)
    assert.deepStrictEqual(yield* Fiber.join(late), Option.none())
  })
)

it.effect("a poll ends at once beyond 100 others, and once the process stops", () =>
  Effect.gen(function* () {
    const polls = yield* Feed.LongPolls.make
    const others = yield* Effect.replicateEffect(Effect.forkChild(poll(polls, 3), { startImmediately: true }), 100)
    assert.deepStrictEqual(yield* atOnce(poll(polls, 3)), Option.none())
    yield* Fiber.interrupt(others[0] ?? (yield* Effect.die("no reader")))
    assert.strictEqual(yield* atOnce(poll(polls, 3)), "waits")
    yield* polls.stop
    assert.deepStrictEqual(yield* Fiber.join(others[1] ?? (yield* Effect.die("no reader"))), Option.none())
    assert.deepStrictEqual(yield* atOnce(poll(polls, 3)), Option.none())
  })
)
