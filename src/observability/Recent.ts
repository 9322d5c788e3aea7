/**
 * The requests of the last hour, by minute, and of the last day, by five minutes: for the operators' page, also where
 * nobody collects metrics. It takes at most 8 MB, whatever is requested.
 */
import { Clock, Context, Effect, Layer, Record } from "effect"
import * as Time from "../process/Time.ts"
import { reasonOf, type RequestFacts } from "./RequestFacts.ts"

/** The upper ends of the buckets of latencies, in milliseconds. The last bucket has no end. */
const bounds = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, Infinity]

const minute = 60_000

/** The two windows: the length of a slot and of all slots, in milliseconds. */
export const lengths = {
  hour: { step: minute, span: 60 * minute },
  day: { step: 5 * minute, span: 1440 * minute }
} as const

/** The most organizations in the slot that counts, and in a slot before. A client may make up any number of unknown ones. */
const most = { organizations: { running: 1000, slot: 40 }, unknown: { running: 100, slot: 10 } }

const zero = () => ({ requests: 0, clientErrors: 0, serverErrors: 0, latency: bounds.map(() => 0) })

type Sum = ReturnType<typeof zero>

/** Requests, with responses 4xx and clients that left, with responses 5xx, and by the buckets of `bounds`. */
export type Counts = Readonly<Omit<Sum, "latency"> & { latency: ReadonlyArray<number> }>

/** Counts by name. Any text may be a name. */
export type Rows = ReadonlyArray<readonly [name: string, counts: Counts]>

/** The most names in a window. */
const groups = { slots: Infinity, endpoints: Infinity, organizations: 200, unknown: 20, refusals: Infinity }

/**
 * The counts of slots, by their start in milliseconds since 1970, of endpoints, of refusals by their reason, of the most
 * active organizations, and of unknown ones that deliveries name, each with `others` for the rest.
 */
export type Window = { readonly [Group in keyof typeof groups]: Rows }

export type Snapshot = { readonly [Name in keyof typeof lengths]: Window }

export type Observed = Pick<RequestFacts, "endpoint" | "organization" | "isKnown" | "status" | "duration" | "refusal">

const add = (to: Sum, from: Counts) => {
  to.requests += from.requests
  to.clientErrors += from.clientErrors
  to.serverErrors += from.serverErrors
  from.latency.forEach((count, bucket) => {
    to.latency[bucket] = (to.latency[bucket] ?? 0) + count
  })
  return to
}

export const total = (rows: Rows): Counts => rows.reduce((sum, [, counts]) => add(sum, counts), zero())

const others = "others"

/** The sum of each name: of the names with the most requests, and of all others together. */
const sumOf = (rows: Iterable<Rows[number]>, limit = Infinity): Array<[string, Sum]> => {
  const sums = new Map<string, Sum>()
  for (const [name, counts] of rows) sums.set(name, add(sums.get(name) ?? zero(), counts))
  const ranked = [...sums]
  if (ranked.length <= limit) return ranked
  ranked.sort(([, one], [, two]) => two.requests - one.requests)
  return sumOf(ranked.map(([name, counts], rank) => [rank < limit ? name : others, counts]))
}

/** The window of parts that may overlap. */
const windowOf = (parts: ReadonlyArray<{ readonly [Group in keyof Window]: Iterable<Rows[number]> }>): Window =>
  Record.map(groups, (limit, group) =>
    sumOf(
      parts.flatMap((part) => [...part[group]]),
      limit
    )
  )

const count = (
  sums: Map<string, Sum>,
  name: string | undefined,
  status: number,
  bucket: number,
  limit = most.organizations.running
) => {
  if (name === undefined) return
  let sum = sums.get(name)
  if (sum === undefined) {
    const counted = sums.size < limit ? name : others
    sum = sums.get(counted) ?? zero()
    sums.set(counted, sum)
  }
  sum.requests += 1
  if (status >= 500) sum.serverErrors += 1
  else if (status >= 400) sum.clientErrors += 1
  sum.latency[bucket] = (sum.latency[bucket] ?? 0) + 1
}

const makeSlots = ({ span, step }: (typeof lengths)[keyof typeof lengths]) => {
  const begin = (start: number) => ({ start, name: String(start), ...Record.map(groups, () => new Map<string, Sum>()) })
  let slot = begin(0)
  let slots = [slot]
  const recent = (now: number) => slots.filter(({ start }) => start > now - (now % step) - span)
  const next = (now: number) => {
    slot.organizations = new Map(sumOf(slot.organizations, most.organizations.slot))
    slot.unknown = new Map(sumOf(slot.unknown, most.unknown.slot))
    slot = begin(now - (now % step))
    slots = [...recent(now), slot]
  }
  return {
    record: (now: number, observed: Observed) => {
      const { duration, endpoint, isKnown, organization, refusal, status } = observed
      if (now >= slot.start + step) next(now)
      const bucket = bounds.findIndex((bound) => duration <= bound)
      count(slot.slots, slot.name, status, bucket)
      count(slot.endpoints, endpoint, status, bucket)
      if (isKnown) count(slot.organizations, organization, status, bucket)
      else count(slot.unknown, organization, status, bucket, most.unknown.running)
      count(slot.refusals, reasonOf({ refusal, status }), status, bucket)
    },
    /** `ahead`: how far the wall clock is ahead of the times that were recorded. */
    window: (now: number, ahead = 0) => {
      const shift = Math.round(ahead / step) * step
      const shown = recent(now).map((each) => ({
        ...each,
        slots: [...each.slots.values()].map((sum) => [String(each.start + shift), sum] as const)
      }))
      return windowOf(shown)
    }
  }
}

/** Counts from now on. Times are in milliseconds since 1970. */
export const make = () => {
  const windows = Record.map(lengths, makeSlots)
  return {
    record: (now: number, observed: Observed) => {
      windows.hour.record(now, observed)
      windows.day.record(now, observed)
    },
    snapshot: (now: number, ahead?: number): Snapshot => Record.map(windows, ({ window }) => window(now, ahead))
  }
}

const counting = Effect.map(Clock.Clock, (clock) => {
  const { record, snapshot } = make()
  const start = Time.wallOf(clock) - Time.monotonicOf(clock)
  const now = () => start + Time.monotonicOf(clock)
  return {
    /** Counts a request: for `RequestObservers`. */
    observe: (facts: Observed) => record(now(), facts),
    snapshot: Effect.sync(() => snapshot(now(), Time.wallOf(clock) - now()))
  }
})

export class Recent extends Context.Service<Recent, Effect.Success<typeof counting>>()(
  "practice-data/observability/Recent"
) {
  static readonly layer = Layer.effect(Recent, counting)
}

/** A quantile in milliseconds, linear within a bucket: infinity in the last one, undefined without any request. */
export const quantile = (counts: ReadonlyArray<number>, share: number): number | undefined => {
  const requests = counts.reduce((sum, each) => sum + each, 0)
  if (requests === 0) return undefined
  let rank = share * requests
  for (const [bucket, inBucket] of counts.entries()) {
    const lower = bounds[bucket - 1] ?? 0
    const upper = bounds[bucket] ?? Infinity
    if (inBucket >= rank) return lower + ((upper - lower) * rank) / inBucket
    rank -= inBucket
  }
  return Infinity
}
