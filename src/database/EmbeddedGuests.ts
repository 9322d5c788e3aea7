/**
 * Other processes on the embedded database, such as an operator's command while the service has it open. The database is
 * a single session: guests have it in turn, each for a statement or a transaction. Meanwhile the only connection of its
 * owner is held back.
 */
import { createHash } from "node:crypto"
import { chmodSync } from "node:fs"
import * as Net from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { PGlite } from "@electric-sql/pglite"
import { PGLiteSocketServer } from "@electric-sql/pglite-socket"
import { Cause, Duration, Effect, FiberSet, Option, Schedule, type Scope } from "effect"
import type { Database } from "./Database.ts"

/** The longest turn. A transaction that is open by then is rolled back. */
export const longestTurn = Duration.seconds(5)

/** The time that a guest waits for its turn before it is disconnected. */
export const longestWait = Duration.seconds(30)

/** The most guests that may be connected. */
const mostGuests = 128

// The system allows a socket about 100 bytes of path.
const longestPath = 100

/** The socket of the process that has a data folder open. */
export const socketIn = (folder: string) => {
  const inFolder = join(folder, "lock.sock")
  if (Buffer.byteLength(inFolder) <= longestPath) return inFolder
  const name = createHash("sha256").update(folder).digest("hex").slice(0, 16)
  return join(tmpdir(), `practice-data-${name}.sock`)
}

/** Serves a PGlite at the path of a socket until the scope closes. Fails if it cannot listen. */
export const listen = (db: PGlite, path: string, maxConnections: number) =>
  Effect.acquireRelease(
    Effect.tryPromise(() => {
      const server = new PGLiteSocketServer({ db, path, maxConnections })
      return server.start().then(() => server)
    }),
    (server) => Effect.promise(() => server.stop())
  )

// The message Sync, which ends a sequence of messages that a guest did not end.
const sync = Uint8Array.of(0x53, 0, 0, 0, 4)

/** Leaves the session as it was before a guest, with neither its transaction nor its settings. */
const cleanUp = (database: PGlite) =>
  Effect.gen(function* () {
    const ignored = { onRawData: () => {} }
    yield* Effect.promise(() => database.runExclusive(() => database.execProtocolRawStream(sync, ignored)))
    if (database.isInTransaction()) yield* Effect.promise(() => database.exec("rollback"))
    yield* Effect.promise(() => database.exec("discard all"))
  })

/** Waits until an event of a guest, or of its server, says enough. */
const until = (isEnough: (chunk: unknown) => boolean, ...events: ReadonlyArray<readonly [Net.Socket, string]>) =>
  Effect.callback<void>((resume) => {
    const receive = (chunk: unknown) => {
      if (isEnough(chunk)) resume(Effect.andThen(stop, Effect.void))
    }
    const stop = Effect.sync(() => {
      for (const [socket, event] of events) socket.off(event, receive)
    })
    for (const [socket, event] of events) socket.on(event, receive)
    receive(undefined)
    return stop
  })

/** Waits for bytes of a guest, or for its end. */
const speaks = (guest: Net.Socket) =>
  until(() => guest.readableLength > 0 || guest.destroyed, [guest, "readable"], [guest, "close"])

/** The end of an answer: ReadyForQuery, outside of a transaction. */
const ready = Buffer.from("Z\0\0\0\x05I")

/** Waits for the end of an answer to a guest, or for the end of the guest. */
const answered = (guest: Net.Socket, server: Net.Socket) =>
  Effect.suspend(() => {
    let tail = Buffer.alloc(0)
    const isReady = (chunk: unknown) => {
      if (Buffer.isBuffer(chunk)) tail = Buffer.concat([tail, chunk]).subarray(-ready.length)
      return tail.equals(ready) || guest.destroyed
    }
    return until(isReady, [server, "data"], [guest, "close"])
  })

export interface Host {
  readonly database: PGlite
  /** The client of the owner. */
  readonly sql: Database
  /** A folder for sockets that no other user can enter. */
  readonly sockets: string
}

/** Gives the database to a guest until its statement or transaction is over. */
const turn = ({ database, sql }: Host, guest: Net.Socket, server: Net.Socket) =>
  Effect.gen(function* () {
    yield* sql.reserve
    yield* Effect.addFinalizer(() => cleanUp(database))
    guest.pipe(server, { end: false })
    const end = yield* Effect.timeoutOption(answered(guest, server), longestTurn)
    guest.unpipe(server)
    if (Option.isNone(end)) guest.destroy()
  }).pipe(Effect.scoped)

/** A guest. After its first turn, it may be in the middle of its work. */
interface Visit {
  readonly guest: Net.Socket
  hasBegun: boolean
}

const request = { key: "a guest", within: Duration.times(longestTurn, 2), unavailable: () => "busy" as const }

/** Serves a guest until it disconnects. A server of its own keeps its messages from those of others. */
const serveOne = Effect.fnUntraced(function* (host: Host, visit: Visit, id: number) {
  const { guest } = visit
  const path = join(host.sockets, `guest-${id}`)
  yield* listen(host.database, path, 1)
  const server = Net.connect(path)
  server.on("error", () => guest.destroy()).on("close", () => guest.destroy())
  yield* Effect.addFinalizer(() => Effect.sync(() => server.destroy()))
  server.pipe(guest)
  while (true) {
    yield* speaks(guest)
    if (guest.destroyed) return
    let hasBegun = false
    const begin = Effect.suspend(() => {
      hasBegun = true
      visit.hasBegun = true
      return turn(host, guest, server)
    })
    // Where the queue is full, or moves on slowly, the guest joins it again.
    yield* Effect.retry(host.sql.run(request, begin), {
      while: () => !hasBegun && !guest.destroyed,
      schedule: Schedule.upTo(Schedule.spaced("20 millis"), { duration: longestWait })
    })
  }
}, Effect.scoped)

/**
 * Serves guests, one at a time and among the requests that wait for the database, until the scope closes. Guests that have
 * begun by then have the time of a turn to finish.
 */
export const serve = Effect.fnUntraced(function* (
  host: Host,
  path: string
): Effect.fn.Return<void, Cause.UnknownError, Scope.Scope> {
  const visits = new Set<Visit>()
  const fibers = yield* FiberSet.make()
  const run = yield* FiberSet.runtime(fibers)()
  let count = 0

  const receive = (guest: Net.Socket) => {
    const visit = { guest, hasBegun: false }
    visits.add(visit)
    guest.on("error", () => guest.destroy())
    const leave = Effect.sync(() => {
      visits.delete(visit)
      guest.destroy()
    })
    run(Effect.ignore(Effect.ensuring(serveOne(host, visit, count++), leave)))
  }

  yield* Effect.acquireRelease(
    Effect.callback<Net.Server, Cause.UnknownError>((resume) => {
      const server = Net.createServer(receive)
      server.maxConnections = mostGuests
      server.once("error", (error) => resume(Effect.fail(new Cause.UnknownError(error))))
      server.listen(path, () => resume(Effect.succeed(server)))
      // It is bound by now, and other users may not come in.
      if (server.listening) chmodSync(path, 0o600)
    }),
    Effect.fnUntraced(function* (server) {
      server.close()
      for (const { guest, hasBegun } of visits) if (!hasBegun) guest.destroy()
      yield* Effect.timeoutOption(FiberSet.awaitEmpty(fibers), longestTurn)
      for (const { guest } of visits) guest.destroy()
      yield* FiberSet.awaitEmpty(fibers)
    })
  )
})
