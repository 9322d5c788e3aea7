/** Servers as processes of their own, and the CPU time and memory that Linux counts for them. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readdirSync, readFileSync } from "node:fs"
import { createInterface } from "node:readline"
import { childrenOf, root } from "../../../test/support/Process.ts"

export interface Server {
  readonly url: string
  readonly pid: number
  /** The URL of the metrics of a service. */
  readonly metrics?: string
  /** Ends it, and waits until it has. */
  readonly stop: () => Promise<unknown>
}

/** Starts a command, and waits for the address that it prints. */
export const start = async (
  command: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>>,
  folder = root
): Promise<Server> => {
  const [file = "", ...args] = command
  const child = spawn(file, args, {
    cwd: folder,
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "inherit"]
  })
  const kill = () => child.kill("SIGKILL")
  process.once("exit", kill)
  child.once("exit", () => process.off("exit", kill))
  const lines: Array<string> = []
  for await (const line of createInterface(child.stdout)) {
    lines.push(line)
    const url = /Listening on (http:\/\/[^\s",]+)/.exec(line)?.[1]
    if (url === undefined) continue
    // What it logs from now on is read, and not kept.
    child.stdout.resume()
    const stop = () => {
      child.kill("SIGTERM")
      return once(child, "exit")
    }
    return { url, pid: child.pid ?? 0, stop }
  }
  throw new Error(`${command.join(" ")} ended:\n${lines.join("\n")}`)
}

/** CPU time of the threads of a process, in milliseconds; none if it has ended. */
const ownCpuOf = (pid: number) => {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .map((thread) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ", 1)[0]))
      .reduce((sum, nanoseconds) => sum + nanoseconds / 1e6, 0)
  } catch {
    return 0
  }
}

/** CPU time so far of a process and of those that it started, in milliseconds. */
export const cpuOf = (pid: number): number => {
  // Of those that have ended, in hundredths of a second.
  const [, ...fields] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ").map(Number) ?? []
  const [user = 0, system = 0] = fields.slice(12, 14)
  return [pid, ...childrenOf(pid)].reduce((sum, each) => sum + ownCpuOf(each), (user + system) * 10)
}

/** Resident memory of a process in MiB. */
export const memoryOf = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024
