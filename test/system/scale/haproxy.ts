/** haproxy as scripts/scale/haproxy.cfg sets it up, with other addresses and folders than those of the file. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { type Agent, request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Data, Effect } from "effect"
import * as Haproxy from "../../../scripts/scale/maps/Haproxy.ts"
import { eventually } from "../../support/eventually.ts"
import { freePort } from "../../support/LocalPostgres.ts"

const file = new URL("../../../scripts/scale/haproxy.cfg", import.meta.url)

// Debian has it where only root looks.
const program = ["haproxy", "/usr/sbin/haproxy"].find((path) => spawnSync(path, ["-v"]).status === 0)

/** Whether there is a haproxy here. */
export const isInstalled = program !== undefined

/** The name of a test that needs haproxy: with why it is skipped, where it is. */
export const named = (name: string) => (isInstalled ? name : `${name} (skipped: there is no haproxy here)`)

/** The servers of the file. */
export const servers = ["10.0.1.11:3000", "10.0.1.12:3000", "10.0.2.11:3000", "10.0.2.12:3000"] as const

/** The port of each server. */
export type Ports = Readonly<Record<(typeof servers)[number], number>>

/** No response came. */
export class NoResponse extends Data.TaggedError("NoResponse")<{ readonly cause: unknown }> {}

/** A response. */
export interface Response {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
}

/** A request. A header may come more than once. */
export interface Request {
  readonly path: string
  readonly method?: string
  readonly headers?: ReadonlyArray<readonly [name: string, value: string]>
  readonly body?: string
}

/** Sends a request, on a connection of its own unless an agent has one. */
export const send = (port: number, { body = "", headers = [], method = "POST", path }: Request, agent?: Agent) =>
  Effect.callback<Response, NoResponse>((resume) => {
    const all = [
      ["Host", "practice-data"],
      ["Connection", agent === undefined ? "close" : "keep-alive"],
      ["Content-Length", String(body.length)],
      ...headers
    ]
    const sending = request(
      { host: "127.0.0.1", port, method, path, agent: agent ?? false, headers: all.flat() },
      (response) => {
        let received = ""
        response.setEncoding("utf8").on("data", (text: string) => (received += text))
        response.once("error", (cause) => resume(new NoResponse({ cause })))
        response.once("end", () => {
          resume(Effect.succeed({ status: response.statusCode ?? 0, body: received, headers: response.headers }))
        })
      }
    )
    sending.once("error", (cause) => resume(new NoResponse({ cause })))
    sending.end(body)
    return Effect.sync(() => sending.destroy())
  })

const replaced = (text: string, from: string | RegExp, to: string) => {
  const changed = text.replaceAll(from, to)
  if (changed === text) throw new Error(`haproxy.cfg has no ${String(from)}`)
  return changed
}

const configuration = (folder: string, port: number, ports: Ports) => {
  const here: ReadonlyArray<readonly [string | RegExp, string]> = [
    [/^ +(user|group) haproxy\n/gm, ""],
    ["/etc/haproxy/maps", join(folder, "maps")],
    ["/run/haproxy", folder],
    ["log stdout", "log stderr"],
    // Within what a machine allows a process of files.
    ["maxconn 20000", "maxconn 400"],
    ["bind :80", `bind 127.0.0.1:${port}`],
    ...servers.map((server) => [server, `127.0.0.1:${ports[server]}`] as const)
  ]
  return here.reduce((text, [from, to]) => replaced(text, from, to), readFileSync(file, "utf8"))
}

const folderOfMaps = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "practice-data-haproxy-"))
    const maps = join(folder, "maps")
    mkdirSync(maps)
    for (const name of ["keys", "organizations"]) writeFileSync(join(maps, `${name}.map`), "")
    return { folder, maps, socket: join(folder, "admin.sock") }
  }),
  ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** The state of a server that gets requests. */
const running = "2"

/** Starts haproxy in front of servers, with empty maps. It is gone when the scope closes. */
export const start = Effect.fnUntraced(function* (ports: Ports) {
  const port = yield* freePort
  const places = yield* folderOfMaps
  const config = join(places.folder, "haproxy.cfg")
  let log = ""
  const child = yield* Effect.acquireRelease(
    Effect.sync((): ChildProcess => {
      writeFileSync(config, configuration(places.folder, port, ports))
      const spawned = spawn(program ?? "haproxy", ["-f", config, "-db"], { stdio: ["ignore", "ignore", "pipe"] })
      spawned.stderr.setEncoding("utf8").on("data", (text: string) => (log = (log + text).slice(-1_000_000)))
      return spawned
    }),
    (spawned) =>
      Effect.callback<void>((resume) => {
        if (spawned.exitCode !== null) return resume(Effect.void)
        spawned.once("exit", () => resume(Effect.void))
        spawned.kill("SIGKILL")
      })
  )
  yield* eventually(
    "haproxy serves",
    Effect.gen(function* () {
      if (child.exitCode !== null) return yield* Effect.die(new Error(`haproxy ended: ${log}`))
      const { status } = yield* send(port, { path: "/api/v1/health/ready", method: "GET" })
      return status === 200
    }).pipe(Effect.catchTag("NoResponse", () => Effect.succeed(false)))
  )
  /** Waits until haproxy sends requests to a server again. */
  const untilUp = (backend: string, name: string) =>
    eventually(
      `${name} is up`,
      Effect.map(Haproxy.ask(places.socket, `show servers state ${backend}`), (states) =>
        states.split("\n").some((line) => {
          const [, , , of, , state] = line.split(" ")
          return of === name && state === running
        })
      )
    )
  return { ...places, port, log: () => log, untilUp }
})
