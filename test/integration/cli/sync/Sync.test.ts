/** A sync of a SQLite file: outages, watching and notes. */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { CursorExpired } from "../../../../src/api/Errors.ts"
import type { Line, Report } from "../../../../src/cli/sync/Sync.ts"
import { sqlite } from "../../../../src/cli/sync/Targets.ts"
import { Refused, Unavailable } from "../../../../src/cli/Usage.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import { charge, type Given, more, page, type Script, syncWith } from "./fixture.ts"
import { inSqlite } from "./readers.ts"

const unavailable = new Unavailable({ message: "The service does not respond" })
const down = Effect.fail(unavailable)
const resources = ["charges"]

/** A copy in a file, and runs of the sync. */
const stand = Effect.gen(function* () {
  const file = join(yield* temporaryFolder, "copy.db")
  const events: Array<Line> = []
  const target = sqlite(file, "sqlite:copy.db", false)
  const report: Report = (line) => Effect.sync(() => void events.push(line))
  return {
    file,
    run: (script: Script, given: Given = {}) => syncWith(target, script, { resources, report, ...given }),
    statuses: () =>
      Object.fromEntries([...inSqlite(file, "charges")].map(([id, json]) => [id, JSON.parse(json).status])),
    notes: () => events.flatMap((event) => (event.event === "note" ? [String(event["message"])] : [])),
    names: () => events.map(({ event }) => event)
  }
})

/** Lets what is due run, again and again, while so much time goes by. */
const pass = (seconds: number) => Effect.repeat(TestClock.adjust("1 second"), { times: seconds })

const watch = Duration.seconds(5)

it.effect("reports a round, and fails at once when the service refuses, or is down from the start", () =>
  Effect.gen(function* () {
    const { names, notes, run } = yield* stand
    yield* run((at) => page(at + 1, [], { has_more: at === 0 }))
    assert.deepStrictEqual(names(), ["opened", "in_step"])
    const refused = new Refused({ message: "The service refuses" })
    assert.strictEqual(yield* Effect.flip(run(() => Effect.fail(refused))), refused)
    assert.strictEqual(yield* Effect.flip(run(() => page(1), { source: { organization: down } })), unavailable)
    assert.deepStrictEqual(notes(), [])
  })
)

const dropTable = (file: string) => {
  const database = new DatabaseSync(file)
  database.exec("drop table charges")
  database.close()
}

it.effect.each([
  ["table", dropTable],
  ["file", rmSync]
] as const)("watches: makes a %s that was removed anew, and loads it", ([, remove]) =>
  Effect.gen(function* () {
    const { file, notes, run, statuses } = yield* stand
    yield* Effect.forkScoped(run((at) => page(at + 1, at === 0 ? [charge("a", "1")] : []), { watch }))
    yield* pass(20)
    remove(file)
    yield* pass(20)
    assert.deepStrictEqual(statuses(), { a: "1" })
    assert.match(notes()[0] ?? "", /^The table \w+ in sqlite:copy.db was dropped. Retrying.$/)
    assert.strictEqual(notes()[1], "Recovered.")
  })
)

it.effect.each([
  ["an outage", down],
  ["restarts", Effect.fail(new CursorExpired())]
] as const)("gives up after a minute of %s", ([, failure]) =>
  Effect.gen(function* () {
    const { run } = yield* stand
    const running = yield* Effect.forkScoped(Effect.flip(run((at) => (at === 0 ? page(1, [], more) : failure))))
    yield* pass(50)
    assert.isUndefined(running.pollUnsafe())
    yield* pass(40)
    assert.strictEqual((yield* Fiber.join(running))._tag, "Unavailable")
  })
)

it.effect.each([
  ["every request", -1],
  ["every page after the first", 0],
  ["every round after the first", 1]
] as const)("reads all again ever more seldom while the cursor of %s is refused, with two notes", ([, last]) =>
  Effect.gen(function* () {
    const { notes, run, statuses } = yield* stand
    let [isBroken, loads] = [true, 0]
    const script: Script = (at) => {
      if (at === 0) loads += 1
      return isBroken && at > last
        ? Effect.fail(new CursorExpired())
        : page(at + 1, [charge("a", `${at}`)], at === 0 ? more : {})
    }
    yield* Effect.forkScoped(run(script, { watch }))
    yield* pass(600)
    assert.isBelow(loads, 100)
    assert.lengthOf(notes(), 2)
    isBroken = false
    yield* pass(30)
    assert.isAbove(Number(statuses()["a"]), 2)
    assert.deepStrictEqual(notes().slice(1), ["The order of changes keeps restarting. Retrying.", "Recovered."])
  })
)

it.effect("watches: asks at each interval, through an outage of ten minutes", () =>
  Effect.gen(function* () {
    const { notes, run, statuses } = yield* stand
    let [isDown, asked] = [true, 0]
    const script: Script = (at) => {
      asked += 1
      return isDown ? down : page(at + 1, [charge("a", `${at}`)])
    }
    yield* Effect.forkScoped(run(script, { watch }))
    yield* pass(600)
    assert.isAbove(asked, 35)
    isDown = false
    yield* pass(16)
    const seen = Number(statuses()["a"])
    yield* pass(30)
    assert.strictEqual(Number(statuses()["a"]), seen + 6)
    assert.strictEqual(notes().length, 2)
  })
)

const inStepAt = (file: string) => {
  const database = new DatabaseSync(file)
  const inStep = database.prepare("select in_step_at as at from _practice_data_sync").get()
  database.close()
  return inStep?.["at"]
}

it.effect("a copy is in step as of a time before its last page was requested", () =>
  Effect.gen(function* () {
    const { file, run } = yield* stand
    const running = yield* Effect.forkScoped(
      run((at) => Effect.as(Effect.sleep("10 seconds"), page(at + 1, [], { has_more: at < 2 })))
    )
    yield* pass(40)
    yield* Fiber.join(running)
    assert.strictEqual(inStepAt(file), "1970-01-01T00:00:20.000Z")
  })
)

it.effect("stops once the page that is being applied is applied", () =>
  Effect.gen(function* () {
    let applied = 0
    const apply = () => Effect.map(Effect.sleep("1 second"), () => void (applied += 1))
    const copy = { cursor: Effect.undefined, apply }
    const target = { name: "slow", open: () => Effect.succeed(copy) }
    const running = yield* Effect.forkScoped(syncWith(target, () => page(1), { resources }))
    yield* TestClock.adjust("500 millis")
    const stopped = yield* Effect.forkScoped(Fiber.interrupt(running))
    yield* TestClock.adjust("1 second")
    yield* Fiber.join(stopped)
    assert.strictEqual(applied, 1)
  })
)
