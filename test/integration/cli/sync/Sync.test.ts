/** A sync: page after page, through outages, expired cursors and stops. */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Option, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { Event } from "../../../../src/cli/sync/Progress.ts"
import { CursorExpired } from "../../../../src/cli/sync/Source.ts"
import * as SqliteTarget from "../../../../src/cli/sync/SqliteTarget.ts"
import * as Sync from "../../../../src/cli/sync/Sync.ts"
import { tables } from "../../../../src/cli/sync/Table.ts"
import type { Page } from "../../../../src/cli/sync/Target.ts"
import { Refused, Unavailable } from "../../../../src/cli/Usage.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import { inSqlite } from "./readers.ts"

/** The response of the service to a cursor; the cursor of a page is the number of the next one. */
type Script = (page: number, resource: string) => Effect.Effect<Page, CursorExpired | Refused | Unavailable>

const down = Effect.fail(new Unavailable({ message: "The service does not respond" }))
const expired = Effect.fail(new CursorExpired())

const refund = (id: string, amount: number) => {
  const time = "2026-01-31T09:30:00.000Z"
  return { id, refund_date: null, amount, charge: null, created_at: time, updated_at: time }
}

/** The page before another one, with refunds of some amounts. */
const page = (next: number, amounts: Readonly<Record<string, number>> = {}, over: Partial<Page> = {}) =>
  Effect.succeed({
    body: Object.entries(amounts).map(([id, amount]) => refund(id, amount)),
    removed: [],
    cursor: `${next}`,
    has_more: false,
    complete: true,
    lag: 0,
    ...over
  })

const more = { has_more: true }

type Given = Partial<Pick<Sync.Options, "concurrency" | "watch"> & { resources: ReadonlyArray<string>; isUp: boolean }>

/** A copy in a file, and runs of the sync. */
const stand = Effect.gen(function* () {
  const file = join(yield* temporaryFolder, "copy.db")
  const events: Array<Event> = []
  const run = (script: Script, given: Given = {}) => {
    const { concurrency = 4, isUp = true, resources = ["charge-refunds"], watch } = given
    return Sync.run({
      source: {
        url: "http://service",
        organization: isUp ? Effect.succeed("org_a") : down,
        changes: (resource, from) =>
          Stream.paginate(Number(from ?? 0), (at) =>
            Effect.map(script(at, resource), (found) => [
              [found],
              found.has_more ? Option.some(Number(found.cursor)) : Option.none()
            ])
          )
      },
      report: (event) => Effect.sync(() => void events.push(event)),
      target: SqliteTarget.make(file, { name: "sqlite:copy.db", elsewhere: "another file" }),
      tables: tables.filter(({ resource }) => resources.includes(resource)),
      concurrency,
      watch,
      allowNewUrl: false
    })
  }
  return {
    file,
    run,
    dropTable: Effect.sync(() => {
      const database = new DatabaseSync(file)
      database.exec("drop table charge_refunds")
      database.close()
    }),
    amounts: () =>
      Object.fromEntries([...inSqlite(file, "charge-refunds")].map(([id, json]) => [id, JSON.parse(json).amount])),
    notes: () => events.flatMap((event) => (event._tag === "Note" ? [event.message] : [])),
    tags: () => events.map(({ _tag }) => _tag)
  }
})

/** Lets what is due run, again and again, while so much time goes by. */
const pass = (seconds: number) => Effect.repeat(TestClock.adjust("500 millis"), { times: seconds * 2 })

const watch = Duration.seconds(5)

it.effect("applies page after page, and the next run only what has come since", () =>
  Effect.gen(function* () {
    const { amounts, run, tags } = yield* stand
    const asked: Array<number> = []
    const script: Script = (at) => {
      asked.push(at)
      if (at === 0) return page(1, { a: 1, b: 1 }, more)
      return at === 1 ? page(2, { c: 1 }, { removed: ["a"] }) : page(at, { b: 2 })
    }
    yield* run(script)
    assert.deepStrictEqual(amounts(), { b: 1, c: 1 })
    assert.deepStrictEqual(tags(), ["Opened", "Started", "Applied", "Applied", "InStep", "RoundEnded"])
    yield* run(script)
    assert.deepStrictEqual(amounts(), { b: 2, c: 1 })
    assert.deepStrictEqual(asked, [0, 1, 2])
  })
)

it.effect("keeps what it has applied when the service then refuses, or is down from the start", () =>
  Effect.gen(function* () {
    const { amounts, notes, run } = yield* stand
    const refused = new Refused({ message: "The service refuses" })
    assert.strictEqual(
      yield* Effect.flip(run((at) => (at === 0 ? page(1, { a: 1 }, more) : Effect.fail(refused)))),
      refused
    )
    assert.strictEqual((yield* Effect.flip(run(() => page(1), { isUp: false })))._tag, "Unavailable")
    assert.deepStrictEqual({ ...amounts(), notes: notes() }, { a: 1, notes: [] })
    yield* run((at) => page(at, { [`after ${at}`]: 2 }))
    assert.deepStrictEqual(amounts(), { a: 1, "after 1": 2 })
  })
)

it.effect("reloads a resource whose order of changes has ended, and notes so", () =>
  Effect.gen(function* () {
    const { amounts, notes, run } = yield* stand
    yield* run(() => page(7, { a: 1, b: 1 }))
    yield* run((at) => (at === 7 ? expired : page(at + 1, { [at]: 2 }, { has_more: at === 0 })))
    assert.deepStrictEqual(amounts(), { 0: 2, 1: 2 })
    assert.deepStrictEqual(notes(), [
      "The order of changes of charge-refunds has ended: all of its records are read again."
    ])
  })
)

/** A copy of `a` and `b`, and a run that reads `a` again; other changes are held back all the time. */
const reloading = Effect.fnUntraced(function* (completeAt: number, given: Given = {}) {
  const { run, ...seen } = yield* stand
  yield* run(() => page(1000, { a: 1, b: 1 }))
  const before = seen.tags().length
  const script: Script = (at) =>
    at === 1000 ? expired : page(at + 1, at === 0 ? { a: 2 } : {}, { complete: at >= completeAt, lag: 60 })
  const running = yield* Effect.forkScoped(run(script, given))
  return { ...seen, running, tags: () => seen.tags().slice(before) }
})

const incomplete =
  "The copy is not in step: a transaction that has been open in the service's database since the load began may hold back records of charge-refunds."

it.effect("ends a reload when it is complete, however long other changes are held back", () =>
  Effect.gen(function* () {
    const { amounts, running, tags } = yield* reloading(2)
    yield* pass(0.5)
    assert.deepStrictEqual(amounts(), { a: 2, b: 1 })
    yield* pass(10)
    yield* Fiber.join(running)
    assert.deepStrictEqual(amounts(), { a: 2 })
    const round = ["Started", "Applied"]
    assert.deepStrictEqual(
      tags().filter((tag) => tag !== "Note"),
      ["Opened", ...round, ...round, ...round, "InStep", "RoundEnded"]
    )
  }).pipe(Effect.scoped)
)

it.effect("gives up after a minute on a reload that does not become complete", () =>
  Effect.gen(function* () {
    const { amounts, running } = yield* reloading(Infinity)
    yield* pass(50)
    assert.isUndefined(running.pollUnsafe())
    yield* pass(40)
    assert.deepStrictEqual(yield* Effect.flip(Fiber.join(running)), new Unavailable({ message: incomplete }))
    assert.deepStrictEqual(amounts(), { a: 2, b: 1 })
  }).pipe(Effect.scoped)
)

it.effect("watches until a reload is complete, and notes once that the copy is not in step", () =>
  Effect.gen(function* () {
    const { amounts, notes, tags } = yield* reloading(20, { watch })
    yield* pass(90)
    assert.deepStrictEqual(amounts(), { a: 2, b: 1 })
    assert.notIncludeMembers(tags(), ["InStep", "RoundEnded"])
    assert.deepStrictEqual(notes().slice(1), [incomplete])
    yield* pass(30)
    assert.deepStrictEqual(amounts(), { a: 2 })
    assert.includeMembers(tags(), ["InStep", "RoundEnded"])
  }).pipe(Effect.scoped)
)

it.effect.each(["table", "file"])("watches: makes a %s that was removed anew, and loads it", (kind) =>
  Effect.gen(function* () {
    const { amounts, dropTable, file, notes, run } = yield* stand
    yield* Effect.forkScoped(run((at) => page(at + 1, at === 0 ? { a: 1 } : {}), { watch }))
    yield* pass(20)
    yield* kind === "table" ? dropTable : Effect.sync(() => rmSync(file))
    yield* pass(20)
    assert.deepStrictEqual(amounts(), { a: 1 })
    assert.match(notes()[0] ?? "", /^The table \w+ in sqlite:copy.db is gone. Trying again.$/)
    assert.strictEqual(notes()[1], "It works again.")
  }).pipe(Effect.scoped)
)

it.effect("waits out an outage, and notes when it begins and ends", () =>
  Effect.gen(function* () {
    const { amounts, notes, run } = yield* stand
    let outages = 4
    const running = yield* Effect.forkScoped(
      run((at) => (at === 0 ? page(1, { a: 1 }, more) : outages-- > 0 ? down : page(2, { b: 1 })))
    )
    yield* pass(30)
    yield* Fiber.join(running)
    assert.deepStrictEqual(amounts(), { a: 1, b: 1 })
    assert.deepStrictEqual(notes(), ["The service does not respond. Trying again.", "It works again."])
  }).pipe(Effect.scoped)
)

it.effect("gives up after a minute of outage, also while other resources are read", () =>
  Effect.gen(function* () {
    const { run } = yield* stand
    const script: Script = (at, resource) => (resource === "pets" ? down : page(at + 1))
    const running = yield* Effect.forkScoped(Effect.flip(run(script, { resources: ["charge-refunds", "pets"] })))
    yield* pass(50)
    assert.isUndefined(running.pollUnsafe())
    yield* pass(40)
    assert.strictEqual((yield* Fiber.join(running)).message, "The service does not respond")
  }).pipe(Effect.scoped)
)

it.effect(
  "watches: asks at each interval, through an outage of ten minutes, and notes changes that are held back",
  () =>
    Effect.gen(function* () {
      const { amounts, notes, run } = yield* stand
      let [isDown, asked] = [true, 0]
      const script: Script = (at) => {
        asked += 1
        return isDown ? down : page(at + 1, { a: at }, { lag: [5, 9, 9][at] ?? 0 })
      }
      yield* Effect.forkScoped(run(script, { watch }))
      yield* pass(600)
      assert.isAbove(asked, 35)
      isDown = false
      yield* pass(16)
      const seen: number = amounts()["a"]
      yield* pass(30)
      assert.strictEqual(amounts()["a"], seen + 6)
      assert.strictEqual(notes().length, 3)
      assert.match(notes()[2] ?? "", /^The last 9 seconds of changes are held back/)
    }).pipe(Effect.scoped)
)

it.effect("notes once which fields it does not copy", () =>
  Effect.gen(function* () {
    const { notes, run } = yield* stand
    const body = [{ ...refund("a", 1), mood: "good" }]
    yield* run((at) => page(at + 1, {}, { body, has_more: at < 3 }))
    assert.deepStrictEqual(notes(), [
      "Records of charge-refunds have fields that this version of practice-data does not know: mood. A newer version copies them."
    ])
  })
)

it.effect("reads several resources at the same time, and no more than it may", () =>
  Effect.gen(function* () {
    const { run } = yield* stand
    let [reading, most] = [0, 0]
    const script: Script = () =>
      Effect.acquireUseRelease(
        Effect.sync(() => (most = Math.max(most, ++reading))),
        () => Effect.andThen(Effect.yieldNow, page(1)),
        () => Effect.sync(() => void (reading -= 1))
      )
    yield* run(script, { resources: tables.map(({ resource }) => resource), concurrency: 3 })
    assert.strictEqual(most, 3)
  })
)
