/** The ages of the last changes, read from positions and the times that are kept of them, and when they are read. */
import { assert, layer } from "@effect/vitest"
import { Context, Duration, Effect, Layer, Record } from "effect"
import { TestClock } from "effect/testing"
import { RecordDatabase } from "../../../src/database/Database.ts"
import * as Distribution from "../../../src/database/Distribution.ts"
import * as Freshness from "../../../src/operations/Freshness.ts"
import { eventually } from "../../support/eventually.ts"
import { samples, withRegistry } from "../../support/metrics.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"

const hour = 3600
const day = 24 * hour

/** Removes all records, removals and times. */
const cleared = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  for (const table of ["pets", "clinics", "invoices", "organizations", "removals", "change_times"])
    yield* sql`delete from ${sql(table)}`
  return sql
})

/** Says that all changes until now were made so many seconds ago. */
const made = (seconds: number) =>
  Effect.flatMap(
    TestDatabase,
    ({ sql }) =>
      sql`insert into change_times (position, at) select change_position(), now() - ${seconds} * interval '1 s'`
  )

const write = (table: string, organization: string, id = "a") =>
  Effect.flatMap(
    TestDatabase,
    ({ sql }) => sql`insert into ${sql(table)} ${sql.insert({ organization_id: organization, id })}`
  )

/** Writes a pet of an organization that is registered, so many seconds ago. */
const writtenAgo = Effect.fnUntraced(function* (organization: string, seconds: number) {
  yield* write("organizations", organization, organization)
  yield* write("pets", organization)
  yield* made(seconds)
})

/** Ages as text: to the minute. */
const shown = Record.map(
  ({ isAtLeast, seconds }: Freshness.Age) => `${isAtLeast ? "at least " : ""}${Math.floor(seconds / 60)} min`
)

const report = Effect.gen(function* () {
  const found = yield* Freshness.read((yield* TestDatabase).sql, 10_000)
  return found ?? assert.fail("The ages were not read")
})

/** The service over a database, and a registry of its own. */
const watching = (database: RecordDatabase["Service"]) =>
  Effect.map(
    Layer.build(Freshness.Freshness.layer.pipe(Layer.provide(Layer.succeed(RecordDatabase, database)))),
    (context) => Context.get(context, Freshness.Freshness)
  )

const petsAge = Effect.map(samples, (all) => all['practice_data_record_age_seconds{resource="pets"}'])

layer(TestDatabase.layer)("the ages of the last changes", (it) => {
  it.effect("are by the first time above a position: 0 above all, and at least the oldest below all", () =>
    Effect.gen(function* () {
      yield* cleared
      yield* made(9 * hour)
      assert.deepStrictEqual((yield* report).resources, {})
      const sql = yield* cleared
      yield* write("pets", "org_a")
      assert.deepStrictEqual(shown((yield* report).resources), { pets: "at least 0 min" })
      yield* made(3 * hour)
      yield* write("clinics", "org_a")
      yield* write("invoices", "org_b")
      yield* made(2 * hour)
      yield* write("invoices", "org_a")
      assert.deepStrictEqual(shown((yield* report).resources), {
        pets: "at least 180 min",
        clinics: "120 min",
        invoices: "0 min"
      })
      const own = (organization: string) => Effect.map(Freshness.ofOrganization(sql, organization), shown)
      assert.deepStrictEqual(yield* own("org_b"), { invoices: "120 min" })
      yield* sql`delete from pets`
      yield* made(60)
      // A removal is a change.
      assert.deepStrictEqual(shown((yield* report).resources), { clinics: "120 min", invoices: "1 min", pets: "1 min" })
      assert.deepStrictEqual(yield* own("org_a"), { clinics: "120 min", invoices: "1 min", pets: "1 min" })
    })
  )

  it.effect.each([
    [23 * hour, 0, false],
    [25 * hour, 0, true],
    [3 * day, 7 * hour, true],
    [3 * day, 8 * hour, false],
    [29 * day, 0, true],
    [31 * day, 0, false]
  ] as const)(
    "an organization that is silent for %d seconds, and others for %d: stopped is %s",
    ([silent, others, isStopped]) =>
      Effect.gen(function* () {
        yield* cleared
        yield* made(40 * day)
        yield* writtenAgo("org_silent", silent)
        yield* writtenAgo("org_other", others)
        const stopped = (yield* report).stopped.map(({ organization }) => organization)
        assert.deepStrictEqual(stopped, isStopped ? ["org_silent"] : [])
      })
  )

  it.effect("organizations that stopped are listed with the longest silent first, and without those that left", () =>
    Effect.gen(function* () {
      const sql = yield* cleared
      for (let index = 1; index <= Freshness.mostListed + 3; index++) {
        yield* writtenAgo(`org_${index}`, (30 - index) * day)
        if (index === 1) yield* sql`delete from pets`
        if (index === 1) yield* sql`delete from organizations`
        if (index === 1) yield* made(29 * day - 1)
      }
      yield* write("pets", "org_unknown")
      const { stopped, unknown } = yield* report
      const expected = Array.from({ length: Freshness.mostListed }, (_, index) => `org_${index + 2}`)
      assert.deepStrictEqual(
        stopped.map(({ organization }) => organization),
        expected
      )
      assert.deepStrictEqual(unknown, ["org_unknown"])
    })
  )

  it.effect(
    "a statement that takes longer than its milliseconds has no result, and later ones have their own time",
    () =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        const slow = sql`select pg_sleep(0.2)`
        assert.isUndefined(yield* Freshness.bounded(sql, 20, {}, slow))
        assert.isDefined(yield* Freshness.bounded(sql, 5000, {}, slow))
      })
  )

  it.effect("are given up after a second behind a lock", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      const reading = Effect.flip(Freshness.read(yield* clientOf(url), 30_000))
      const error = yield* sql.withTransaction(Effect.andThen(sql`lock table pets`, reading))
      assert.nestedPropertyVal(error, "reason._tag", "LockTimeoutError")
    })
  )

  it.effect("are read each minute, in the background", () =>
    Effect.gen(function* () {
      const sql = yield* cleared
      yield* writtenAgo("org_a", 2 * hour)
      const { last } = yield* watching(sql)
      const isRead = (what: string, minutes: number) =>
        eventually(what, petsAge, (seconds = 0) => Math.floor(seconds / 60) === minutes).pipe(TestClock.withLive)
      yield* isRead("the first reading", 120)
      assert.sameMembers(Object.keys((yield* last)?.resources ?? {}), ["pets", "organization"])
      yield* made(0)
      yield* sql`update pets set name = 'b'`
      yield* TestClock.adjust("1 minute")
      yield* isRead("the next reading", 0)
    }).pipe(withRegistry)
  )

  it.effect.each(["down", "distributed", "without its tables"] as const)(
    "are unknown of a database that is %s",
    (state) =>
      Effect.gen(function* () {
        const url = new URL((yield* TestDatabase).url)
        if (state === "down") url.port = "1"
        if (state === "without its tables") url.pathname = "postgres"
        const database = yield* clientOf(url.href)
        if (state === "distributed") Object.assign(database, { distribution: Distribution.distributed })
        let rounds = 0
        const refresh = Effect.sync(() => void rounds++)
        const distribution = {
          ...database.distribution,
          refresh: Effect.andThen(refresh, database.distribution.refresh)
        }
        const { last } = yield* watching(Object.assign(database, { distribution }))
        const minute = Effect.andThen(TestClock.adjust("1 minute"), TestClock.withLive(Effect.sleep("5 millis")))
        yield* Effect.repeat(minute, { until: () => rounds > 2 })
        assert.deepStrictEqual([yield* last, yield* petsAge], [undefined, undefined])
      }).pipe(withRegistry)
  )

  it.effect("take at most 1 % of the time, and are read at most once a minute and at least once an hour", () =>
    Effect.sync(() => {
      const pauses = [0, 0.5, 1, 30, 600].map((seconds) =>
        Duration.toSeconds(Freshness.pauseAfter(Duration.seconds(seconds)))
      )
      assert.deepStrictEqual(pauses, [60, 60, 99, 2970, 3600])
    })
  )
})
