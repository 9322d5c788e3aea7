/** Counts requests by their facts. */
import { deliveries, maximumOrganizations, refusals, statuses } from "./Metrics.ts"
import type { RequestFacts } from "./RequestFacts.ts"
import type { Series } from "./Series.ts"

type Status = (typeof statuses)[number]
type Refused = (typeof refusals)[number]
type Delivery = (typeof deliveries)[number]

export interface Options {
  /** The paths that are served here. Their counters are there, at 0, from the start. */
  readonly endpoints: Iterable<string>
  /** The path of the intake, where that is served. */
  readonly intake?: string | undefined
  readonly byOrganization: boolean
}

const statusOf = (status: number): Status => {
  if (status === 499) return "499"
  if (status < 300) return "2xx"
  if (status < 400) return "3xx"
  return status < 500 ? "4xx" : "5xx"
}

/** The reason of a refusal that nothing noted. 404 and 410 are answers; who refuses with another status notes why. */
const reasons: Readonly<Record<number, Refused>> = {
  400: "invalid",
  401: "key",
  405: "invalid",
  415: "invalid",
  422: "invalid",
  500: "bug",
  503: "outage"
}

/** The reason of a refusal; undefined for an answer. */
export const reasonOf = ({ refusal, status }: Pick<RequestFacts, "refusal" | "status">): Refused | undefined =>
  status < 400 ? undefined : (refusal ?? reasons[status])

const deliveryOf = ({ outcome, status }: RequestFacts): Delivery | undefined => {
  if (outcome !== undefined) return outcome
  if (status === 503) return "unavailable"
  if (status === 401) return "unsigned"
  return status >= 400 && status < 499 ? "invalid" : undefined
}

/** Makes a value once for a key. */
const once = <Key, A>(make: (key: Key) => A) => {
  const made = new Map<Key, A>()
  return (key: Key): A => {
    const value = made.get(key) ?? make(key)
    made.set(key, value)
    return value
  }
}

export const make = ({ counter, histogram }: Series, { byOrganization, endpoints, intake }: Options) => {
  const requestsOf = once((endpoint: string) =>
    once((status: Status) => counter("practice_data_http_requests_total", { endpoint, status }))
  )
  const of = once((endpoint: string) => ({
    requests: requestsOf(endpoint),
    bytes: counter("practice_data_http_response_bytes_total", { endpoint }),
    duration: histogram("practice_data_http_request_duration_seconds", { endpoint })
  }))
  const refused = once((reason: Refused) => counter("practice_data_http_requests_refused_total", { reason }))
  const delivered = once((outcome: Delivery) => counter("practice_data_deliveries_total", { outcome }))
  const ofOrganization = once((organization: string) =>
    once((status: Status) => counter("practice_data_organization_requests_total", { organization, status }))
  )

  // At 0 from the start: of a counter that begins with its first 1, an alert sees no increase.
  for (const endpoint of [...endpoints, "other"]) statuses.forEach(requestsOf(endpoint))
  refusals.forEach(refused)
  if (intake !== undefined) deliveries.forEach(delivered)

  const organizations = new Set<string>()
  const nameOf = (organization: string) => {
    if (!organizations.has(organization) && organizations.size === maximumOrganizations) return "other"
    organizations.add(organization)
    return organization
  }

  return (facts: RequestFacts) => {
    const { endpoint, organization } = facts
    const status = statusOf(facts.status)
    const { bytes, duration, requests } = of(endpoint)
    requests(status).add()
    bytes.add(facts.bytes)
    duration.observe((facts.duration - facts.polled) / 1000)
    const reason = reasonOf(facts)
    if (reason !== undefined) refused(reason).add()
    if (endpoint === intake) {
      const delivery = facts.method === "POST" ? deliveryOf(facts) : undefined
      if (delivery !== undefined) delivered(delivery).add()
      // The organization of a delivery is what its sender says.
    } else if (byOrganization && organization !== undefined) {
      ofOrganization(nameOf(organization))(status).add()
    }
  }
}
