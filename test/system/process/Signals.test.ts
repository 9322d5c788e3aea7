/** SIGTERM and SIGINT: stop accepting, finish what is in flight, exit 0. */
import { existsSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Layer } from "effect"
import { inTime } from "../../support/inTime.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { long } from "../../support/tries.ts"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Process from "../../support/Process.ts"

/** Each signal in one way in each test run, and in the other among the long tests. */
const busy = [
  { signal: "SIGTERM", options: {} },
  { signal: "SIGINT", options: long }
] as const
const idle = [
  { signal: "SIGINT", options: {} },
  { signal: "SIGTERM", options: long }
] as const

/** Starts on a Postgres that has the demo data, and waits for its first answer from there. */
const started = Effect.gen(function* () {
  const { url, sql } = yield* TestDatabase
  const process = yield* Process.start({ DATABASE_URL: url })
  const address = yield* process.address
  const client = yield* Client.make(address)
  yield* eventually(
    "a successful read",
    Effect.map(client.ask("/charges/search"), ({ status }) => status === 200)
  )
  return { ...process, sql, client, newcomer: Client.make(address) }
})

/** Blocks every read of charges until `release` is run. */
const holdCharges = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  const held = yield* Deferred.make<void>()
  const release = yield* Deferred.make<void>()
  const holding = yield* sql
    .withTransaction(
      sql`lock table charges in access exclusive mode`.pipe(
        Effect.andThen(Deferred.succeed(held, undefined)),
        Effect.andThen(Deferred.await(release))
      )
    )
    .pipe(Effect.forkScoped)
  yield* Deferred.await(held)
  return { release: Effect.andThen(Deferred.succeed(release, undefined), Fiber.join(holding)) }
})

/** At least as many reads as that wait for the lock. What shares a connection waits on one of its own as well. */
const isWaiting = (count: number) =>
  Effect.flatMap(TestDatabase, ({ sql }) =>
    eventually(
      `${count} reads in flight`,
      Effect.map(
        sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        (rows) => rows.length >= count
      )
    )
  )

/** A request that begins, and never comes to its end. */
const stalledRequest = (address: string) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof connect>>((resume) => {
      const { hostname, port } = new URL(address)
      const socket = connect(Number(port), hostname, () =>
        socket.write(
          [
            "POST /api/v3/charges/search HTTP/1.1",
            `Host: ${hostname}`,
            `Authorization: Bearer ${Client.keys.oakridge}`,
            "Content-Type: application/json",
            "Content-Length: 100\r\n\r\n{"
          ].join("\r\n"),
          () => resume(Effect.succeed(socket))
        )
      ).on("error", () => undefined)
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )

/** A database for one test alone: locks are not to be shared. */
const database = Layer.fresh(TestDatabase.layerDemo)

describe.concurrent("A stop signal", () => {
  for (const { signal, options } of busy) {
    it.live(
      `${signal} lets requests in flight be answered, refuses new ones, and ends with code 0`,
      () =>
        Effect.gen(function* () {
          const { client, newcomer, kill, ended, output } = yield* started
          const before = yield* Client.patient(client).ask("/charges/search")
          const { release } = yield* holdCharges
          const inFlight = yield* Effect.forkScoped(
            Effect.forEach([1, 2, 3], () => client.ask("/charges/search"), { concurrency: 3 })
          )
          yield* isWaiting(3)
          yield* kill(signal)
          const asked = Effect.flatMap(newcomer, ({ ask }) => ask("/organization/get")).pipe(Effect.scoped, Effect.exit)
          yield* eventually("new requests are refused", Effect.map(asked, Exit.isFailure))
          yield* release
          for (const { status, text } of yield* Fiber.join(inFlight)) {
            assert.deepStrictEqual([status, text], [200, before.text])
          }
          const [took, end] = yield* Effect.timed(ended)
          assert.deepStrictEqual(end, { code: 0, signal: null }, output())
          assert.isBelow(Duration.toSeconds(took), inTime(2))
        }).pipe(Effect.provide(database)),
      options
    )
  }

  for (const { signal, options } of idle) {
    it.live(
      `${signal} ends an idle program with code 0 at once, open connections or not`,
      () =>
        Effect.gen(function* () {
          const { kill, ended, output } = yield* started
          yield* kill(signal)
          const [took, end] = yield* Effect.timed(ended)
          assert.deepStrictEqual(end, { code: 0, signal: null }, output())
          assert.isBelow(Duration.toSeconds(took), inTime(2))
        }).pipe(Effect.provide(database)),
      options
    )
  }

  it.live(
    "waits for a request that never comes to its end for 10 s at most",
    () =>
      Effect.gen(function* () {
        const { client, kill, ended, output } = yield* started
        yield* stalledRequest(client.address)
        assert.strictEqual((yield* Client.patient(client).ask("/organization/get")).status, 200)
        yield* kill("SIGTERM")
        const [took, end] = yield* Effect.timed(ended)
        assert.deepStrictEqual(end, { code: 0, signal: null }, output())
        assert.isBelow(Duration.toSeconds(took), inTime(10))
      }).pipe(Effect.provide(database)),
    long
  )

  it.live(
    "ends the program on its embedded database with code 0, even while it makes it, which starts again",
    () =>
      Effect.gen(function* () {
        const folder = yield* Process.temporaryFolder
        const first = yield* Process.start({ DATA_DIR: folder })
        yield* eventually(
          "the cluster",
          Effect.sync(() => existsSync(join(folder, "postgres")))
        )
        yield* first.kill("SIGTERM")
        assert.deepStrictEqual(yield* first.ended, { code: 0, signal: null }, first.output())
        const second = yield* Process.start({ DATA_DIR: folder })
        const client = yield* Client.make(yield* second.address)
        assert.strictEqual((yield* client.ask("/charges/search")).status, 200)
        yield* second.kill("SIGINT")
        assert.deepStrictEqual(yield* second.ended, { code: 0, signal: null }, second.output())
      }),
    long
  )
})
