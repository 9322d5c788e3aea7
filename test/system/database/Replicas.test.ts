/**
 * A primary and its replica: a URL that names both, a failover, and reads that a replica ends.
 *
 * @module-tag long
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Duration, Effect, Layer, Predicate } from "effect"
import type { Database } from "../../../src/database/Database.ts"
import { codeOf, messageOf, retryOvertaken } from "../../../src/database/SqlFailure.ts"
import { eventually } from "../../support/eventually.ts"
import { clientOf } from "../../support/TestDatabase.ts"
import * as Cluster from "../../support/Cluster.ts"

interface Pair {
  readonly primary: Cluster.Cluster
  readonly replica: Cluster.Cluster
}

class Servers extends Context.Service<Servers, Pair>()("practice-data/test/system/database/Replicas/Servers") {
  static readonly layer = Layer.effect(
    Servers,
    Effect.gen(function* () {
      const primary = yield* Cluster.empty()
      const settings = { hot_standby_feedback: "off", max_standby_streaming_delay: 0 }
      return { primary, replica: yield* Cluster.standbyOf(primary, settings) }
    })
  )
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

const goesTo = (sql: Database, port: string) =>
  eventually(`statements go to ${port}`, portOf(sql), (found) => found === port)

const soon = Effect.fnUntraced(function* <A, E, R>(what: string, effect: Effect.Effect<A, E, R>) {
  const [took] = yield* Effect.timed(effect)
  assert.isBelow(Duration.toSeconds(took), 5, what)
})

// One after the other: the last one leaves no primary where it was.
layer(Servers.layer, { excludeTestServices: true })("Of a primary and its replica", (it) => {
  it.effect("a read that the replica ends beside a vacuum is tried once more", () =>
    Effect.gen(function* () {
      const { primary, replica } = yield* Servers
      const [onPrimary, onReplica] = [yield* open(primary.url), yield* open(replica.url)]
      yield* onPrimary`create table items (id int primary key, text text)`
      yield* onPrimary`insert into items select n, repeat('x', 100) from generate_series(1, 2000) n`
      const isThere = onReplica`select to_regclass('items') is not null as yes`
      yield* eventually("the replica has the table", isThere, ([row]) => row?.["yes"] === true)
      const vacuum = Effect.andThen(
        onPrimary`update items set text = text || 'y' where id % 7 = 0`,
        onPrimary`vacuum items`
      )
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(vacuum, Effect.sleep("600 millis"))))
      const read = onReplica`select count(*), pg_sleep(0.25) from items`
      let ended = 0
      const counting = Effect.tapErrorTag(read, "SqlError", (error) =>
        Effect.sync(() => {
          assert.strictEqual(codeOf(error), "40001")
          ended++
        })
      )
      const failures = yield* Effect.forEach(Array.from({ length: 25 }), () =>
        Effect.match(retryOvertaken(counting), { onFailure: () => 1, onSuccess: () => 0 })
      )
      const failed = failures.reduce((sum, one) => sum + one, 0)
      assert.isAbove(ended, 2, "reads are ended")
      assert.isBelow(failed, ended / 3, `${failed} of ${ended} that were ended`)
    }).pipe(Effect.scoped)
  )

  it.effect("one that takes no writes any more is left, with its connections", () =>
    Effect.gen(function* () {
      const { primary, replica } = yield* Servers
      const port = new URL(primary.url).port
      const writer = yield* open(both(primary.url, replica.url, "read-write"))
      assert.strictEqual(yield* portOf(writer), port)
      const admin = yield* open(primary.url)
      yield* admin`alter system set default_transaction_read_only = on`
      yield* admin`select pg_reload_conf()`
      yield* soon(
        "it is left",
        eventually("no server", portOf(writer), (found) => found !== port)
      )
      const refused = yield* open(both(primary.url, replica.url, "read-write")).pipe(
        Effect.flatMap((sql) => sql`select 1`),
        Effect.scoped,
        Effect.flip
      )
      assert.include(messageOf(refused), `No server of the URL is read-write: 127.0.0.1:${port} is read-only`)
      yield* admin`set default_transaction_read_only = off`
      yield* admin`alter system reset default_transaction_read_only`
      yield* admin`select pg_reload_conf()`
      yield* soon("it is found again", goesTo(writer, port))
    }).pipe(Effect.scoped)
  )

  it.effect("the one that is promoted is found, and stays the primary when the old one comes back", () =>
    Effect.gen(function* () {
      const { primary, replica } = yield* Servers
      const [first, second] = [new URL(primary.url).port, new URL(replica.url).port]
      const writer = yield* open(both(replica.url, primary.url, "read-write"))
      const reader = yield* open(both(primary.url, replica.url, "standby"))
      const any = yield* open(both(primary.url, replica.url, "any"))
      const preferring = yield* open(both(primary.url, replica.url, "prefer-standby"))
      assert.strictEqual(yield* portOf(writer), first)
      assert.strictEqual(yield* portOf(reader), second)
      assert.strictEqual(yield* portOf(any), first)
      assert.strictEqual(yield* portOf(preferring), second)

      yield* primary.stopImmediately
      const onReplica = yield* open(replica.url)
      yield* onReplica`select pg_promote()`
      yield* soon("the new primary is found", goesTo(writer, second))
      yield* soon("so it is without a wish", goesTo(any, second))
      // The connections of the reader are sound, and go to a server that is no standby any more.
      yield* soon(
        "a promoted standby is left",
        eventually("there is none", portOf(reader), (found) => found !== second)
      )

      // The old primary comes back as a standby, in the place that was the primary's.
      writeFileSync(join(primary.folder, "standby.signal"), "")
      yield* primary.start
      yield* soon("the standby is found", goesTo(reader, first))
      assert.strictEqual(yield* portOf(writer), second)

      // So does the new one, before a pool looks at it again.
      yield* replica.stopImmediately
      writeFileSync(join(replica.folder, "standby.signal"), "")
      yield* replica.start
      const found = yield* Effect.forEach(Array.from({ length: 50 }), () => Effect.delay(portOf(writer), "20 millis"))
      assert.notInclude(found, second)
    }).pipe(Effect.scoped)
  )
})
