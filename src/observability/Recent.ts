/**
 * The requests of the last hour, by minute, and of the last day, by five minutes: for the operators' page, also where
 * nobody collects metrics. It takes at most 8 MB, whatever is requested.
 */
import { Clock, Context, Effect, Layer, Record } from "effect"
import type { RequestFacts } from "./RequestFacts.ts"
import { reasonOf } from "./RequestMetrics.ts"

/** The upper ends of the buckets of latencies, in milliseconds. The last bucket has no end. */
const bounds = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]

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

const others = "others"

/** The most organizations in the slot that counts, since a client may make up any number; in a slot before; in a window. */
const mostOrganizations = { running: 1000, slot: 40, window: 200 } as const

/** Without a prototype: a name may be `__proto__`. */
const noRows = <Row>(): Record<string, Row> => Object.create(null)

const zero = () => ({ requests: 0, clientErrors: 0, serverErrors: 0, latency: [...bounds, Infinity].map(() => 0) })

type Sum = ReturnType<typeof zero>

const add = (to: Sum, from: Counts) => {
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

const sumOf = (entries: ReadonlyArray<readonly [name: string, counts: Counts]>) => {
  const rows = noRows<Sum>()
  for (const [name, counts] of entries) add((rows[name] ??= zero()), counts)
  return rows
}

/** The rows with the most requests, and one of all others. */
const mostActive = (rows: Record<string, Sum>, most: number) => {
  const names = Object.entries(rows).filter(([name]) => name !== others)
  if (names.length <= most) return rows
  const kept = Object.fromEntries(names.toSorted(([, one], [, two]) => two.requests - one.requests).slice(0, most))
  return sumOf(Object.entries(rows).map(([name, counts]) => [Object.hasOwn(kept, name) ? name : others, counts]))
}

/** The window of parts that may overlap. */
const windowOf = (parts: ReadonlyArray<Window>): Window => {
  const points = sumOf(parts.flatMap((part) => part.points.map((point) => [String(point.start), point] as const)))
  const organizations = sumOf(parts.flatMap((part) => Object.entries(part.organizations)))
  const refused = noRows<number>()
  for (const [reason, requests] of parts.flatMap((part) => Object.entries(part.refused))) {
    refused[reason] = (refused[reason] ?? 0) + requests
  }
  return {
    points: Object.entries(points)
      .map(([start, counts]) => ({ start: Number(start), ...counts }))
      .toSorted((one, two) => one.start - two.start),
    endpoints: sumOf(parts.flatMap((part) => Object.entries(part.endpoints))),
    organizations: mostActive(organizations, mostOrganizations.window),
    refused
  }
}

const count = (counts: Sum, status: number, bucket: number) => {
  counts.requests += 1
  if (status >= 500) counts.serverErrors += 1
  else if (status >= 400) counts.clientErrors += 1
  counts.latency[bucket] = (counts.latency[bucket] ?? 0) + 1
}

const makeSlots = ({ span, step }: (typeof lengths)[keyof typeof lengths]) => {
  const begin = (start: number) => {
    const total = { start, ...zero() }
    return {
      start,
      total,
      points: [total],
      endpoints: noRows<Sum>(),
      organizations: noRows<Sum>(),
      organizationsCounted: 0,
      refused: noRows<number>()
    }
  }
  let slots: ReadonlyArray<ReturnType<typeof begin>> = []
  const recent = (now: number) => slots.filter(({ start }) => start > now - (now % step) - span)
  const slotOf = (now: number) => {
    const last = slots.at(-1)
    if (last !== undefined && now < last.start + step) return last
    if (last !== undefined) last.organizations = mostActive(last.organizations, mostOrganizations.slot)
    const slot = begin(now - (now % step))
    slots = [...recent(now), slot]
    return slot
  }
  return {
    record: (now: number, { duration, endpoint, organization, polled, refusal, status }: Observed) => {
      const slot = slotOf(now)
      const { endpoints, organizations, refused, total } = slot
      const found = bounds.findIndex((bound) => duration - polled <= bound)
      const bucket = found === -1 ? bounds.length : found
      count(total, status, bucket)
      count((endpoints[endpoint] ??= zero()), status, bucket)
      if (organization !== undefined) {
        const isKnown = organizations[organization] !== undefined
        if (!isKnown) slot.organizationsCounted++
        const isCounted = isKnown || slot.organizationsCounted <= mostOrganizations.running
        count((organizations[isCounted ? organization : others] ??= zero()), status, bucket)
      }
      const reason = reasonOf({ refusal, status })
      if (reason !== undefined) refused[reason] = (refused[reason] ?? 0) + 1
    },
    window: (now: number) => windowOf(recent(now))
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
    snapshot: (now: number): Snapshot => Record.map(windows, ({ window }) => window(now))
  }
}

const counting = Effect.map(Clock.Clock, (clock) => {
  const counter = make()
  return {
    /** Counts a request: for `RequestObservers`. */
    observe: (facts: Observed) => counter.record(clock.currentTimeMillisUnsafe(), facts),
    snapshot: Effect.sync(() => counter.snapshot(clock.currentTimeMillisUnsafe()))
  }
})

export class Recent extends Context.Service<Recent, Effect.Success<typeof counting>>()(
  "practice-data/observability/Recent"
) {
  static readonly layer = Layer.effect(Recent, counting)
}

/** The snapshot of several processes together. */
export const merge = (snapshots: ReadonlyArray<Snapshot>): Snapshot =>
  Record.map(lengths, (_, name) => windowOf(snapshots.map((each) => each[name])))

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
