/** A sync of a SQLite file: outages, watching and notes; and the connections of a Postgres target: their end, locks and timeouts. */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, it as test, layer } from "@effect/vitest"
import { DateTime, Duration, Effect, Fiber, Result } from "effect"
import { TestClock } from "effect/testing"
import { CursorExpired } from "../../../../src/api/Errors.ts"
import type { Line, Report } from "../../../../src/cli/sync/Sync.ts"
import { postgres, postgresFailure, sqlite, sqliteFailure } from "../../../../src/cli/sync/Targets.ts"
import { Refused, Unavailable } from "../../../../src/cli/Usage.ts"
import { connectionOptions } from "../../../../src/database/ConnectionUrl.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { live } from "../../../support/tries.ts"
import { charge, type Given, more, opening, page, type Script, syncWith } from "./fixture.ts"
import { inSqlite, query } from "./readers.ts"

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

test.effect("reports a round, and fails at once when the service refuses, or is down from the start", () =>
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

test.effect("watches: recreates a file that was removed, and loads it again", () =>
  Effect.gen(function* () {
    const { file, notes, run, statuses } = yield* stand
    yield* Effect.forkScoped(run((at) => page(at + 1, at === 0 ? [charge("a", "1")] : []), { watch }))
    yield* pass(20)
    rmSync(file)
    yield* pass(20)
    assert.deepStrictEqual(statuses(), { a: "1" })
    assert.match(notes()[0] ?? "", /^The table \w+ in sqlite:copy.db was dropped. Retrying.$/)
    assert.strictEqual(notes()[1], "Recovered.")
  })
)

test.effect.each([
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

test.effect.each([
  ["every request", -1],
  ["every page after the first", 0],
  ["every round after the first", 1]
] as const)("reloads with growing pauses while the cursor of %s is refused, with two notes", ([, last]) =>
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

test.effect("watches: asks at each interval, through an outage of ten minutes", () =>
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

test.effect("a copy is in step as of a time before its last page was requested", () =>
  Effect.gen(function* () {
    const { file, run } = yield* stand
    const running = yield* Effect.forkScoped(
      run((at) => Effect.as(Effect.sleep("10 seconds"), page(at + 1, [], { has_more: at < 2 })))
    )
    yield* pass(40)
    yield* Fiber.join(running)
    const [{ at } = { at: "" }] = query(file, "select in_step_at as at from _practice_data_sync")
    assert.strictEqual(at, "1970-01-01T00:00:20.000Z")
  })
)

test.effect("stops once the page that is being applied is applied", () =>
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

test.each([
  ["EPIPE", "Unavailable"],
  ["ECONNRESET", "Unavailable"],
  ["57P01", "Unavailable"],
  ["42501", "Refused"]
])("the failure %s is %s", (code, tag) => {
  assert.strictEqual(postgresFailure("db")(Object.assign(new Error("It failed"), { code }))._tag, tag)
})

test.effect("a full disk is an outage", () =>
  Effect.gen(function* () {
    const database = new DatabaseSync(join(yield* temporaryFolder, "copy.db"))
    database.exec("create table copy (text); pragma max_page_count = 4")
    const error = yield* Effect.try({
      try: () => database.exec(`insert into copy values ('${"x".repeat(100_000)}')`),
      catch: sqliteFailure("a copy")
    }).pipe(Effect.flip)
    database.close()
    assert.strictEqual(error._tag, "Unavailable", error.message)
    assert.include(error.message, "Cannot use a copy: the disk is full. Free some space")
  })
)

/** A Postgres target in a schema of the test's database. */
const targetIn = (schema: string) =>
  Effect.map(TestDatabase, ({ sql, url }) => ({
    sql,
    target: postgres(Result.getOrThrow(connectionOptions(url)), schema, false)
  }))

const requestedAt = DateTime.makeUnsafe(0)

layer(TestDatabase.layer, live)("a Postgres target", (it) => {
  it.effect("is unavailable when its server ends the session, and has nothing of the page", () =>
    Effect.gen(function* () {
      const { sql, target } = yield* targetIn("ended")
      yield* syncWith(target, () => page(1, [charge("a", "1")]), { resources: ["charges"] })
      yield* sql`create function end_session() returns trigger language plpgsql
        as $$ begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$`
      yield* sql`create trigger ends before insert on ended.charges for each row execute function end_session()`
      const applied = Effect.flatMap(target.open(opening), (copy) =>
        copy.apply({ ...page(2, [charge("b", "1")]), requestedAt })
      )
      const error = yield* Effect.flip(Effect.scoped(applied))
      assert.strictEqual(error._tag, "Unavailable", error.message)
      yield* sql`drop trigger ends on ended.charges`
      const cursor = Effect.scoped(Effect.flatMap(target.open(opening), (copy) => copy.cursor))
      assert.strictEqual(yield* cursor, "1")
      assert.deepStrictEqual(yield* sql`select id from ended.charges`, [{ id: "a" }])
    })
  )

  it.effect("leaves no lock to its session, and of two runs the one that was overtaken ends", () =>
    Effect.gen(function* () {
      const { sql, target } = yield* targetIn("pooled")
      const [one, two] = yield* Effect.all([target.open(opening), target.open(opening)], { concurrency: 2 })
      const next = { ...page(1, [charge("a", "1")]), requestedAt }
      yield* one.apply(next)
      assert.include((yield* Effect.flip(two.apply(next))).message, "Another process changed the copy")
      const locks = sql`select 1 from pg_locks where locktype = 'advisory' and database = (
        select oid from pg_database where datname = current_database())`
      assert.deepStrictEqual(yield* locks, [])
    })
  )

  it.effect("has timeouts of its own in place of those of the database", () =>
    Effect.gen(function* () {
      const { sql, target } = yield* targetIn("slow")
      yield* sql`create schema slow`
      yield* sql`create function slow.sleeps() returns event_trigger language plpgsql as $$ begin perform pg_sleep(0.4); end $$`
      yield* sql`create event trigger sleeps on ddl_command_end execute function slow.sleeps()`
      for (const name of ["statement_timeout", "lock_timeout"])
        yield* sql`do $$ begin execute format('alter database %I set ${sql.literal(name)} = 300', current_database()); end $$`
      yield* syncWith(target, () => page(1, [charge("a", "1")]), { resources: ["charges"] })
      yield* sql`drop event trigger sleeps`
    })
  )
})
