/**
 * The embedded database: the access to its folder, whose pages and logs have signing secrets; and other processes on it
 * while one has it open, as the commands of operators are.
 *
 * @module-tag long
 */
import { chmodSync, rmSync, statSync } from "node:fs"
import * as Net from "node:net"
import { join } from "node:path"
import { assert, it as test, layer } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Context, Duration, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { Reactivity } from "effect/reactivity"
import * as Embedded from "../../../src/database/Embedded.ts"
import { temporaryFolder } from "../../support/Process.ts"
import { inTime } from "../../support/inTime.ts"

const modeOf = (...path: ReadonlyArray<string>) => statSync(join(...path)).mode & 0o777

test.live("The data folder is its owner's alone, and the cluster in it also where it was open", () =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "above", ".data")
    const open = Effect.scoped(Embedded.connect(folder))
    yield* open
    assert.strictEqual(modeOf(folder), 0o700)
    yield* Effect.sync(() => chmodSync(join(folder, "postgres"), 0o755))
    yield* open
    assert.strictEqual(modeOf(folder, "postgres"), 0o700)
  }).pipe(Effect.provide([NodeServices.layer, Reactivity.layer]))
)

test.live("A process that ends lets the guests finish that it has let in", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const [ownerScope, guestScope] = [yield* Scope.make(), yield* Scope.make()]
    yield* Effect.flatMap(Embedded.connect(folder), ({ admitGuests }) => admitGuests).pipe(Scope.provide(ownerScope))
    const { isGuest, sql } = yield* Scope.provide(Embedded.connect(folder, { asGuest: true }), guestScope)
    assert.isTrue(isGuest)
    const ending = yield* Effect.forkChild(Effect.timed(Scope.close(ownerScope, Exit.void)), { startImmediately: true })
    yield* Effect.sleep("100 millis")
    assert.deepStrictEqual(yield* sql`select 1 as one`, [{ one: 1 }])
    yield* Scope.close(guestScope, Exit.void)
    const [took] = yield* Fiber.join(ending)
    assert.isBelow(Duration.toSeconds(took), 4)
  }).pipe(Effect.scoped, Effect.provide([NodeServices.layer, Reactivity.layer]))
)

const make = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const { admitGuests, sql } = yield* Embedded.connect(folder)
  yield* sql`create table notes (writer text, note text)`
  yield* admitGuests
  return { folder, sql }
})

class Owner extends Context.Service<Owner, Effect.Success<typeof make>>()(
  "practice-data/test/system/database/Embedded/Owner"
) {
  static readonly layer = Layer.effect(Owner, make).pipe(Layer.provideMerge([NodeServices.layer, Reactivity.layer]))
}

const guest = Effect.gen(function* () {
  const { folder } = yield* Owner
  const { isGuest, sql } = yield* Embedded.connect(folder, { asGuest: true })
  assert.isTrue(isGuest)
  return sql
})

const notesOf = (writer: string) =>
  Effect.gen(function* () {
    const { sql } = yield* Owner
    const rows = yield* sql<{ note: string }>`select note from notes where writer = ${writer} order by note`
    return rows.map(({ note }) => note)
  })

const message = (type: string, body: string) => {
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(4 + body.length, 1)
  return Buffer.concat([head, Buffer.from(body, "latin1")])
}

const startup = Buffer.from("\0\0\0\x29\0\x03\0\0user\0postgres\0database\0postgres\0\0", "latin1")

/** A process that sends its first bytes, and ends with its connection; or that then sends a message, and is killed. */
const briefGuest = (first: Buffer, then?: Buffer) =>
  Effect.flatMap(Owner, ({ folder }) =>
    Effect.callback<void>((resume) => {
      const socket = Net.connect(join(folder, "lock.sock"))
      socket.once("data", () => {
        if (then === undefined) return
        socket.once("data", () => socket.destroy())
        socket.write(then)
      })
      socket.once("close", () => resume(Effect.void))
      socket.write(first)
    }).pipe(Effect.timeout("10 seconds"))
  )

layer(Owner.layer, { excludeTestServices: true, timeout: "3 minutes" })("A guest of the embedded database", (it) => {
  it.effect("has it for a transaction, while its owner waits", () =>
    Effect.gen(function* () {
      const { sql } = yield* Owner
      const other = yield* guest
      const waiting = yield* other.withTransaction(
        Effect.gen(function* () {
          yield* other`insert into notes values ('together', 'guest')`
          const fiber = yield* Effect.forkDetach(sql`insert into notes values ('together', 'owner')`)
          yield* Effect.sleep("100 millis")
          assert.deepStrictEqual(yield* other`select note from notes where writer = 'together'`, [{ note: "guest" }])
          return fiber
        })
      )
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(yield* notesOf("together"), ["guest", "owner"])
    })
  )

  it.effect("leaves nothing of a transaction, nor of a session, in which it is killed", () =>
    Effect.gen(function* () {
      const { sql } = yield* Owner
      yield* briefGuest(startup, message("Q", "begin; insert into notes values ('killed', 'begun')\0"))
      assert.deepStrictEqual(yield* notesOf("killed"), [])
      yield* briefGuest(startup, message("Q", "set statement_timeout = 1\0"))
      assert.deepStrictEqual(yield* sql`show statement_timeout`, [{ statement_timeout: "0" }])
      // A sequence of messages without its end, which would swallow what comes next.
      yield* briefGuest(startup, message("P", "\0selecct\0\0\0"))
      assert.deepStrictEqual(yield* sql`select 1 as one`, [{ one: 1 }])
    })
  )

  it.effect("is sent away when its turn of 5 seconds is over, and what it had begun is rolled back", () =>
    Effect.gen(function* () {
      const other = yield* guest
      const { sql } = yield* Owner
      const writing = other.withTransaction(
        Effect.andThen(other`insert into notes values ('slow', 'begun')`, Effect.never)
      )
      const waiting = Effect.timed(Effect.delay(sql`select 1`, "100 millis"))
      const [held] = yield* Effect.raceFirst(waiting, writing)
      assert.isBelow(Duration.toSeconds(held), inTime(5))
      assert.deepStrictEqual(yield* notesOf("slow"), [])
    })
  )

  it.effect("is of the same user, and speaks as a client of Postgres does, or is cut off", () =>
    Effect.gen(function* () {
      const { folder, sql } = yield* Owner
      assert.strictEqual(modeOf(folder, "lock.sock"), 0o600)
      const cancel = Buffer.from("\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\0\0\0\0\0", "latin1")
      const endless = Buffer.concat([startup, message("Q", "").fill(1, 1)])
      for (const said of [Buffer.from("GET / HTTP/1.1\r\n\r\n"), cancel, endless]) yield* briefGuest(said)
      assert.deepStrictEqual(yield* sql`select 1 as one`, [{ one: 1 }])
    })
  )

  it.effect("shares the database also where the lock file was deleted", () =>
    Effect.gen(function* () {
      const { folder } = yield* Owner
      rmSync(join(folder, "lock"))
      assert.isTrue((yield* Embedded.connect(folder, { asGuest: true })).isGuest)
      assert.include((yield* Effect.flip(Embedded.connect(folder))).message, "is in use by another process")
    })
  )

  it.effect("leaves the event loop of its owner free while a statement runs: for requests, and for a stop signal", () =>
    Effect.gen(function* () {
      const other = yield* guest
      const statement = yield* Effect.forkChild(other`select pg_sleep(3)`, { startImmediately: true })
      const [took] = yield* Effect.timed(Effect.sleep("200 millis"))
      assert.isBelow(Duration.toSeconds(took), 3)
      assert.isUndefined(statement.pollUnsafe())
      yield* Fiber.join(statement)
    })
  )
})
