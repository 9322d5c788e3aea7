/**
 * Other processes on the embedded database, such as an operator's command while the service runs. The database is a
 * single session: while a guest has its turn, its owner's only connection is held back.
 */
import * as Net from "node:net"
import type { PGlite } from "@electric-sql/pglite"
import type { PGLiteSocketServer } from "@electric-sql/pglite-socket"
import { Duration, Effect, Queue, Semaphore } from "effect"
import type { Database } from "./Database.ts"

/** How long a guest may have the database. What it has not committed by then is rolled back. */
export const longestTurn = Duration.seconds(5)

/** How long a guest waits for its turn before it is sent away. */
export const longestWait = Duration.seconds(30)

/** The database, as its owner has it. */
export interface Host {
  readonly database: PGlite
  /** Where a guest's connection goes. */
  readonly server: PGLiteSocketServer
  readonly socket: string
  /** The owner's client. */
  readonly sql: Database
}

/** A guest has something to say, or has left. A mere look at whether the folder is taken is no guest. */
const arrival = (guest: Net.Socket) =>
  Effect.callback<void>((resume) => {
    const arrived = () => resume(Effect.void)
    if (guest.readableLength > 0 || guest.destroyed) return arrived()
    guest.once("readable", arrived).once("close", arrived)
    return Effect.sync(() => guest.off("readable", arrived).off("close", arrived))
  })

/** Passes on what either side says, until one of them leaves. */
const passOn = (guest: Net.Socket, socket: string) =>
  Effect.callback<void>((resume) => {
    if (guest.destroyed) return resume(Effect.void)
    const inner = Net.connect(socket)
    const end = () => {
      inner.destroy()
      guest.destroy()
      resume(Effect.void)
    }
    inner.on("error", end).once("close", end)
    guest.once("close", end)
    guest.pipe(inner)
    inner.pipe(guest)
    return Effect.sync(end)
  })

// The message Sync, which ends a sequence of messages that a guest did not end.
const sync = Uint8Array.of(0x53, 0, 0, 0, 4)

/** Leaves the session as it was before the guest: nothing of a killed one stays, and none of its settings. */
const cleanUp = Effect.fnUntraced(function* ({ database, server }: Host) {
  // The guest's connection, which is beside the owner's, is closed a moment after its socket.
  while (server.getStats().activeConnections > 1) yield* Effect.sleep("1 millis")
  yield* Effect.promise(() => database.runExclusive(() => database.execProtocolRaw(sync)))
  if (database.isInTransaction()) yield* Effect.promise(() => database.exec("rollback"))
  yield* Effect.promise(() => database.exec("discard all"))
})

/** Gives the database to a guest. */
const turn = (host: Host, guest: Net.Socket) =>
  Effect.scoped(
    Effect.andThen(
      host.sql.reserve,
      passOn(guest, host.socket).pipe(Effect.timeoutOption(longestTurn), Effect.ensuring(cleanUp(host)))
    )
  )

/**
 * Serves guests, one at a time and among the requests that wait for the database, until the scope closes. A turn that has
 * begun by then comes to its end first.
 *
 * @param guests the connections that they open
 */
export const serve = Effect.fnUntraced(function* (host: Host, guests: Queue.Dequeue<Net.Socket>) {
  const database = yield* Semaphore.make(1)
  yield* Effect.addFinalizer(() => Semaphore.take(database, 1))

  const visit = Effect.fnUntraced(function* (guest: Net.Socket) {
    yield* arrival(guest)
    const state = { hasBegun: false }
    const begin = Effect.suspend(() => {
      state.hasBegun = true
      return turn(host, guest)
    })
    const request = {
      key: "a guest",
      within: Duration.times(longestTurn, 2),
      unavailable: () => "busy" as const
    }
    const untilServed = Effect.gen(function* () {
      while (!state.hasBegun && !guest.destroyed) {
        yield* Effect.ignore(host.sql.run(request, Semaphore.withPermit(database, begin)))
      }
    })
    const leave = Effect.sync(() => {
      if (!state.hasBegun) guest.destroy()
    })
    yield* untilServed.pipe(Effect.timeoutOption(longestWait), Effect.ensuring(leave))
  })

  yield* Queue.take(guests).pipe(
    Effect.flatMap((guest) => Effect.forkScoped(visit(guest))),
    Effect.forever,
    Effect.forkScoped
  )
})
