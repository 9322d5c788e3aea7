/**
 * The lock of a data folder: a socket that listens in it. Unlike a file, it stops answering when its process is killed.
 * Other processes of the same user connect to it to reach what its owner has open.
 */
import { createHash } from "node:crypto"
import { chmodSync } from "node:fs"
import * as Net from "node:net"
import * as Os from "node:os"
import { Clock, Data, Effect, FileSystem, Option, Path, Predicate, Queue, Schema, type Scope } from "effect"
import type { PlatformError } from "effect/PlatformError"

/** The folder cannot be locked. */
export class LockError extends Schema.TaggedError<LockError>()("LockError", { cause: Schema.Defect() }) {}

/** What became of taking a folder. */
export type Taking = Data.TaggedEnum<{
  /** It is this process's until the scope closes. `guests`: the connections that other processes open to the socket. */
  Taken: { readonly guests: Queue.Dequeue<Net.Socket> }
  /** Another process has it, and listens at this path. */
  Busy: { readonly socket: string }
}>
export const Taking = Data.taggedEnum<Taking>()

// The system allows a socket about 100 bytes of path.
const longestPath = 100

/** How many guests may be connected. One more is turned away. */
const mostGuests = 128

/** How long a socket is looked at before it counts as left behind: its process may be between binding and listening. */
const patience = "100 millis"

/** How old a mark of one who removes a socket may be, in milliseconds, before its process counts as killed. */
const longestRemoval = 5_000

const isAnswered = (socket: string) =>
  Effect.callback<boolean>((resume) => {
    const probe = Net.connect(socket)
    probe.once("connect", () => {
      probe.destroy()
      resume(Effect.succeed(true))
    })
    probe.once("error", () => resume(Effect.succeed(false)))
  })

const pathOf = Effect.fnUntraced(function* (folder: string) {
  const path = yield* Path.Path
  const inFolder = path.join(folder, "lock.sock")
  if (Buffer.byteLength(inFolder) <= longestPath) return inFolder
  const name = createHash("sha256").update(folder).digest("hex").slice(0, 16)
  return path.join(Os.tmpdir(), `practice-data-${name}.sock`)
})

interface Listening {
  readonly server: Net.Server
  readonly guests: Queue.Queue<Net.Socket>
  /** All that are connected. */
  readonly connected: ReadonlySet<Net.Socket>
}

const close = ({ connected, guests, server }: Listening) =>
  Effect.callback<void>((resume) => {
    server.close(() => resume(Effect.void))
    for (const guest of connected) guest.destroy()
  }).pipe(Effect.andThen(Queue.shutdown(guests)))

const isInUse = (error: Error) => Predicate.hasProperty(error, "code") && error.code === "EADDRINUSE"

/** Listens at a path; nothing if there is a socket already. */
const listen = (socket: string) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const guests = yield* Queue.unbounded<Net.Socket>()
      const connected = new Set<Net.Socket>()
      const server = yield* Effect.callback<Option.Option<Net.Server>, LockError>((resume) => {
        const made = Net.createServer((guest) => {
          guest.on("error", () => guest.destroy()).once("close", () => connected.delete(guest))
          connected.add(guest)
          if (connected.size > mostGuests) guest.destroy()
          else Queue.offerUnsafe(guests, guest)
        })
        made.unref()
        made.once("error", (cause) =>
          resume(isInUse(cause) ? Effect.succeedNone : Effect.fail(new LockError({ cause })))
        )
        made.listen(socket, () => resume(Effect.succeedSome(made)))
        // It is bound by now, and nobody else may come in.
        if (made.listening) chmodSync(socket, 0o600)
      })
      return Option.map(server, (made): Listening => ({ server: made, guests, connected }))
    }),
    Option.match({ onNone: () => Effect.void, onSome: close })
  ).pipe(Effect.map(Option.map(({ guests }) => guests)))

/** Removes the socket that a killed process left behind. Of several processes that find it, one removes it. */
const removeStale = Effect.fnUntraced(function* (socket: string) {
  const fs = yield* FileSystem.FileSystem
  const mark = `${socket}.removing`
  const isAlone = yield* fs.makeDirectory(mark).pipe(
    Effect.as(true),
    Effect.orElseSucceed(() => false)
  )
  if (!isAlone) {
    const now = yield* Clock.currentTimeMillis
    const age = yield* fs.stat(mark).pipe(
      Effect.map(({ mtime }) => Option.match(mtime, { onNone: () => 0, onSome: (time) => now - time.getTime() })),
      Effect.orElseSucceed(() => 0)
    )
    if (age > longestRemoval) yield* fs.remove(mark, { recursive: true, force: true })
    return yield* Effect.sleep(patience)
  }
  yield* Effect.gen(function* () {
    if (yield* isAnswered(socket)) return
    yield* Effect.sleep(patience)
    if (yield* isAnswered(socket)) return
    yield* fs.remove(socket, { force: true })
  }).pipe(Effect.ensuring(Effect.ignore(fs.remove(mark, { recursive: true, force: true }))))
})

type Attempt = Effect.Effect<Taking, LockError | PlatformError, FileSystem.FileSystem | Scope.Scope>

/** Takes a folder for this process, until the scope closes or the process dies, unless another process has it. */
export const take = Effect.fnUntraced(function* (folder: string) {
  const socket = yield* pathOf(folder)
  const attempt: Attempt = Effect.gen(function* () {
    const guests = yield* listen(socket)
    if (Option.isSome(guests)) return Taking.Taken({ guests: guests.value })
    if (yield* isAnswered(socket)) return Taking.Busy({ socket })
    yield* removeStale(socket)
    return yield* attempt
  })
  return yield* attempt
})
