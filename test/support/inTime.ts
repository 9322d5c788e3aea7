/**
 * Bounds of what is promised to happen in time. A promise is made for a machine that has the time: where more wants to
 * run than there are cores, everything takes as much longer. `npm run faults` measures the promises themselves.
 */
import { availableParallelism, loadavg } from "node:os"

/** The most seconds that may pass, on the machine as busy as it is now, for what is promised in some. */
export const inTime = (seconds: number) => {
  const [lastMinute = 0] = loadavg()
  return seconds + 1.5 * Math.max(1, (2 * lastMinute) / availableParallelism())
}
