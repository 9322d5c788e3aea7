/** Servers as processes of their own, and the CPU time and memory that Linux counts for them. */
import { type ChildProcess, spawn } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

/** The folder of this checkout. */
export const root = fileURLToPath(new URL("../../..", import.meta.url))

export interface Server {
  readonly url: string
  readonly pid: number
  /** The URL of the metrics of a service. */
  readonly metrics?: string
  /** Ends it, and waits until it has. */
  readonly stop: () => Promise<void>
}

const ended = (child: ChildProcess) => new Promise<void>((resolve) => child.once("exit", () => resolve()))

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
    stdio: ["ignore", "pipe", "pipe"]
  })
  const kill = () => child.kill("SIGKILL")
  process.once("exit", kill)
  child.once("exit", () => process.off("exit", kill))
  const url = await new Promise<string>((resolve, reject) => {
    let output = ""
    const read = (chunk: Buffer) => {
      output += chunk.toString()
      const found = /Listening on (http:\/\/[^\s"]+)/.exec(output)?.[1]
      if (found === undefined) return
      // What it logs from now on is read, and not kept.
      for (const stream of [child.stdout, child.stderr]) stream.off("data", read).resume()
      resolve(found)
    }
    child.stdout.on("data", read)
    child.stderr.on("data", read)
    child.once("exit", () => reject(new Error(`${command.join(" ")} ended:\n${output}`)))
  })
  return {
    url: url.replace("//0.0.0.0:", "//127.0.0.1:"),
    pid: child.pid ?? 0,
    stop: () => {
      const gone = ended(child)
      child.kill("SIGTERM")
      return gone
    }
  }
}

/** CPU time of the threads of a process, in milliseconds. */
const threadsOf = (pid: number) =>
  readdirSync(`/proc/${pid}/task`)
    .map((thread) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ", 1)[0]))
    .reduce((sum, nanoseconds) => sum + nanoseconds / 1e6, 0)

const statOf = (pid: number) => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8")
    const fields = text
      .slice(text.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number)
    const [, parent = 0] = fields
    // In hundredths of a second.
    const [childrenUser = 0, childrenSystem = 0] = fields.slice(13, 15)
    return { parent, own: threadsOf(pid), children: (childrenUser + childrenSystem) * 10 }
  } catch {
    return undefined
  }
}

/** CPU time so far of a process and of those that it started, in milliseconds. */
export const cpuOf = (pid: number): number => {
  const main = statOf(pid)
  const running = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => statOf(Number(name)))
  return (
    (main?.own ?? 0) +
    (main?.children ?? 0) +
    running.reduce((sum, stat) => sum + (stat?.parent === pid ? stat.own : 0), 0)
  )
}

/** Resident memory of a process in MiB. */
export const memoryOf = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024
