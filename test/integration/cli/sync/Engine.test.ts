/** A sync: page after page, through outages, expired cursors and stops. */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Option, Stream } from "effect"
import { TestClock } from "effect/testing"
import { type Event, Progress } from "../../../../src/cli/sync/Progress.ts"
import { CursorExpired, Source, SourceRefused, SourceUnavailable } from "../../../../src/cli/sync/Source.ts"
import * as SqliteTarget from "../../../../src/cli/sync/SqliteTarget.ts"
import * as Sync from "../../../../src/cli/sync/Sync.ts"
import { tables } from "../../../../src/cli/sync/Table.ts"
import type { Page } from "../../../../src/cli/sync/Target.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import { inSqlite } from "./readers.ts"

type Answer = Effect.Effect<Page, CursorExpired | SourceRefused | SourceUnavailable>

/** The response of the service to a cursor; the cursor of a page is the number of the next one. */
type Script = (resource: string, page: number) => Answer

const down = new SourceUnavailable({ message: "The service does not respond" })
const refused = new SourceRefused({ message: "The service refuses" })

const refund = (id: string, amount: number) => ({
  id,
  refund_date: null,
  amount,
  charge: null,
  created_at: "2026-01-31T09:30:00.000Z",
  updated_at: "2026-01-31T09:30:00.000Z"
})

const page = (next: number, over: Partial<Page> = {}): Answer =>
  Effect.succeed({ body: [], removed: [], cursor: `${next}`, has_more: false, complete: true, lag: 0, ...over })

const changes = (script: Script, resource: string, from: string | undefined) =>
  Stream.paginate(Number(from ?? 0), (at) =>
    Effect.map(script(resource, at), (answer) => [
      [answer],
      answer.has_more ? Option.some(Number(answer.cursor)) : Option.none()
    ])
  )

interface Given {
  readonly resources?: ReadonlyArray<string>
  readonly watch?: Duration.Duration
  readonly concurrency?: number
  readonly organization?: Effect.Effect<string, SourceRefused | SourceUnavailable>
}

/** A copy in a file, and runs of the sync. */
const stand = Effect.gen(function* () {
  const file = join(yield* temporaryFolder, "copy.db")
  const events: Array<Event> = []
  const run = (script: Script, given: Given = {}) => {
    const { concurrency = 4, organization = Effect.succeed("org_a"), resources = ["charge-refunds"], watch } = given
    return Sync.run({
      target: SqliteTarget.make(file, { name: "sqlite:copy.db", elsewhere: "another file" }),
      tables: tables.filter(({ resource }) => resources.includes(resource)),
      concurrency,
      watch,
      allowNewUrl: false
    }).pipe(
      Effect.provideService(Source, {
        url: "http://service",
        organization,
        changes: (resource, cursor) => changes(script, resource, cursor)
      }),
      Effect.provideService(Progress, { report: (event) => Effect.sync(() => void events.push(event)) })
    )
  }
  return {
    file,
    run,
    statement: (sql: string) => {
      const database = new DatabaseSync(file)
      database.exec(sql)
      database.close()
    },
    amounts: () =>
      Object.fromEntries([...inSqlite(file, "charge-refunds")].map(([id, json]) => [id, JSON.parse(json).amount])),
    notes: () => events.flatMap((event) => (event._tag === "Note" ? [event.message] : [])),
    tags: () => events.map(({ _tag }) => _tag)
  }
})

/** Lets what is due run, again and again, while so much time goes by. */
const pass = (time: Duration.Input) => {
  const step = Duration.millis(500)
  const steps = Math.ceil(Duration.toMillis(time) / Duration.toMillis(step))
  return Effect.repeat(TestClock.adjust(step), { times: steps })
}

it.effect("applies page after page, and the next run only what has come since", () =>
  Effect.gen(function* () {
    const { amounts, run, tags } = yield* stand
    const asked: Array<number> = []
    const script: Script = (_, at) => {
      asked.push(at)
      if (at === 0) return page(1, { body: [refund("a", 1), refund("b", 1)], has_more: true })
      if (at === 1) return page(2, { body: [refund("c", 1)], removed: ["a"] })
      return page(at, { body: [refund("b", 2)] })
    }
    yield* run(script)
    assert.deepStrictEqual(amounts(), { b: 1, c: 1 })
    assert.deepStrictEqual(tags(), ["Opened", "Started", "Applied", "Applied", "InStep", "RoundEnded"])
    yield* run(script)
    assert.deepStrictEqual(amounts(), { b: 2, c: 1 })
    assert.deepStrictEqual(asked, [0, 1, 2])
  })
)

it.effect("keeps what it has applied when the service then refuses", () =>
  Effect.gen(function* () {
    const { amounts, run } = yield* stand
    const first = page(1, { body: [refund("a", 1)], has_more: true })
    assert.strictEqual(yield* Effect.flip(run((_, at) => (at === 0 ? first : Effect.fail(refused)))), refused)
    assert.deepStrictEqual(amounts(), { a: 1 })
    yield* run((_, at) => page(at, { body: [refund(`after ${at}`, 2)] }))
    assert.deepStrictEqual(amounts(), { a: 1, "after 1": 2 })
  })
)

it.effect("reloads a resource whose order of changes has ended, and says so", () =>
  Effect.gen(function* () {
    const { amounts, notes, run } = yield* stand
    yield* run(() => page(7, { body: [refund("a", 1), refund("b", 1)] }))
    yield* run((_, at) =>
      at === 7 ? Effect.fail(new CursorExpired()) : page(at + 1, { body: [refund(`${at}`, 2)], has_more: at === 0 })
    )
    assert.deepStrictEqual(amounts(), { 0: 2, 1: 2 })
    assert.deepStrictEqual(notes(), [
      "The order of changes of charge-refunds has ended: all of its records are read again."
    ])
  })
)

/** A service with `a` alone whose order of changes has ended, and whose database always has an open transaction. */
const restored =
  (complete: number): Script =>
  (_, at) =>
    at === 1000
      ? Effect.fail(new CursorExpired())
      : page(at + 1, { body: at === 0 ? [refund("a", 2)] : [], complete: at >= complete, lag: 60 })

/** A copy of `a` and `b`, and a run that has begun to read them again. */
const reloading = Effect.fnUntraced(function* (script: Script, given: Given = {}) {
  const { run, ...seen } = yield* stand
  yield* run(() => page(1000, { body: [refund("a", 1), refund("b", 1)] }))
  const before = seen.tags().length
  const running = yield* Effect.forkScoped(run(script, given))
  return { ...seen, running, tags: () => seen.tags().slice(before) }
})

it.effect("ends a reload when it is complete, however long other changes are held back", () =>
  Effect.gen(function* () {
    const { amounts, running, tags } = yield* reloading(restored(2))
    yield* pass("500 millis")
    assert.deepStrictEqual(amounts(), { a: 2, b: 1 })
    yield* pass("10 seconds")
    yield* Fiber.join(running)
    assert.deepStrictEqual(amounts(), { a: 2 })
    assert.deepStrictEqual(
      tags().filter((tag) => tag !== "Note"),
      ["Opened", "Started", "Applied", "Started", "Applied", "Started", "Applied", "InStep", "RoundEnded"]
    )
  }).pipe(Effect.scoped)
)

const incomplete =
  "The copy is not in step: a transaction that has been open in the service's database since the load began may hold back records of charge-refunds."

it.effect("gives up after a minute on a reload that does not become complete", () =>
  Effect.gen(function* () {
    const { amounts, running } = yield* reloading(restored(Number.POSITIVE_INFINITY))
    yield* pass("50 seconds")
    assert.isUndefined(running.pollUnsafe())
    yield* pass("40 seconds")
    assert.deepStrictEqual(yield* Effect.flip(Fiber.join(running)), new SourceUnavailable({ message: incomplete }))
    assert.deepStrictEqual(amounts(), { a: 2, b: 1 })
  }).pipe(Effect.scoped)
)

it.effect("watches until a reload is complete, and says once that the copy is not in step", () =>
  Effect.gen(function* () {
    const { amounts, notes, running, tags } = yield* reloading(restored(200), { watch: Duration.seconds(1) })
    yield* pass("150 seconds")
    assert.deepStrictEqual(amounts(), { a: 2, b: 1 })
    assert.notIncludeMembers(tags(), ["InStep", "RoundEnded"])
    assert.deepStrictEqual(notes().slice(1), [incomplete])
    yield* pass("100 seconds")
    assert.deepStrictEqual(amounts(), { a: 2 })
    assert.includeMembers(tags(), ["InStep", "RoundEnded"])
    yield* Fiber.interrupt(running)
  }).pipe(Effect.scoped)
)

it.effect("watches: makes a table anew that was dropped, and loads it", () =>
  Effect.gen(function* () {
    const { amounts, notes, run, statement } = yield* stand
    const running = yield* Effect.forkScoped(
      run((_, at) => page(at + 1, { body: at === 0 ? [refund("a", 1)] : [] }), { watch: Duration.seconds(5) })
    )
    yield* pass("20 seconds")
    statement("drop table charge_refunds")
    yield* pass("20 seconds")
    assert.deepStrictEqual(amounts(), { a: 1 })
    assert.deepStrictEqual(notes(), [
      "The table charge_refunds in sqlite:copy.db is gone. Trying again.",
      "It works again."
    ])
    yield* Fiber.interrupt(running)
  }).pipe(Effect.scoped)
)

it.effect("watches: makes a file anew that was removed, and loads it", () =>
  Effect.gen(function* () {
    const { amounts, file, run } = yield* stand
    const running = yield* Effect.forkScoped(
      run((_, at) => page(at + 1, { body: at === 0 ? [refund("a", 1)] : [] }), { watch: Duration.seconds(5) })
    )
    yield* pass("20 seconds")
    rmSync(file)
    yield* pass("20 seconds")
    assert.deepStrictEqual(amounts(), { a: 1 })
    yield* Fiber.interrupt(running)
  }).pipe(Effect.scoped)
)

it.effect("fails at once when the service is down from the start", () =>
  Effect.gen(function* () {
    const { notes, run } = yield* stand
    assert.strictEqual(yield* Effect.flip(run(() => page(1), { organization: Effect.fail(down) })), down)
    assert.deepStrictEqual(notes(), [])
  })
)

it.effect("waits out an outage, and says when it begins and ends", () =>
  Effect.gen(function* () {
    const { amounts, notes, run } = yield* stand
    let outages = 4
    const running = yield* Effect.forkScoped(
      run((_, at) => {
        if (at === 0) return page(1, { body: [refund("a", 1)], has_more: true })
        return outages-- > 0 ? Effect.fail(down) : page(2, { body: [refund("b", 1)] })
      })
    )
    yield* pass("30 seconds")
    yield* Fiber.join(running)
    assert.deepStrictEqual(amounts(), { a: 1, b: 1 })
    assert.deepStrictEqual(notes(), ["The service does not respond. Trying again.", "It works again."])
  }).pipe(Effect.scoped)
)

it.effect("gives up after a minute", () =>
  Effect.gen(function* () {
    const { run } = yield* stand
    const running = yield* Effect.forkScoped(
      Effect.flip(run((_, at) => (at === 0 ? page(1, { body: [refund("a", 1)], has_more: true }) : Effect.fail(down))))
    )
    yield* pass("50 seconds")
    assert.isUndefined(running.pollUnsafe())
    yield* pass("40 seconds")
    assert.strictEqual(yield* Fiber.join(running), down)
  }).pipe(Effect.scoped)
)

it.effect("watches: asks every so many seconds, through an outage of ten minutes", () =>
  Effect.gen(function* () {
    const { amounts, notes, run } = yield* stand
    let isDown = true
    let asked = 0
    const running = yield* Effect.forkScoped(
      run(
        (_, at) => {
          asked += 1
          return isDown ? Effect.fail(down) : page(at + 1, { body: [refund("a", at)], lag: [5, 9, 9][at] ?? 0 })
        },
        { watch: Duration.seconds(10) }
      )
    )
    yield* pass("10 minutes")
    assert.isAbove(asked, 35)
    isDown = false
    yield* pass("16 seconds")
    assert.hasAllKeys(amounts(), ["a"])
    const seen = amounts()["a"]
    yield* pass("30 seconds")
    assert.strictEqual(amounts()["a"], seen + 3)
    assert.strictEqual(notes().length, 3)
    assert.match(notes()[2] ?? "", /^The last 9 seconds of changes are held back/)
    yield* Fiber.interrupt(running)
    assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(running)))
  }).pipe(Effect.scoped)
)

it.effect("says once which fields it does not copy", () =>
  Effect.gen(function* () {
    const { notes, run } = yield* stand
    const record = { ...refund("a", 1), mood: "good" }
    yield* run((_, at) => page(at + 1, { body: [record], has_more: at < 3 }))
    assert.deepStrictEqual(notes(), [
      "Records of charge-refunds have fields that this version of practice-data does not know: mood. A newer version copies them."
    ])
  })
)

it.effect("reads several resources at a time, and no more than it may", () =>
  Effect.gen(function* () {
    const { run } = yield* stand
    let [reading, most] = [0, 0]
    const resources = tables.map(({ resource }) => resource)
    const script: Script = () =>
      Effect.acquireUseRelease(
        Effect.sync(() => (most = Math.max(most, ++reading))),
        () => Effect.andThen(Effect.yieldNow, page(1)),
        () => Effect.sync(() => void (reading -= 1))
      )
    yield* run(script, { resources, concurrency: 3 })
    assert.strictEqual(most, 3)
  })
)
