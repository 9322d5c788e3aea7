/**
 * A failover from a primary to its replica. `Operations.test.ts` has stores that are cut off one at a time.
 *
 * @module-tag long
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it as test, layer } from "@effect/vitest"
import { Context, Duration, Effect, Layer, Predicate } from "effect"
import { type Database, TaskDatabase } from "../../../src/database/Database.ts"
import { makeScheduler } from "../../../src/deletions/Scheduler.ts"
import { delivery } from "../../support/deletions/support.ts"
import { eventually } from "../../support/eventually.ts"
import { clientOf } from "../../support/TestDatabase.ts"
import * as Cluster from "../../support/Cluster.ts"
import * as TcpProxy from "../../support/TcpProxy.ts"

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

/** The port of the server that a write of a request goes to, or why there is none. */
const portOf = (sql: Database) =>
  sql
    .run(
      { key: "test", within: Duration.seconds(1), unavailable: ({ reason }) => reason },
      sql<{ port: number }>`select inet_server_port() as port, pg_current_xact_id()::text`
    )
    .pipe(
      Effect.map(([row]) => String(row?.port)),
      Effect.catchIf(Predicate.isString, (reason) => Effect.succeed(reason))
    )

layer(Servers.layer, { excludeTestServices: true })("Behind one address, of a primary and its replica", (it) => {
  it.effect(
    "the one that is promoted gets the writes, and a standby that took its place is left at the first one",
    () =>
      Effect.gen(function* () {
        const { primary, replica } = yield* Servers
        const [first, second] = [new URL(primary.url), new URL(replica.url)]
        let target = first
        const proxy = yield* TcpProxy.make(() => target)
        const writer = yield* open(Object.assign(new URL(primary.url), { port: proxy.port }).href)
        assert.strictEqual(yield* portOf(writer), first.port)

        yield* primary.stopImmediately
        target = second
        yield* Cluster.promote(replica)
        const [took] = yield* Effect.timed(eventually("the new one", portOf(writer), (port) => port === second.port))
        assert.isBelow(Duration.toSeconds(took), 5)

        // The old primary comes back as a standby, and the address leads to it for a while.
        writeFileSync(join(primary.folder, "standby.signal"), "")
        yield* primary.start
        target = first
        yield* replica.stop
        yield* eventually("the standby", portOf(writer), (port) => port === "UnknownError 25006")
        yield* replica.start
        target = second
        yield* eventually("the new one", portOf(writer), (port) => port === second.port)
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
