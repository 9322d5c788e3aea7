/** The servers that are measured, and how they are asked. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import * as Listening from "../../../test/support/Listening.ts"
import { freePort } from "../../../test/support/LocalPostgres.ts"
import { root } from "../../../test/support/Process.ts"
import { key } from "./data.ts"
import { type Server, start } from "./processes.ts"
import type { Work } from "./work.ts"

export interface Contender {
  readonly name: string
  readonly start: (database: string) => Promise<Server>
}

/** The request for some work, the same for every contender. */
export const requestOf = (work: Work) => ({
  method: "POST" as const,
  path: work.endpoint === "changes" ? "/api/v3/changes" : `/api/v3/consumption-logs/${work.endpoint}`,
  headers: {
    authorization: `Bearer ${work.hasKey === false ? "unknown" : key}`,
    "content-type": "application/json"
  },
  body: JSON.stringify(work.body)
})

const node = process.execPath

/** A collector of OpenTelemetry, which takes everything. */
const collector = createServer((request, response) => void request.resume().once("end", () => response.end())).unref()

/** As in production: a hundredth of the requests is traced, and none is refused. */
const production = {
  OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await Effect.runPromise(Listening.listen(collector))}`,
  // Of a commit that traces each request of a caller otherwise.
  OTEL_TRACES_SAMPLER: "traceidratio",
  OTEL_TRACES_SAMPLER_ARG: "0.01",
  RATE_LIMIT: "1000000"
}

/** The service of a checkout, as its `npm start` starts it. */
const serviceOf = (folder: string, name: string): Contender => ({
  name,
  start: async (database) => {
    const port = await Effect.runPromise(freePort)
    const server = await start(
      ["sh", "-c", `eval "$(node -p 'require("./package.json").scripts.start')"`],
      {
        PATH: `${dirname(node)}:${process.env["PATH"]}`,
        DATABASE_URL: database,
        ROLES: "data-api",
        HOST: "127.0.0.1",
        PORT: "0",
        OPERATIONS_PORT: String(port),
        ...production
      },
      folder
    )
    return { ...server, metrics: `http://127.0.0.1:${port}/metrics` }
  }
})

export const service = serviceOf(root, "this service")

/** The service of an earlier commit, in a worktree that goes away with this process; none outside of a repository. */
const earlier = (folder: string): ReadonlyArray<Contender> => {
  const { BENCH_BEFORE: commit = "HEAD~1" } = process.env
  const worktree = join(folder, "before")
  const git = (...args: ReadonlyArray<string>) =>
    spawnSync("git", ["-C", root, "worktree", ...args], { encoding: "utf8" })
  process.once("exit", () => git("remove", "--force", worktree))
  const { status, stderr } = git("add", "--detach", worktree, commit)
  if (status !== 0) {
    console.log(`Without ${commit}: ${stderr}`)
    return []
  }
  symlinkSync(join(root, "node_modules"), join(worktree, "node_modules"))
  return [serviceOf(worktree, `before (${commit})`)]
}

const tuned: Contender = {
  name: "Fastify, tuned",
  start: (database) => start([node, "scripts/bench/reads/contenders/fastify.ts"], { DATABASE_URL: database })
}

/** Go's net/http and pgx 4 of Debian's packages; none where they are not installed. */
const anchors = (folder: string): ReadonlyArray<Contender> => {
  const program = join(folder, "anchor")
  const { status } = spawnSync("go", ["build", "-o", program, "scripts/bench/reads/contenders/anchor.go"], {
    env: { ...process.env, GO111MODULE: "off", GOPATH: "/usr/share/gocode" }
  })
  if (status === 0) return [{ name: "Go, pgx", start: (database) => start([program], { DATABASE_URL: database }) }]
  console.log("Without Go: `apt-get install golang-go golang-github-jackc-pgx-v4-dev` adds it to the contenders.")
  return []
}

/** All of them, this service first. What they need is removed when this process ends, also by Ctrl-C. */
export const allContenders = (): ReadonlyArray<Contender> => {
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1))
  const folder = mkdtempSync(join(tmpdir(), "practice-data-bench-"))
  const all = [service, ...earlier(folder), tuned, ...anchors(folder)]
  process.once("exit", () => rmSync(folder, { recursive: true }))
  return all
}

/** Asks once. Any other status than the expected one is an error. */
export const ask = async (server: Server, work: Work) => {
  const { path, ...request } = requestOf(work)
  const response = await fetch(server.url + path, request)
  const text = await response.text()
  if (response.status !== statusOf(work)) throw new Error(`${server.url}: ${response.status} ${text}`)
  return text
}

/** The status of the answers to some work. */
export const statusOf = ({ hasKey }: Work) => (hasKey === false ? 401 : 200)
