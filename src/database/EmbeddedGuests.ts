/**
 * Other processes on the embedded database, such as an operator's command while the service runs. The database is a
 * single session: guests have it in turn, each for a statement or a transaction, while its owner's only connection is
 * held back.
 */
import type { Socket } from "node:net"
import type { PGlite } from "@electric-sql/pglite"
import { Duration, Effect, FiberSet, Queue, Semaphore } from "effect"
import type { Database } from "./Database.ts"
import { type Message, reader } from "./GuestMessages.ts"

/** How long a guest may have the database. What it has not committed by then is rolled back. */
export const longestTurn = Duration.seconds(5)

/** How long a guest waits for its turn before it is sent away. */
export const longestWait = Duration.seconds(30)

/** The database, as its owner has it. */
export interface Host {
  readonly database: PGlite
  /** The owner's client. */
  readonly sql: Database
}

// The message Sync, which ends a sequence of messages that a guest did not end.
const sync = Uint8Array.of(0x53, 0, 0, 0, 4)

const execute = (database: PGlite, message: Uint8Array, answered: (bytes: Uint8Array) => void) =>
  Effect.promise(() => database.runExclusive(() => database.execProtocolRawStream(message, { onRawData: answered })))

/** Leaves the session as it was before the guest: nothing of a killed one stays, and none of its settings. */
const cleanUp = Effect.fnUntraced(function* (database: PGlite, isUnfinished: boolean) {
  if (isUnfinished) yield* execute(database, sync, () => undefined)
  if (database.isInTransaction()) yield* Effect.promise(() => database.exec("rollback"))
  yield* Effect.promise(() => database.exec("discard all"))
})

/** Gives the database to a guest, from a message on until it has no transaction open. */
const turn = ({ database, sql }: Host, guest: Socket, first: Message, next: Effect.Effect<Message | undefined>) => {
  let isUnfinished = true
  const answer = (bytes: Uint8Array) => {
    if (bytes.length > 0 && !guest.destroyed) guest.write(Uint8Array.from(bytes))
  }
  const messages = Effect.gen(function* () {
    let message: Message | undefined = first
    while (message !== undefined) {
      isUnfinished = true
      yield* execute(database, message.bytes, answer)
      isUnfinished = !message.isLast
      if (message.isLast && !database.isInTransaction()) return
      message = yield* next
    }
  })
  return Effect.gen(function* () {
    yield* sql.reserve
    yield* messages.pipe(
      Effect.timeoutOrElse({ duration: longestTurn, orElse: () => Effect.sync(() => guest.destroy()) }),
      Effect.ensuring(Effect.suspend(() => cleanUp(database, isUnfinished)))
    )
  }).pipe(Effect.scoped)
}

/** A guest, and whether it has had a turn: it may be in the middle of what it does. */
interface Visit {
  readonly guest: Socket
  hasBegun: boolean
}

/**
 * Serves guests, one at a time and among the requests that wait for the database, until the scope closes. Those that have
 * begun by then have a moment to come to their end.
 *
 * @param guests the connections that they open
 */
export const serve = Effect.fnUntraced(function* (host: Host, guests: Queue.Dequeue<Socket>) {
  const database = yield* Semaphore.make(1)
  const visits = new Set<Visit>()
  const fibers = yield* FiberSet.make()

  const leave = (some: (visit: Visit) => boolean) =>
    Effect.sync(() => {
      for (const visit of visits) if (some(visit)) visit.guest.destroy()
    })
  yield* Effect.addFinalizer(() =>
    leave(({ hasBegun }) => !hasBegun).pipe(
      Effect.andThen(Effect.timeoutOption(FiberSet.awaitEmpty(fibers), longestTurn)),
      Effect.andThen(leave(() => true)),
      // The turn of one that had to leave is cleaned up.
      Effect.andThen(Semaphore.take(database, 1))
    )
  )

  const request = { key: "a guest", within: Duration.times(longestTurn, 2), unavailable: () => "busy" as const }

  /** Waits for a turn, again and again while many wait. */
  const takeTurn = (visit: Visit, first: Message, next: Effect.Effect<Message | undefined>) => {
    const { guest } = visit
    const state = { hasBegun: false }
    const begin = Effect.suspend(() => {
      state.hasBegun = true
      visit.hasBegun = true
      return turn(host, guest, first, next)
    })
    const attempt = Effect.ignore(host.sql.run(request, Semaphore.withPermit(database, begin)))
    const untilServed = Effect.gen(function* () {
      while (!state.hasBegun && !guest.destroyed) {
        yield* attempt
        // Where as many wait as may, it is refused at once.
        if (!state.hasBegun) yield* Effect.sleep("20 millis")
      }
    })
    return Effect.timeoutOrElse(untilServed, {
      duration: longestWait,
      orElse: () => Effect.sync(() => guest.destroy())
    })
  }

  const serveOne = Effect.fnUntraced(function* (visit: Visit) {
    const next = reader(visit.guest)
    while (true) {
      const message = yield* next
      if (message === undefined) return
      yield* takeTurn(visit, message, next)
    }
  })

  const receive = (guest: Socket) => {
    const visit = { guest, hasBegun: false }
    visits.add(visit)
    const leaves = Effect.sync(() => {
      visits.delete(visit)
      guest.destroy()
    })
    return FiberSet.run(fibers, Effect.ensuring(serveOne(visit), leaves))
  }

  yield* Queue.take(guests).pipe(Effect.flatMap(receive), Effect.forever, Effect.forkScoped)
})
