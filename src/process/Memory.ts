/** The memory that several processes of a service share. */
import { totalmem } from "node:os"
import { getHeapStatistics } from "node:v8"
import { Effect } from "effect"
import { wrong } from "./Variable.ts"

const mebibyte = 1024 ** 2

/** Bytes that a process needs under load, with its share of the parent. */
const needed = 256 * mebibyte

/** The part of the memory that `npm start` gives to the heap. */
const heap = 0.4

/** The bytes of the machine, or of the container (cgroup 1 or 2) where it has fewer. */
const available = () => Math.min(process.constrainedMemory() || Infinity, totalmem())

/** The reason why the processes do not fit into so many bytes; undefined if they do. */
export const shortage = (processes: number, memory: number): string | undefined => {
  if (processes * needed <= memory) return undefined
  const [need, each, found] = [processes * needed, needed, memory].map((bytes) => Math.floor(bytes / mebibyte))
  return `${processes} processes need ${need} MiB, ${each} MiB each, and this machine or container has ${found} MiB. Set PROCESSES=${Math.max(1, Math.floor(memory / needed))}, or give it more memory`
}

export const assertFits = Effect.fnUntraced(function* (processes: number) {
  const reason = shortage(processes, available())
  if (reason !== undefined) return yield* Effect.fail(wrong("PROCESSES", reason))
})

/** The bytes of heap of each process: together they have the limit of one, or the usual part of the memory if larger. */
export const heapOfEach = (processes: number, one: number, memory: number): number =>
  Math.min(one, Math.max(one, heap * memory) / processes)

const percentage = "--max-old-space-size-percentage"

/** The arguments of Node for each process. The last one of a name counts. */
export const argumentsOfEach = (processes: number): Array<string> => {
  const memory = available()
  const bytes = heapOfEach(processes, getHeapStatistics().heap_size_limit, memory)
  // It wins over a limit in MiB. Node 22 lacks it.
  const limit = process.allowedNodeEnvironmentFlags.has(percentage)
    ? `${percentage}=${((100 * bytes) / memory).toFixed(3)}`
    : `--max-old-space-size=${Math.floor(bytes / mebibyte)}`
  return [...process.execArgv, limit]
}
