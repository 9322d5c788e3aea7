/**
 * The embedded database: Postgres in the process (PGlite), under a data folder or in memory, reached over a socket by
 * the same client as any other Postgres. It is a single session, so its client has exactly one connection.
 */
import { createHash } from "node:crypto"
import * as Net from "node:net"
import * as Os from "node:os"
import { PGlite } from "@electric-sql/pglite"
import { PGLiteSocketServer } from "@electric-sql/pglite-socket"
import { PgClient } from "@effect/sql-pg"
import { Effect, FileSystem, Path, Schema } from "effect"
import { guarded } from "./Database.ts"

/** The embedded database cannot be opened. */
export class EmbeddedDatabaseError extends Schema.TaggedError<EmbeddedDatabaseError>()("EmbeddedDatabaseError", {
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

// The system allows a socket about 100 bytes of path.
const longestSocketPath = 100

/**
 * Takes the folder for this process, until the scope closes or the process dies. The lock is a socket that listens in
 * the folder: unlike a file, it stops answering when its process is killed.
 */
const lockFolder = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const inFolder = path.join(folder, "lock.sock")
  const socket =
    Buffer.byteLength(inFolder) <= longestSocketPath
      ? inFolder
      : path.join(Os.tmpdir(), `practice-data-${createHash("sha256").update(folder).digest("hex").slice(0, 16)}.sock`)
  const isAnswered = Effect.callback<boolean>((resume) => {
    const probe = Net.connect(socket)
    probe.once("connect", () => {
      probe.destroy()
      resume(Effect.succeed(true))
    })
    probe.once("error", () => resume(Effect.succeed(false)))
  })
  if (yield* isAnswered) {
    return yield* new EmbeddedDatabaseError({
      message: `The data folder ${folder} is in use by another process, such as the running service: the embedded database serves one process. Stop it, or choose another folder with DATA_DIR.`
    })
  }
  yield* fs.remove(socket, { force: true })
  yield* Effect.acquireRelease(
    Effect.callback<Net.Server, EmbeddedDatabaseError>((resume) => {
      const server = Net.createServer((connection) => connection.destroy())
      server.unref()
      server.once("error", (cause) =>
        resume(
          Effect.fail(
            new EmbeddedDatabaseError({
              message: `The data folder ${folder} cannot be locked. Choose another with DATA_DIR.`,
              cause
            })
          )
        )
      )
      server.listen(socket, () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
  )
})

/**
 * Readies the folder of the cluster. Making a cluster takes a moment, and one that was cut short cannot be opened: what
 * was never marked as made is made again.
 */
const clusterIn = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const cluster = path.join(folder, "postgres")
  const marker = path.join(folder, "made")
  if (!(yield* fs.exists(marker))) yield* fs.remove(cluster, { recursive: true, force: true })
  return { cluster, made: fs.writeFileString(marker, "The cluster beside this file is whole.\n") }
})

const open = (cluster: string) =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: () => PGlite.create({ dataDir: cluster }),
      catch: (cause) =>
        new EmbeddedDatabaseError({ message: `The embedded database at ${cluster} cannot be opened.`, cause })
    }),
    (database) => Effect.promise(() => database.close())
  )

/**
 * A client of the embedded database.
 *
 * @param dataDir the folder it is kept in, or `memory` to keep nothing
 */
export const connect = Effect.fn("Embedded.connect")(
  function* (dataDir: string) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const folder = path.resolve(dataDir)
    let database: PGlite
    if (dataDir === "memory") {
      database = yield* open("memory://")
    } else {
      yield* fs.makeDirectory(folder, { recursive: true })
      yield* lockFolder(folder)
      const { cluster, made } = yield* clusterIn(folder)
      database = yield* open(cluster)
      yield* made
    }
    const sockets = yield* fs.makeTempDirectoryScoped({ prefix: "practice-data-" })
    const socket = path.join(sockets, ".s.PGSQL.5432")
    yield* Effect.acquireRelease(
      Effect.tryPromise({
        try: () => {
          const server = new PGLiteSocketServer({ db: database, path: socket, maxConnections: 2 })
          return server.start().then(() => server)
        },
        catch: (cause) => new EmbeddedDatabaseError({ message: "The embedded database cannot listen.", cause })
      }),
      (server) => Effect.promise(() => server.stop())
    )
    const client = yield* PgClient.make({
      path: socket,
      username: "postgres",
      database: "postgres",
      maxConnections: 1,
      maxMessageSize: 256 * 1024 * 1024,
      // All connections are one session there, which still has the names that an earlier connection prepared.
      prepare: false
    })
    return yield* guarded(client, {
      name: "embedded database",
      connections: 1,
      // Its socket knows no cancel: a statement that is cut short would keep all others waiting for seconds.
      isCancellable: false,
      // It is there as long as the process is.
      probe: Effect.void
    })
  },
  (connected, dataDir) =>
    Effect.catchTag(connected, "PlatformError", (cause) =>
      Effect.fail(
        new EmbeddedDatabaseError({
          message: `The data folder of DATA_DIR, ${dataDir}, cannot be used: ${cause.message}`,
          cause
        })
      )
    )
)
