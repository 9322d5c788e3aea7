/**
 * The embedded database: Postgres (PGlite), in a thread since it blocks its thread for seconds at a start, under a data
 * folder or in memory. The same client reaches it by messages. It is a single session, so its client has exactly one
 * connection. One process has it open, and shares it with guests: other processes, such as an operator's command. They have
 * the session in turn, each for a statement or a transaction. Meanwhile the only connection of the owner is held back.
 */
import { chmodSync } from "node:fs"
import { statfs } from "node:fs/promises"
import * as Net from "node:net"
import { join, resolve } from "node:path"
import { Duplex, PassThrough } from "node:stream"
import { Worker } from "node:worker_threads"
import { PgClient } from "@effect/sql-pg"
import { Cause, Duration, Effect, Exit, FiberSet, FileSystem, Option, Schedule, Schema, Scope } from "effect"
import { reasonOfFile } from "../process/Failure.ts"
import { makeFolder, takeLock } from "../process/Files.ts"
import { moduleBeside } from "../process/Package.ts"
import { note } from "../process/Printed.ts"
import * as Columns from "./Columns.ts"
import { type Database, EmbeddedDatabaseError, guarded } from "./Database.ts"
import * as Distribution from "./Distribution.ts"

const failed = (message: string, cause?: unknown) => new EmbeddedDatabaseError({ message, cause })

/** The Postgres of PGlite, as the file PG_VERSION of a cluster names it. */
const postgres = "18"

/** The bytes that a system allows a socket's path. A folder with a longer one is not shared. */
const longestPath = 100

/** MiB that a new cluster takes with its first records and their log. */
const needed = 128

type OnAnswer = (parts: ReadonlyArray<Uint8Array>) => void

/** The only session of a cluster. It takes messages of the wire protocol, all of them whole, and answers them in turn. */
type Session = (messages: Uint8Array, onAnswer: OnAnswer) => void

const resetting = Buffer.from("S\0\0\0\x04Q\0\0\0\x0drollback\0Q\0\0\0\x10discard all\0")

/** Ends a sequence of messages that a user left open, its transaction, and its settings. */
const reset = (session: Session) => session(resetting, () => {})

const connectionTo = (session: Session) =>
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
const longestWait = Duration.seconds(30)

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
  yield* Effect.timeout(sql.reserve, longestWait)
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
  yield* Effect.timeout(speak, longestTurn)
}, Effect.scoped)

const protocol = 196_608

const serveOne = Effect.fnUntraced(function* (session: Session, sql: Database, guest: Net.Socket) {
  yield* Effect.addFinalizer(() => Effect.sync(() => guest.destroy()))
  let message = yield* readMessage(guest, 4)
  if (message.length < 8 || message.readInt32BE(4) !== protocol) return
  while (true) {
    yield* turn(session, sql, guest, message)
    message = yield* readMessage(guest, 5)
  }
}, Effect.scoped)

/**
 * Serves guests, one at a time and among the requests of the owner, until the scope closes. Those who are connected then
 * have the time of a turn to finish.
 */
const serve = Effect.fnUntraced(function* (session: Session, sql: Database, path: string) {
  const guests = yield* FiberSet.make()
  const run = yield* FiberSet.runtime(guests)()
  yield* Effect.acquireRelease(
    Effect.callback<Net.Server, EmbeddedDatabaseError>((resume) => {
      const server = Net.createServer((guest) => {
        guest.on("error", () => guest.destroy())
        run(Effect.ignore(serveOne(session, sql, guest)))
      })
      server.maxConnections = 128
      server.once("error", (cause) => resume(failed("The embedded database cannot listen.", cause)))
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

/** Opens a cluster, or one in memory, until the scope closes. Without the files of a cluster, PGlite makes one. */
const openPglite = Effect.fnUntraced(function* (dataDir: string) {
  const waiting: Array<OnAnswer> = []
  const module = moduleBeside(import.meta.url, "EmbeddedThread")
  const thread = yield* Effect.acquireRelease(
    Effect.sync(() => new Worker(module, { workerData: dataDir, execArgv: [] })),
    (opened) => Effect.promise(() => opened.terminate())
  )
  yield* Effect.callback<void, Cause.UnknownError>((resume) => {
    const fail = (cause: unknown) => resume(Effect.fail(new Cause.UnknownError(cause)))
    thread.once("error", fail).once("exit", fail)
    thread.once("message", () => {
      // A later error ends the process: nothing is known of the session.
      thread.off("error", fail).on("message", (answer) => waiting.shift()?.(answer))
      resume(Effect.void)
    })
  })
  const closed = Effect.callback<void>((resume) => {
    thread.once("exit", () => resume(Effect.void)).postMessage(null, [])
  })
  // The log of a cluster that cannot close in time is replayed at the next start, as after a kill.
  yield* Effect.addFinalizer(() => Effect.timeoutOption(closed, "500 millis"))
  const session: Session = (messages, onAnswer) => {
    // They may be a part of a larger buffer.
    const copy = new Uint8Array(messages)
    waiting.push(onAnswer)
    thread.postMessage(copy, [copy.buffer])
  }
  return session
})

/** The error of a cluster that cannot be made or opened. PGlite does not tell why it cannot open one. */
const unusable = Effect.fnUntraced(function* (folder: string, isMade: boolean, cause?: unknown) {
  const free = yield* Effect.option(Effect.tryPromise(() => statfs(folder)))
  const isFull = Option.exists(free, ({ bavail, bsize }) => bavail * bsize < (needed * 1024 ** 2) / 8)
  const message = isFull
    ? `The disk of the data folder ${folder} is full. Free ${needed} MiB and start again, or choose another folder with DATA_DIR.`
    : isMade
      ? `The database in ${folder} is damaged. Replace the folder by a backup, or delete it: the next start makes a new one with demo data.`
      : `The database in ${folder} cannot be made: ${reasonOfFile(cause)}. Remove the cause, or choose another folder with DATA_DIR.`
  return yield* failed(message, cause)
})

/**
 * Opens the cluster of a data folder until the scope closes, and makes it first where there is none. One that was cut short
 * while it was made lacks its mark, and is made again.
 */
const openCluster = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const cluster = join(folder, "postgres")
  const marker = join(folder, "made")
  const isMade = yield* fs.exists(marker)
  if (!isMade) yield* fs.remove(cluster, { recursive: true, force: true })
  yield* fs.makeDirectory(cluster, { recursive: true, mode: 0o700 })
  // Private, since a cluster has signing secrets. A volume may belong to another user.
  yield* Effect.ignore(fs.chmod(cluster, 0o700))
  const opening = Effect.catchTag(openPglite(cluster), "UnknownError", ({ cause }) => unusable(folder, isMade, cause))
  if (!isMade) {
    yield* note(`Making the database, which takes about 10 seconds: ${cluster}`)
    const made = yield* opening
    yield* note("The database is made")
    yield* fs.writeFileString(marker, "The cluster beside this file is whole.\n")
    return made
  }
  const versionFile = fs.readFileString(join(cluster, "PG_VERSION"))
  const version = (yield* Effect.orElseSucceed(versionFile, () => "")).trim()
  if (version === postgres) return yield* opening
  // PGlite would make a cluster over the files of one without a version.
  if (!/^\d+$/.test(version)) return yield* unusable(folder, isMade)
  return yield* failed(
    `The database in ${folder} was made by Postgres ${version}, and this release has Postgres ${postgres}. Start the release that made it, or choose another folder with DATA_DIR.`
  )
})

/** The folder is another process's, which may be about to end. */
class Taken extends Schema.TaggedError<Taken>()("Taken", {}) {}

const clientOf = Effect.fnUntraced(function* (open: () => Duplex, connectTimeout?: Duration.Input) {
  let connection: Duplex | undefined
  const client = yield* PgClient.make({
    // The session knows no request to cancel a statement, which comes on a connection beside that of the statement. That one
    // is closed, so that a stop waits for the statement alone.
    stream: () => (connection?.destroyed === false ? new PassThrough().destroy() : (connection = open())),
    username: "postgres",
    database: "postgres",
    maxConnections: 1,
    maxMessageSize: 256 * 1024 * 1024,
    types: Columns.types,
    connectTimeout,
    // All connections are one session there, which still has the names that an earlier connection prepared.
    prepare: false
  })
  const store = {
    name: "embedded database",
    pool: "embedded",
    connections: 1,
    // A cancelled statement would keep all others waiting for seconds.
    isCancellable: false,
    // It is up as long as the process is.
    probe: Effect.void
  } as const
  return yield* guarded(client, store, Distribution.single)
})

const host = Effect.fnUntraced(function* (session: Session, guestSocket?: string) {
  const sql = yield* clientOf(() => connectionTo(session))
  return {
    sql,
    /** True if another process has the database open, which shares it with this one. */
    isGuest: false,
    /** Lets other processes in, until the scope closes. For the owner, once the database is ready for them. */
    admitGuests: guestSocket === undefined ? Effect.void : serve(session, sql, guestSocket)
  }
})

/** Connects to the process that has the folder open, and waits for a turn. */
const visit = Effect.fnUntraced(function* (socket: string) {
  const sql = yield* clientOf(() => Net.connect(socket), longestWait)
  yield* sql`select 1`
  return { sql, isGuest: true, admitGuests: Effect.void }
})

/** True if a process listens at a socket: also one whose lock file was deleted. */
const isAnswered = (socket: string) =>
  Effect.callback<boolean>((resume) => {
    const probe = Net.connect(socket, () => probe.destroy())
    probe.once("error", () => resume(Effect.succeed(false))).once("close", () => resume(Effect.succeed(true)))
  })

const openFolder = Effect.fnUntraced(function* (folder: string, asGuest: boolean) {
  const fs = yield* FileSystem.FileSystem
  const socket = join(folder, "lock.sock")
  const isShared = Buffer.byteLength(socket) <= longestPath
  if ((yield* takeLock(join(folder, "lock"))) && !(isShared && (yield* isAnswered(socket)))) {
    yield* fs.remove(socket, { force: true })
    return yield* host(yield* openCluster(folder), isShared ? socket : undefined)
  }
  if (!asGuest || !isShared) return yield* new Taken()
  return yield* Effect.mapError(visit(socket), () => new Taken())
})

/**
 * Opens the embedded database in a folder; `memory` keeps nothing.
 *
 * @param options `asGuest` if the process that has the folder open may be asked to share it
 */
export const connect = Effect.fn("Embedded.connect")(function* (
  dataDir: string,
  { asGuest = false }: { readonly asGuest?: boolean } = {}
) {
  if (dataDir === "memory") {
    const opening = openPglite("memory://")
    const reason = "Cannot create the in-memory database."
    return yield* host(yield* Effect.mapError(opening, ({ cause }) => failed(reason, cause)))
  }
  const folder = resolve(dataDir)
  const unusableFolder = (cause: unknown) =>
    failed(`The data folder of DATA_DIR, ${dataDir}, cannot be used: ${reasonOfFile(cause)}`, cause)
  yield* Effect.try({ try: () => makeFolder(folder), catch: unusableFolder })
  // Each attempt that fails closes what it opened.
  const attempt = Effect.flatMap(Effect.flatMap(Effect.scope, Scope.fork), (scope) =>
    openFolder(folder, asGuest).pipe(
      Scope.provide(scope),
      Effect.tapCause((cause) => Scope.close(scope, Exit.failCause(cause)))
    )
  )
  return yield* attempt.pipe(
    Effect.retry({
      while: Schema.is(Taken),
      // Another command may have it for a moment, or many of them one after the other.
      schedule: Schedule.spaced("100 millis"),
      times: asGuest ? 300 : 30
    }),
    Effect.catchTags({
      UnknownError: ({ cause }) =>
        failed(
          `The data folder ${folder} cannot be locked: ${reasonOfFile(cause)}. Check that it is a folder, and that it and its files belong to you, or choose another with DATA_DIR.`,
          cause
        ),
      PlatformError: unusableFolder,
      Taken: () =>
        failed(
          `The data folder ${folder} is in use by another process, such as the running service: the embedded database serves one process. Stop it, or choose another folder with DATA_DIR.`
        )
    })
  )
})
