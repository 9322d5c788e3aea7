/**
 * A primary and its replica: a URL that names both, and a failover. `Operations.test.ts` has stores that are cut off one at
 * a time.
 *
 * @module-tag long
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it as test, layer } from "@effect/vitest"
import { Array, Context, Duration, Effect, Layer, Predicate } from "effect"
import { type Database, TaskDatabase } from "../../../src/database/Database.ts"
import { messageOf } from "../../../src/database/SqlFailure.ts"
import { makeScheduler } from "../../../src/deletions/Scheduler.ts"
import { delivery } from "../../support/deletions/support.ts"
import { eventually } from "../../support/eventually.ts"
import { clientOf } from "../../support/TestDatabase.ts"
import * as Cluster from "../../support/Cluster.ts"

const servers = Effect.gen(function* () {
  const primary = yield* Cluster.empty()
  return { primary, replica: yield* Cluster.standbyOf(primary) }
})

class Servers extends Context.Service<Servers, Effect.Success<typeof servers>>()(
  "practice-data/test/system/database/Replicas/Servers"
) {
  static readonly layer = Layer.effect(Servers, servers)
}

const open = (url: string) => clientOf(url, { maxConnections: 2, statementTimeout: "5 seconds" })

const both = (one: string, other: string, wanted: string) => {
  const [first, second] = [new URL(one), new URL(other)]
  return `postgres://postgres:postgres@${first.host},${second.host}/postgres?target_session_attrs=${wanted}`
}

/** The port of the server that a statement of a request goes to, or why there is none. */
const portOf = (sql: Database) =>
  sql
    .run(
      { key: "test", within: Duration.seconds(1), unavailable: ({ reason }) => reason },
      sql<{ port: number }>`select inet_server_port() as port`
    )
    .pipe(
      Effect.map(([row]) => String(row?.port)),
      Effect.catchIf(Predicate.isString, (reason) => Effect.succeed(reason))
    )

/** Statements soon go to such a port. */
const soon = Effect.fnUntraced(function* (what: string, sql: Database, isWanted: (port: string) => boolean) {
  const [took] = yield* Effect.timed(eventually(what, portOf(sql), isWanted))
  assert.isBelow(Duration.toSeconds(took), 5, what)
})

// One after the other: the last one leaves no primary where it was.
layer(Servers.layer, { excludeTestServices: true })("Of a primary and its replica", (it) => {
  it.effect("one that takes no writes any more is left, with its connections", () =>
    Effect.gen(function* () {
      const { primary, replica } = yield* Servers
      const port = new URL(primary.url).port
      const writer = yield* open(both(primary.url, replica.url, "read-write"))
      assert.strictEqual(yield* portOf(writer), port)
      const admin = yield* open(primary.url)
      yield* admin`alter system set default_transaction_read_only = on`
      yield* admin`select pg_reload_conf()`
      yield* soon("it is left", writer, (found) => found !== port)
      const refused = yield* open(both(primary.url, replica.url, "read-write")).pipe(
        Effect.flatMap((sql) => sql`select 1`),
        Effect.scoped,
        Effect.flip
      )
      assert.include(messageOf(refused), `No server of the URL is read-write: 127.0.0.1:${port} is read-only`)
      yield* admin`set default_transaction_read_only = off`
      yield* admin`alter system reset default_transaction_read_only`
      yield* admin`select pg_reload_conf()`
      yield* soon("it is found again", writer, (found) => found === port)
    })
  )

  it.effect("the one that is promoted is found, and stays the primary when the old one comes back", () =>
    Effect.gen(function* () {
      const { primary, replica } = yield* Servers
      const [first, second] = [new URL(primary.url).port, new URL(replica.url).port]
      const writer = yield* open(both(replica.url, primary.url, "read-write"))
      const reader = yield* open(both(primary.url, replica.url, "standby"))
      const any = yield* open(both(primary.url, replica.url, "any"))
      const preferring = yield* open(both(primary.url, replica.url, "prefer-standby"))
      const found = yield* Effect.forEach([writer, reader, any, preferring], portOf)
      assert.deepStrictEqual(found, [first, second, first, second])

      yield* primary.stopImmediately
      const onReplica = yield* open(replica.url)
      yield* onReplica`select pg_promote()`
      yield* soon("the new primary is found", writer, (port) => port === second)
      yield* soon("so it is without a wish", any, (port) => port === second)
      // The connections of the reader are sound, and go to a server that is no standby any more.
      yield* soon("a promoted standby is left", reader, (port) => port !== second)

      // The old primary comes back as a standby, in the place that was the primary's.
      writeFileSync(join(primary.folder, "standby.signal"), "")
      yield* primary.start
      yield* soon("the standby is found", reader, (port) => port === first)
      assert.strictEqual(yield* portOf(writer), second)

      // So does the new one, before a pool looks at it again: it is left as soon as its closed connections are noticed.
      yield* replica.stopImmediately
      writeFileSync(join(replica.folder, "standby.signal"), "")
      yield* replica.start
      const ports = yield* Effect.forEach(Array.range(1, 50), () => Effect.delay(portOf(writer), "20 millis"))
      const left = Array.dropWhile(ports, (port) => port === second)
      assert.isAbove(left.length, 25)
      assert.notInclude(left, second)
    })
  )
})

test.live("A repetition does not confirm a delivery that a synchronous standby lacks", () =>
  Effect.gen(function* () {
    const { sql, url } = yield* Cluster.make()
    const { schedule } = yield* Effect.provideService(makeScheduler(Duration.hours(1)), TaskDatabase, yield* open(url))
    const wants = Effect.fnUntraced(function* (standby: string) {
      yield* sql.unsafe(`alter system set synchronous_standby_names = '${standby}'`)
      yield* sql`select pg_reload_conf()`
      const shown = sql<{ name: string }>`select current_setting('synchronous_standby_names') as name`
      yield* eventually("the setting", shown, ([row]) => row?.name === standby)
    })
    yield* wants("lost")
    for (const time of ["first", "second"]) {
      assert.strictEqual((yield* Effect.flip(schedule(delivery("one"))))._tag, "SchedulerUnavailable", time)
    }
    assert.lengthOf(yield* sql`select from deletion_tasks`, 1)
    yield* wants("")
    assert.strictEqual((yield* schedule(delivery("one"))).status, "duplicate")
  })
)
