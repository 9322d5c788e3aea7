/** All faults that are watched. */
import type { Fault } from "./Fault.ts"
import { databases } from "./faults/databases.ts"
import { deletions } from "./faults/deletions.ts"
import { processes } from "./faults/processes.ts"
import { processor } from "./faults/processor.ts"
import { requests } from "./faults/requests.ts"
import { senders } from "./faults/senders.ts"

export const faults: ReadonlyArray<Fault> = [
  ...databases,
  ...processes,
  ...deletions,
  ...processor,
  ...requests,
  ...senders
]
