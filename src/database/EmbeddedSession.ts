/**
 * The single session of the embedded database: the connection of its owner, and guests, which are other processes, such as
 * an operator's command while the service has it open. They have it in turn, each for a statement or a transaction.
 * Meanwhile the only connection of the owner is held back.
 */
import { chmodSync } from "node:fs"
import * as Net from "node:net"
import { Duplex } from "node:stream"
import { Cause, Duration, Effect, FiberSet } from "effect"
import type { Database } from "./Database.ts"

export type OnAnswer = (parts: ReadonlyArray<Uint8Array>) => void

/** The only session of a cluster. It takes messages of the wire protocol, all of them whole, and answers them in turn. */
export type Session = (messages: Uint8Array, onAnswer: OnAnswer) => void

const resetting = Buffer.from("S\0\0\0\x04Q\0\0\0\x0drollback\0Q\0\0\0\x10discard all\0")

/** Ends a sequence of messages that a user left open, its transaction, and its settings. */
const reset = (session: Session) => session(resetting, () => {})

export const connectionTo = (session: Session) =>
  new Duplex({
    read() {},
    write(messages: Buffer, _encoding, done) {
      session(messages, (parts) => {
        if (!this.destroyed) for (const part of parts) this.push(part)
        done()
      })
    },
    final(done) {
      this.destroy()
      done()
    },
    destroy(error, done) {
      reset(session)
      done(error)
    }
  })

/** The longest turn. A transaction that is open by then is rolled back. */
const longestTurn = Duration.seconds(5)

/** The time that a guest waits for its turn before it is disconnected. */
export const longestWait = Duration.seconds(30)

/** The bytes of the longest message of a guest. */
const longestMessage = 16 * 1024 * 1024

/** Fails if the guest leaves before it has sent so many bytes. */
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

/** Gives the database to a guest until its statement or transaction is over. */
const turn = Effect.fnUntraced(function* (session: Session, sql: Database, guest: Net.Socket, first: Buffer) {
  yield* Effect.timeoutOrElse(sql.reserve, { duration: longestWait, orElse: () => Cause.done() })
  yield* Effect.addFinalizer(() => Effect.sync(() => reset(session)))
  const send = (message: Buffer) =>
    Effect.callback<Buffer>((resume) => session(message, (parts) => resume(Effect.succeed(Buffer.concat(parts)))))
  const speak = Effect.gen(function* () {
    let answer = yield* send(first)
    guest.write(answer)
    while (!answer.subarray(-ready.length).equals(ready)) {
      answer = yield* send(yield* readMessage(guest, 5))
      guest.write(answer)
    }
  })
  yield* Effect.timeoutOrElse(speak, { duration: longestTurn, orElse: () => Cause.done() })
}, Effect.scoped)

const protocol = 196_608

const serveOne = Effect.fnUntraced(function* (session: Session, sql: Database, guest: Net.Socket) {
  let message = yield* readMessage(guest, 4)
  if (message.length < 8 || message.readInt32BE(4) !== protocol) return
  while (true) {
    yield* turn(session, sql, guest, message)
    message = yield* readMessage(guest, 5)
  }
})

/**
 * Serves guests, one at a time and among the requests of the owner, until the scope closes. Those who are connected then
 * have the time of a turn to finish.
 */
export const serve = Effect.fnUntraced(function* (session: Session, sql: Database, path: string) {
  const guests = yield* FiberSet.make()
  const run = yield* FiberSet.runtime(guests)()
  yield* Effect.acquireRelease(
    Effect.callback<Net.Server, Cause.UnknownError>((resume) => {
      const server = Net.createServer((guest) => {
        guest.on("error", () => guest.destroy())
        const leave = Effect.sync(() => guest.destroy())
        run(Effect.ignore(Effect.ensuring(serveOne(session, sql, guest), leave)))
      })
      server.maxConnections = 128
      server.once("error", (error) => resume(Effect.fail(new Cause.UnknownError(error))))
      server.listen(path, () => resume(Effect.succeed(server)))
      // It is bound by now, and other users may not come in.
      if (server.listening) chmodSync(path, 0o600)
    }),
    (server) =>
      Effect.sync(() => server.close()).pipe(
        Effect.andThen(Effect.interruptible(FiberSet.awaitEmpty(guests))),
        Effect.timeoutOption(longestTurn)
      )
  )
})
