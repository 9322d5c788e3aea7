/**
 * Ends a run that hangs. A test that loops without a pause cannot be interrupted by its timeout: when no test has ended
 * for five minutes, the workers are killed, which fails the run.
 */
import { readFileSync } from "node:fs"
import type { TestProject } from "vitest/node"
import { childrenOf } from "./Process.ts"

const limit = 300_000

/** The workers below a process, and the programs that they have started. Others than Node end by themselves. */
const nodesBelow = (pid: number): ReadonlyArray<number> =>
  childrenOf(pid)
    .filter((child) => /node/.test(readFileSync(`/proc/${child}/cmdline`, "utf8")))
    .flatMap((child) => [...nodesBelow(child), child])

export default ({ vitest: { state } }: TestProject) => {
  let ended = -1
  let since = performance.now()
  // oxlint-disable-next-line effecttsgo/global-timers -- vitest calls it outside of any effect
  const watch = setInterval(() => {
    const now = [...state.idMap.values()].filter(({ result }) => /pass|fail/.test(result?.state ?? "")).length
    if (now !== ended) since = performance.now()
    ended = now
    if (performance.now() - since < limit) return
    process.stderr.write("No test has ended for five minutes: the workers are killed\n")
    for (const pid of nodesBelow(process.pid)) process.kill(pid, "SIGKILL")
  }, 5000).unref()
  return () => clearInterval(watch)
}
