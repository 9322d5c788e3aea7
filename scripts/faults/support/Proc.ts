/** What Linux says of a process: the processor time and the memory that it took, and its children. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { Effect } from "effect"

// A clock tick of Linux, as every process sees it.
const tick = 10

const read = (pid: number, file: string) => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8")
  } catch {
    return ""
  }
}

/** The fields of `stat` after the name, which may hold anything. */
const statOf = (pid: number) => {
  const text = read(pid, "stat")
  return text.slice(text.lastIndexOf(")") + 2).split(" ")
}

/** The processor time of all threads, in milliseconds. */
export const cpuMillis = (pid: number) =>
  Effect.sync(() => {
    const [user = 0, system = 0] = statOf(pid).slice(11, 13).map(Number)
    return (user + system) * tick
  })

const mebibytes = (pid: number, name: string) => {
  const kibibytes = new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(read(pid, "status"))?.[1]
  return Number(kibibytes ?? 0) / 1024
}

/** The resident memory, in MiB. */
export const memory = (pid: number) => Effect.sync(() => mebibytes(pid, "VmRSS"))

/** The most resident memory since the last {@link forgetPeak}, in MiB. */
export const peakMemory = (pid: number) => Effect.sync(() => mebibytes(pid, "VmHWM"))

/** Begins to watch the peak anew. */
export const forgetPeak = (pid: number) =>
  Effect.sync(() => {
    try {
      writeFileSync(`/proc/${pid}/clear_refs`, "5")
    } catch {
      // The process is gone, or not ours.
    }
  })

/** Whether the process runs. */
export const isRunning = (pid: number) => Effect.sync(() => !["", "Z", "X"].includes(statOf(pid)[0] ?? ""))

const pids = () =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

/** The processes that this one started and that still run. */
export const children = (pid: number) => Effect.sync(() => pids().filter((other) => Number(statOf(other)[1]) === pid))

/** The processes of a group that still run. */
export const groupOf = (group: number) =>
  Effect.sync(() => pids().filter((pid) => Number(statOf(pid)[2]) === group && statOf(pid)[0] !== "Z"))

/** Sends a signal, to the group where the id is negative. Whoever is gone gets none. */
export const signal = (pid: number, name: NodeJS.Signals) =>
  Effect.sync(() => {
    try {
      process.kill(pid, name)
    } catch {
      // It is gone.
    }
  })
