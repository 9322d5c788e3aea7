/**
 * Time limits of tests. What the service promises holds on a machine that is not overloaded; here the part that is work,
 * not waiting, may take longer the more processes share a core. `npm run faults` measures the promises themselves.
 */
import { availableParallelism, loadavg } from "node:os"

/** How many seconds something may take now that is promised to take a number of seconds. */
export const inTime = (seconds: number) => {
  const [lastMinute = 0] = loadavg()
  return seconds + 1.5 * Math.max(1, (2 * lastMinute) / availableParallelism())
}
