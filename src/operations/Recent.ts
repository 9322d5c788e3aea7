/** The requests of the last hour, by minute: for the operators' page, also where nobody collects metrics. */
import { Clock, Context, Effect, Layer, Number } from "effect"
import * as Time from "../observability/Time.ts"
import type { RequestFacts } from "../observability/RequestFacts.ts"

/** The upper ends of the buckets of latencies, in milliseconds. The last bucket has no end. */
const bounds = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, Infinity]

/** The length of a slot, in milliseconds. */
export const step = 60_000

/** The number of slots. */
export const slots = 60

export type Observed = Pick<RequestFacts, "endpoint" | "status" | "duration">

const emptySlot = (start: number) => ({
  /** Milliseconds since 1970. */
  start,
  requests: 0,
  /** Responses 4xx, and clients that left. */
  clientErrors: 0,
  serverErrors: 0,
  /** By the buckets of `bounds`. Without reads of changes, whose clients may ask to wait. */
  latency: bounds.map(() => 0)
})

/** The requests of a minute. */
export interface Slot extends Readonly<ReturnType<typeof emptySlot>> {}

/** The sum of slots. */
export const total = (all: ReadonlyArray<Slot>): Slot => {
  const sum = (each: (slot: Slot) => number) => Number.sumAll(all.map(each))
  return {
    start: 0,
    requests: sum(({ requests }) => requests),
    clientErrors: sum(({ clientErrors }) => clientErrors),
    serverErrors: sum(({ serverErrors }) => serverErrors),
    latency: bounds.map((_, bucket) => sum(({ latency }) => latency[bucket] ?? 0))
  }
}

/** A quantile in milliseconds, linear within a bucket: infinity in the last one, undefined without any request. */
export const quantile = ({ latency }: Slot, share: number): number | undefined => {
  const requests = Number.sumAll(latency)
  if (requests === 0) return undefined
  let rank = share * requests
  for (const [bucket, inBucket] of latency.entries()) {
    const lower = bounds[bucket - 1] ?? 0
    const upper = bounds[bucket] ?? Infinity
    if (inBucket >= rank) return lower + ((upper - lower) * rank) / inBucket
    rank -= inBucket
  }
  return Infinity
}

export class Recent extends Context.Service<Recent>()("practice-data/operations/Recent", {
  make: Effect.map(Clock.Clock, (clock) => {
    const recent: Array<ReturnType<typeof emptySlot>> = []
    return {
      /** Counts a request: for `RequestObservers`. */
      observe: ({ duration, endpoint, status }: Observed) => {
        // Probes do not count: they are 503 while the service starts.
        if (endpoint.startsWith("/api/v1/health")) return
        const now = Time.wallMillis(clock)
        const start = now - (now % step)
        let slot = recent.at(-1)
        if (slot?.start !== start) {
          slot = emptySlot(start)
          recent.push(slot)
          if (recent.length > slots) recent.shift()
        }
        slot.requests += 1
        if (status >= 500) slot.serverErrors += 1
        else if (status >= 400) slot.clientErrors += 1
        if (endpoint === "/api/v3/changes") return
        const bucket = bounds.findIndex((bound) => duration <= bound)
        slot.latency[bucket] = (slot.latency[bucket] ?? 0) + 1
      },
      /** The slots with requests, in their order. */
      lastHour: Effect.sync((): ReadonlyArray<Slot> => {
        const now = Time.wallMillis(clock)
        return recent.filter(({ start }) => start > now - slots * step)
      })
    }
  })
}) {
  static readonly layer = Layer.effect(Recent, Recent.make)
}
