/** All alerts, by what they are about. The rules for Prometheus and the runbook in the README are made from this list. */
import type { Alert } from "./Alert.ts"
import { changes } from "./alerts/changes.ts"
import { databases } from "./alerts/databases.ts"
import { deletions } from "./alerts/deletions.ts"
import { process } from "./alerts/process.ts"
import { processor } from "./alerts/processor.ts"
import { requests } from "./alerts/requests.ts"
import { service } from "./alerts/service.ts"

export const alerts: ReadonlyArray<Alert> = [
  ...service,
  ...databases,
  ...requests,
  ...deletions,
  ...changes,
  ...processor,
  ...process
]
