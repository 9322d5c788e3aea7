/** All scenarios: each is a row of the table. */
import type { Scenario } from "./Scenario.ts"
import { fairShares } from "./scenarios/fairShare.ts"
import { hangUps } from "./scenarios/hangUps.ts"
import { hostileBodies } from "./scenarios/hostileBodies.ts"
import { kills } from "./scenarios/kills.ts"
import { processorAccount } from "./scenarios/processorAccount.ts"
import { behindBalancer, behindShippedBalancer, keepAlive } from "./scenarios/rollingRestarts.ts"
import { connectionLimit, slowSenders, unread } from "./scenarios/slowSenders.ts"
import { stopping } from "./scenarios/stopping.ts"
import { storeHangs } from "./scenarios/storeHangs.ts"
import { keyStoreDown, storeDown } from "./scenarios/storeDown.ts"
import { takeovers } from "./scenarios/takeover.ts"
import { processKilled } from "./scenarios/processKilled.ts"

/** How much is done. */
export interface Size {
  /** Whether short timeouts are configured, so that less has to be waited for. */
  readonly isQuick: boolean
  readonly deliveries: number
}

export const scenarios = ({ isQuick, deliveries }: Size): ReadonlyArray<Scenario> => [
  hostileBodies,
  storeDown,
  keyStoreDown,
  storeHangs,
  behindBalancer,
  behindShippedBalancer,
  keepAlive(isQuick ? 2 : 10),
  stopping,
  processKilled(isQuick ? 4 : 20),
  ...takeovers,
  ...fairShares,
  hangUps(isQuick ? 6 : 20),
  slowSenders(isQuick),
  connectionLimit,
  unread,
  processorAccount,
  kills(deliveries)
]
