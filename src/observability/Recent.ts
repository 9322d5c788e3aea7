/**
 * The requests of the last hour, by minute, and of the last day, by five minutes: for the operators' page, also where
 * nobody collects metrics. It takes at most 8 MB, whatever is requested.
 */
import { Clock, Context, Effect, Layer, Record, type Types } from "effect"
import type { RequestFacts } from "./RequestFacts.ts"

/** The upper ends of the buckets of latencies, in milliseconds. The last bucket has no end. */
export const bounds = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] as const

const all = bounds.length + 1

const minute = 60_000

/** The two windows: the length of a slot and of all slots, in milliseconds. */
export const lengths = {
  hour: { step: minute, span: 60 * minute },
  day: { step: 5 * minute, span: 1440 * minute }
} as const

export interface Counts {
  readonly requests: number
  /** Responses 4xx, and clients that left. */
  readonly clientErrors: number
  readonly serverErrors: number
  /** Requests by the buckets of `bounds`. */
  readonly latency: ReadonlyArray<number>
}

/** The counts of a slot of time. `start`: milliseconds since 1970. */
export interface Point extends Counts {
  readonly start: number
}

export interface Window {
  /** The slots that had requests, the oldest first. */
  readonly points: ReadonlyArray<Point>
  readonly endpoints: { readonly [name: string]: Counts }
  /** The most active ones, and `others` for the rest. */
  readonly organizations: { readonly [name: string]: Counts }
  readonly refused: { readonly [reason: string]: number }
}

/** Plain JSON. */
export type Snapshot = { readonly [Name in keyof typeof lengths]: Window }

export type Observed = Pick<RequestFacts, "endpoint" | "organization" | "status" | "duration" | "polled" | "refusal">

export class Recent extends Context.Service<
  Recent,
  {
    /** Counts a request: for `RequestObservers`. */
    readonly observe: (facts: Observed) => void
    readonly snapshot: Effect.Effect<Snapshot>
  }
>()("practice-data/observability/Recent") {
  static readonly layer = Layer.effect(
    Recent,
    Effect.map(Clock.Clock, (clock) => {
      const counter = make()
      return Recent.of({
        observe: (facts) => counter.record(clock.currentTimeMillisUnsafe(), facts),
        snapshot: Effect.sync(() => counter.snapshot(clock.currentTimeMillisUnsafe()))
      })
    })
  )
}

export const others = "others"

/** The most organizations in the slot that counts, since a client may make up any number; in a slot before; in a window. */
const mostOrganizations = { running: 1000, slot: 50, window: 200 } as const

const longestName = 64

type Summed = Types.DeepMutable<Counts>
type Rows = Map<string, Summed>

const zero = (): Summed => ({
  requests: 0,
  clientErrors: 0,
  serverErrors: 0,
  latency: Array.from({ length: all }, () => 0)
})

const add = (to: Summed, from: Counts) => {
  to.requests += from.requests
  to.clientErrors += from.clientErrors
  to.serverErrors += from.serverErrors
  from.latency.forEach((count, bucket) => {
    to.latency[bucket] = (to.latency[bucket] ?? 0) + count
  })
  return to
}

export const none: Counts = zero()

export const plus = (one: Counts, two: Counts): Counts => add(add(zero(), one), two)

const getOrMake = <Key, A>(map: Map<Key, A>, key: Key, make: () => A): A => {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = make()
  map.set(key, made)
  return made
}

const increase = (counts: Map<string, number>, name: string, by: number) =>
  counts.set(name, (counts.get(name) ?? 0) + by)

/** The rows with the most requests, and one of all others. */
const mostActive = (rows: Rows, most: number): Rows => {
  if (rows.size <= most) return rows
  const names = Array.from(rows.keys()).filter((name) => name !== others)
  const requestsOf = (name: string) => rows.get(name)?.requests ?? 0
  const kept = new Set(names.toSorted((one, two) => requestsOf(two) - requestsOf(one)).slice(0, most))
  const active: Rows = new Map()
  for (const [name, counts] of rows) add(getOrMake(active, kept.has(name) ? name : others, zero), counts)
  return active
}

/** A slot, or a window of another process: a part of a window. */
interface Part {
  readonly points: Iterable<Point>
  readonly endpoints: Iterable<readonly [string, Counts]>
  readonly organizations: Iterable<readonly [string, Counts]>
  readonly refused: Iterable<readonly [string, number]>
}

/** The window of parts that may overlap. */
const windowOf = (parts: ReadonlyArray<Part>): Window => {
  const points = new Map<number, Summed>()
  const [endpoints, organizations]: [Rows, Rows] = [new Map(), new Map()]
  const refused = new Map<string, number>()
  for (const part of parts) {
    for (const point of part.points) add(getOrMake(points, point.start, zero), point)
    for (const [name, counts] of part.endpoints) add(getOrMake(endpoints, name, zero), counts)
    for (const [name, counts] of part.organizations) add(getOrMake(organizations, name, zero), counts)
    for (const [reason, count] of part.refused) increase(refused, reason, count)
  }
  return {
    points: Array.from(points, ([start, counts]) => ({ start, ...counts })).toSorted((a, b) => a.start - b.start),
    endpoints: Object.fromEntries(endpoints),
    organizations: Object.fromEntries(mostActive(organizations, mostOrganizations.window)),
    refused: Object.fromEntries(refused)
  }
}

/** A copy: a part of a longer text would keep all of it in memory. */
const shortened = (name: string) =>
  name.length <= longestName ? name : Buffer.from(name.slice(0, longestName)).toString()

const bucketOf = (duration: number) => (bounds.findIndex((bound) => duration <= bound) + all) % all

const count = (counts: Summed, status: number, bucket: number) => {
  counts.requests += 1
  if (status >= 500) counts.serverErrors += 1
  else if (status >= 400) counts.clientErrors += 1
  counts.latency[bucket] = (counts.latency[bucket] ?? 0) + 1
}

const makeSlots = ({ span, step }: (typeof lengths)[keyof typeof lengths]) => {
  const begin = (start: number) => ({
    start,
    total: zero(),
    endpoints: new Map<string, Summed>(),
    organizations: new Map<string, Summed>(),
    refused: new Map<string, number>()
  })
  let slots: Array<ReturnType<typeof begin>> = []
  const slotOf = (now: number) => {
    const last = slots.at(-1)
    if (last !== undefined && now < last.start + step) return last
    if (last !== undefined) last.organizations = mostActive(last.organizations, mostOrganizations.slot)
    const slot = begin(now - (now % step))
    slots = [...slots.filter(({ start }) => start > now - span), slot]
    return slot
  }
  return {
    record: (now: number, { duration, endpoint, organization, polled, refusal, status }: Observed) => {
      const { endpoints, organizations, refused, total } = slotOf(now)
      const bucket = bucketOf(duration - polled)
      count(total, status, bucket)
      count(getOrMake(endpoints, endpoint, zero), status, bucket)
      if (organization !== undefined) {
        const name = shortened(organization)
        const isCounted = organizations.has(name) || organizations.size < mostOrganizations.running
        count(getOrMake(organizations, isCounted ? name : others, zero), status, bucket)
      }
      if (refusal !== undefined) increase(refused, refusal, 1)
    },
    window: (now: number) =>
      windowOf(
        slots
          .filter(({ start }) => start > now - (now % step) - span)
          .map(({ start, total, ...slot }) => ({ ...slot, points: [{ start, ...total }] }))
      )
  }
}

/** Counts from now on. Times are in milliseconds since 1970. */
export const make = () => {
  const windows = Record.map(lengths, makeSlots)
  return {
    record: (now: number, observed: Observed): void => {
      for (const { record } of Object.values(windows)) record(now, observed)
    },
    snapshot: (now: number): Snapshot => Record.map(windows, ({ window }) => window(now))
  }
}

const partOf = ({ endpoints, organizations, points, refused }: Window): Part => ({
  points,
  endpoints: Object.entries(endpoints),
  organizations: Object.entries(organizations),
  refused: Object.entries(refused)
})

/** The snapshot of several processes together. */
export const merge = (snapshots: ReadonlyArray<Snapshot>): Snapshot =>
  Record.map(lengths, (_, name) => windowOf(snapshots.map((each) => partOf(each[name]))))

/**
 * A quantile of latencies, in milliseconds: linear within a bucket. Infinity in the last bucket, undefined without any
 * request.
 */
export const quantile = (counts: ReadonlyArray<number>, share: number): number | undefined => {
  const requests = counts.reduce((sum, each) => sum + each, 0)
  if (requests === 0) return undefined
  const rank = share * requests
  let before = 0
  for (const [bucket, inBucket] of counts.entries()) {
    if (inBucket > 0 && before + inBucket >= rank) {
      const upper = bounds[bucket]
      if (upper === undefined) return Infinity
      const lower = bounds[bucket - 1] ?? 0
      return lower + ((upper - lower) * (rank - before)) / inBucket
    }
    before += inBucket
  }
  return Infinity
}
