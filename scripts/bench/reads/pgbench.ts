/** pgbench, which runs a query and does nothing with its rows: the least that a client of the database can do. */
import { execFile } from "node:child_process"
import { existsSync, globSync, mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { promisify } from "node:util"
import type { Round } from "./load.ts"
import { cpuOf } from "./processes.ts"

const run = promisify(execFile)

/** Where pgbench is; undefined where it is not installed (Debian has it in the package `postgresql`). */
export const pgbench = [
  ...(process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, "pgbench")),
  ...globSync("/usr/lib/postgresql/*/bin/pgbench")
].find((file) => existsSync(file))

/** Runs a query without parameters, prepared once a connection. */
export const loadQuery = async (
  file: string,
  database: string,
  postmaster: number,
  query: string,
  { connections, seconds }: { readonly connections: number; readonly seconds: number }
): Promise<Round> => {
  const script = join(mkdtempSync(join(tmpdir(), "practice-data-bench-")), "query.sql")
  writeFileSync(script, `${query.replaceAll("\n", " ")};\n`)
  const before = cpuOf(postmaster)
  const { stdout } = await run(file, [
    ...["-n", "-M", "prepared", "-f", script, "-T", String(seconds), "-c", String(connections), "-j", "1", database]
  ])
  const count = Number(/actually processed: (\d+)/.exec(stdout)?.[1])
  const perSecond = Number(/tps = ([\d.]+)/.exec(stdout)?.[1])
  // The CPU time of its sessions is among the postmaster's once they have ended, a while after pgbench.
  await setTimeout(500)
  return { perSecond, server: 0, database: (cpuOf(postmaster) - before) / count }
}
