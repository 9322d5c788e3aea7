/** The memory of this process. */
import { totalmem } from "node:os"
import { getHeapStatistics } from "node:v8"

/** The part of the memory that `npm start` gives to the heap. */
const heap = 0.4

/** The bytes of the machine, or of the container (cgroup 1 or 2), or what the limit of the heap is meant for, if less. */
export const ownMemory = () =>
  Math.min(process.constrainedMemory() || Infinity, totalmem(), getHeapStatistics().heap_size_limit / heap)
