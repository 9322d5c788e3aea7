/** Words for what the service calls by short names. */

const reasons: Readonly<Record<string, string>> = {
  key: "for the API key",
  signature: "for the signature",
  limit: "over the rate limit",
  load: "under load",
  outage: "in an outage",
  processor: "by the processor",
  too_large: "too large",
  protocol: "not HTTP",
  timeout: "too slow to arrive"
}

/** Why a request was refused. */
export const reasonText = (reason: string): string => reasons[reason] ?? reason

const names: Readonly<Record<string, string>> = {
  records: "Record store",
  credentials: "Credential store",
  tasks: "Task store",
  changes: "Changes",
  processor: "Payment processor",
  worker: "Deletion worker",
  telemetry: "Telemetry export"
}

/** What a process depends on. */
export const nameOf = (dependency: string): string => names[dependency] ?? dependency
