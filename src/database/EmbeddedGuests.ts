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
import { Cause, Duration, Effect, FiberSet, Schedule, type Scope } from "effect"
import type { Database } from "./Database.ts"
import { type Cluster, reset } from "./EmbeddedCluster.ts"

/** The longest turn. A transaction that is open by then is rolled back. */
export const longestTurn = Duration.seconds(5)

/** The time that a guest waits for its turn before it is disconnected. */
export const longestWait = Duration.seconds(30)

/** The most guests that may be connected. */
const mostGuests = 128

/** The bytes of the longest message of a guest. A longer one ends its visit. */
export const longestMessage = 16 * 1024 * 1024

// The system allows a socket about 100 bytes of path.
const longestPath = 100

/** The socket of the process that has a data folder open. */
export const socketIn = (folder: string) => {
  const inFolder = join(folder, "lock.sock")
  if (Buffer.byteLength(inFolder) <= longestPath) return inFolder
  const name = createHash("sha256").update(folder).digest("hex").slice(0, 16)
  return join(tmpdir(), `practice-data-${name}.sock`)
}

/** Reads so many bytes of a guest; fails if it leaves before. */
const read = (guest: Net.Socket, size: number) =>
  Effect.callback<Buffer, Cause.Done>((resume) => {
    const receive = () => {
      const bytes: Buffer | null = size === 0 ? Buffer.alloc(0) : guest.read(size)
      if (bytes?.length === size) resume(Effect.andThen(stop, Effect.succeed(bytes)))
      else if (bytes !== null || guest.destroyed) resume(Effect.andThen(stop, Cause.done()))
    }
    const stop = Effect.sync(() => guest.off("readable", receive).off("close", receive))
    guest.on("readable", receive).on("close", receive)
    receive()
    return stop
  })

/** Reads a message of a guest: a head that ends with the length, which counts itself, and a body. */
const readMessage = Effect.fnUntraced(function* (guest: Net.Socket, headSize: number) {
  const head = yield* read(guest, headSize)
  const length = head.readInt32BE(headSize - 4)
  if (length < 4 || length > longestMessage) return yield* Cause.done()
  return Buffer.concat([head, yield* read(guest, length - 4)])
})

/** The end of an answer: ReadyForQuery, outside of a transaction. */
const ready = Buffer.from("Z\0\0\0\x05I")

export interface Host {
  readonly cluster: Cluster
  /** The client of the owner. */
  readonly sql: Database
}

/** Gives the database to a guest until its statement or transaction is over. */
const turn = ({ cluster, sql }: Host, guest: Net.Socket, first: Buffer) =>
  Effect.gen(function* () {
    yield* sql.reserve
    yield* Effect.addFinalizer(() => Effect.sync(() => reset(cluster)))
    const send = (message: Buffer) =>
      Effect.callback<Buffer>((resume) =>
        cluster.send(message, (parts) => resume(Effect.succeed(Buffer.concat(parts))))
      )
    let answer = yield* send(first)
    guest.write(answer)
    while (!answer.subarray(-ready.length).equals(ready)) {
      answer = yield* send(yield* readMessage(guest, 5))
      guest.write(answer)
    }
  }).pipe(
    Effect.scoped,
    Effect.timeoutOrElse({ duration: longestTurn, orElse: () => Cause.done() }),
    Effect.tapError(() => Effect.sync(() => guest.destroy()))
  )

/** A guest. After its first turn, it may be in the middle of its work. */
interface Visit {
  readonly guest: Net.Socket
  hasBegun: boolean
}

const request = { key: "a guest", within: Duration.times(longestTurn, 2), unavailable: () => "busy" as const }

const protocol = 196_608

/** Serves a guest until it disconnects. */
const serveOne = Effect.fnUntraced(function* (host: Host, visit: Visit) {
  const { guest } = visit
  let message = yield* readMessage(guest, 4)
  if (message.length < 8 || message.readInt32BE(4) !== protocol) return
  while (true) {
    let hasBegun = false
    const begin = Effect.suspend(() => {
      hasBegun = true
      visit.hasBegun = true
      return turn(host, guest, message)
    })
    // Where the queue is full, or moves on slowly, the guest joins it again.
    yield* Effect.retry(host.sql.run(request, begin), {
      while: () => !hasBegun && !guest.destroyed,
      schedule: Schedule.upTo(Schedule.spaced("20 millis"), { duration: longestWait })
    })
    message = yield* readMessage(guest, 5)
  }
})

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

  const receive = (guest: Net.Socket) => {
    const visit = { guest, hasBegun: false }
    visits.add(visit)
    guest.on("error", () => guest.destroy())
    const leave = Effect.sync(() => {
      visits.delete(visit)
      guest.destroy()
    })
    run(Effect.ignore(Effect.ensuring(serveOne(host, visit), leave)))
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
