/**
 * What was requested in the last hour, by minute, and in the last day, by five minutes: for the operators' page, also
 * where nobody collects metrics. It takes at most 8 MB, whatever is requested, and a fraction of a microsecond a request.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { RequestFacts } from "./RequestFacts.ts"

/** The upper ends of the buckets of latencies, in milliseconds. A last bucket has what took longer. */
export const bounds = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] as const

const minute = 60_000
const fiveMinutes = 5 * minute
const hour = 60 * minute
const day = 24 * hour

/** What was counted. */
export interface Counts {
  readonly requests: number
  /** Responses 4xx, and clients that left. */
  readonly clientErrors: number
  /** Responses 5xx. */
  readonly serverErrors: number
  /** How many took how long, by the buckets of `bounds`. */
  readonly latency: ReadonlyArray<number>
}

/** What was counted in a slot of time. `start`: milliseconds since 1970. */
export interface Point extends Counts {
  readonly start: number
}

/** A span of time until now. */
export interface Window {
  /** How long a slot is, in milliseconds. */
  readonly step: number
  /** The slots that had requests, the oldest first. */
  readonly points: ReadonlyArray<Point>
  readonly endpoints: Readonly<Record<string, Counts>>
  /** The most active ones, and `others` for the rest. */
  readonly organizations: Readonly<Record<string, Counts>>
  /** How many requests were refused, by the reason. */
  readonly refused: Readonly<Record<string, number>>
}

/** Plain JSON. */
export interface Snapshot {
  /** When it was made, in milliseconds since 1970. */
  readonly at: number
  readonly hour: Window
  readonly day: Window
}

/** Of a request that was responded to, what is counted. */
export type Observed = Pick<RequestFacts, "endpoint" | "organization" | "status" | "duration" | "polled" | "refusal">

/** What counts, and tells. Times are in milliseconds since 1970. */
export interface Counter {
  readonly record: (now: number, observed: Observed) => void
  readonly snapshot: (now: number) => Snapshot
}

export class Recent extends Context.Service<
  Recent,
  {
    /** Counts a request: for `RequestObservers`. */
    readonly observe: (facts: Observed) => void
    readonly snapshot: Effect.Effect<Snapshot>
  }
>()("practice-data/observability/Recent") {
  /** Counts what is observed from now on. */
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

/** What stands for all that are not counted by their name. */
export const others = "others"

/** How many names a running slot counts; a hostile client may make up organizations. */
const mostNames = { endpoints: 200, organizations: 1000, refused: 30 } as const

/** How many organizations a finished slot keeps, and a snapshot tells: those with the most requests. */
const mostOrganizations = { slot: 80, snapshot: 200 } as const

const longestName = 64

// The columns of a row of counts.
const [requests, clientErrors, serverErrors, latency] = [0, 1, 2, 3]
const buckets = bounds.length + 1
const width = latency + buckets

type Numbers = Uint32Array

const add = (to: Numbers, toRow: number, from: Numbers, fromRow: number) => {
  for (let column = 0; column < width; column++) {
    const at = toRow * width + column
    to[at] = (to[at] ?? 0) + (from[fromRow * width + column] ?? 0)
  }
}

const bucketOf = (duration: number) => {
  let bucket = 0
  while (bucket < bounds.length && duration > (bounds[bucket] ?? Infinity)) bucket++
  return bucket
}

/** Rows of counts by a name, as many as may be; the rest share the row of `others`, which is the first. */
class Tally {
  readonly rows = new Map<string, number>()
  counts: Numbers = new Uint32Array(width * 8)
  readonly #most: number

  constructor(most: number) {
    this.#most = most
  }

  rowOf(name: string): number {
    const known = this.rows.get(name)
    if (known !== undefined) return known
    if (name === others || this.rows.size >= this.#most) return 0
    const row = this.rows.size + 1
    this.rows.set(name, row)
    if (this.counts.length < (row + 1) * width) {
      const larger = new Uint32Array(this.counts.length * 2)
      larger.set(this.counts)
      this.counts = larger
    }
    return row
  }

  addAll(finished: Finished) {
    finished.names.forEach((name, index) => {
      const row = this.rowOf(name)
      add(this.counts, row, finished.counts, index)
    })
  }

  /** The rows with the most requests, and one of all others. */
  finish(most: number, nameOf: (name: string) => string): Finished {
    const all = Array.from(this.rows)
    const kept =
      all.length <= most
        ? all
        : all.toSorted((one, two) => this.#requests(two[1]) - this.#requests(one[1])).slice(0, most)
    const hasOthers = all.length > kept.length || this.#requests(0) > 0
    const counts = new Uint32Array((kept.length + (hasOthers ? 1 : 0)) * width)
    kept.forEach(([, row], index) => add(counts, index, this.counts, row))
    if (hasOthers) {
      const rest = new Set(kept.map(([, row]) => row))
      add(counts, kept.length, this.counts, 0)
      for (const [, row] of all) if (!rest.has(row)) add(counts, kept.length, this.counts, row)
    }
    return { names: [...kept.map(([name]) => nameOf(name)), ...(hasOthers ? [others] : [])], counts }
  }

  #requests(row: number) {
    return this.counts[row * width + requests] ?? 0
  }
}

/** Rows of counts in the order of their names. */
interface Finished {
  readonly names: ReadonlyArray<string>
  readonly counts: Numbers
}

interface Slot {
  readonly start: number
  readonly total: Numbers
  readonly endpoints: Finished
  readonly organizations: Finished
  readonly refused: ReadonlyMap<string, number>
}

const increase = (counts: Map<string, number>, name: string, by: number) => {
  const key = counts.has(name) || counts.size < mostNames.refused ? name : others
  counts.set(key, (counts.get(key) ?? 0) + by)
}

/** A slot that still counts. */
class Running {
  readonly start: number
  readonly total: Numbers = new Uint32Array(width)
  readonly endpoints = new Tally(mostNames.endpoints)
  readonly organizations = new Tally(mostNames.organizations)
  readonly refused = new Map<string, number>()

  constructor(start: number) {
    this.start = start
  }

  record({ duration, endpoint, organization, polled, refusal, status }: Observed) {
    const bucket = latency + bucketOf(duration - polled)
    const error = status >= 500 ? serverErrors : status >= 400 ? clientErrors : undefined
    this.#count(this.total, 0, bucket, error)
    const ofEndpoint = this.endpoints.rowOf(endpoint)
    this.#count(this.endpoints.counts, ofEndpoint, bucket, error)
    if (organization !== undefined) {
      const ofOrganization = this.organizations.rowOf(organization)
      this.#count(this.organizations.counts, ofOrganization, bucket, error)
    }
    if (refusal !== undefined) increase(this.refused, refusal, 1)
  }

  addSlot(slot: Slot) {
    add(this.total, 0, slot.total, 0)
    this.endpoints.addAll(slot.endpoints)
    this.organizations.addAll(slot.organizations)
    for (const [reason, count] of slot.refused) increase(this.refused, reason, count)
  }

  finish(nameOf: (name: string) => string): Slot {
    return {
      start: this.start,
      total: this.total.slice(),
      endpoints: this.endpoints.finish(mostNames.endpoints, (name) => name),
      organizations: this.organizations.finish(mostOrganizations.slot, nameOf),
      refused: new Map(this.refused)
    }
  }

  #count(counts: Numbers, row: number, bucket: number, error: number | undefined) {
    const start = row * width
    counts[start + requests] = (counts[start + requests] ?? 0) + 1
    counts[start + bucket] = (counts[start + bucket] ?? 0) + 1
    if (error !== undefined) counts[start + error] = (counts[start + error] ?? 0) + 1
  }
}

const startOf = (at: number, step: number) => at - (at % step)

/** A copy: a part of a longer text would keep all of it in memory. */
const shortened = (name: string) =>
  name.length <= longestName ? name : Buffer.from(name.slice(0, longestName)).toString()

const countsOf = (counts: Numbers, row: number): Counts => ({
  requests: counts[row * width + requests] ?? 0,
  clientErrors: counts[row * width + clientErrors] ?? 0,
  serverErrors: counts[row * width + serverErrors] ?? 0,
  latency: Array.from(counts.subarray(row * width + latency, (row + 1) * width))
})

/** Nothing. */
export const none: Counts = {
  requests: 0,
  clientErrors: 0,
  serverErrors: 0,
  latency: Array.from({ length: buckets }, () => 0)
}

/** Both together. */
export const plus = (one: Counts, two: Counts): Counts => ({
  requests: one.requests + two.requests,
  clientErrors: one.clientErrors + two.clientErrors,
  serverErrors: one.serverErrors + two.serverErrors,
  latency: one.latency.map((count, index) => count + (two.latency[index] ?? 0))
})

type ByName = Readonly<Record<string, Counts>>

const mostActive = (all: ReadonlyMap<string, Counts>): ByName => {
  const named = Array.from(all).filter(([name]) => name !== others)
  const kept = named
    .toSorted(([, one], [, two]) => two.requests - one.requests)
    .slice(0, mostOrganizations.snapshot)
    .map(([name]) => name)
  const names = new Set(kept)
  const rest = Array.from(all)
    .filter(([name]) => !names.has(name))
    .map(([, counts]) => counts)
  return Object.fromEntries([
    ...named.filter(([name]) => names.has(name)),
    ...(rest.length === 0 ? [] : [[others, rest.reduce(plus, none)] as const])
  ])
}

const sumOf = (parts: ReadonlyArray<Finished>, most: number): ByName => {
  const tally = new Tally(Infinity)
  for (const part of parts) tally.addAll(part)
  const { counts, names } = tally.finish(most, (name) => name)
  return Object.fromEntries(names.map((name, row) => [name, countsOf(counts, row)]))
}

const windowOf = (step: number, slots: ReadonlyArray<Slot>): Window => {
  const points = new Map<number, Point>()
  const refused = new Map<string, number>()
  for (const slot of slots) {
    const start = startOf(slot.start, step)
    const counts = countsOf(slot.total, 0)
    if (counts.requests > 0) points.set(start, { start, ...plus(points.get(start) ?? none, counts) })
    for (const [reason, count] of slot.refused) increase(refused, reason, count)
  }
  return {
    step,
    points: Array.from(points.values()),
    endpoints: sumOf(
      slots.map(({ endpoints }) => endpoints),
      mostNames.endpoints
    ),
    organizations: sumOf(
      slots.map(({ organizations }) => organizations),
      mostOrganizations.snapshot
    ),
    refused: Object.fromEntries(refused)
  }
}

/** Counts from now on. */
export const make = (): Counter => {
  let minutes: Array<Slot> = []
  let fives: Array<Slot> = []
  let running: Running | undefined
  let runningFive: Running | undefined
  let names = new Map<string, string>()

  /** The same text for the same name in every slot. */
  const nameOf = (name: string) => {
    const short = shortened(name)
    return names.get(short) ?? short
  }

  const finishFive = (at: number) => {
    if (runningFive === undefined) return
    const slot = runningFive.finish(nameOf)
    names = new Map(slot.organizations.names.map((name) => [name, name]))
    fives = [...fives.filter(({ start }) => start > at - day), slot]
    runningFive = undefined
  }

  const finishMinute = (at: number) => {
    if (running === undefined) return
    const slot = running.finish(nameOf)
    minutes = [...minutes.filter(({ start }) => start > at - hour), slot]
    const start = startOf(slot.start, fiveMinutes)
    if (runningFive?.start !== start) finishFive(at)
    runningFive ??= new Running(start)
    runningFive.addSlot(slot)
    running = undefined
  }

  return {
    record: (now, observed) => {
      if (running === undefined || now >= running.start + minute) {
        finishMinute(now)
        running = new Running(startOf(now, minute))
      }
      running.record(observed)
    },
    snapshot: (now) => {
      if (running !== undefined && now >= running.start + minute) finishMinute(now)
      const current = running === undefined ? [] : [running.finish(nameOf)]
      const currentFive = runningFive === undefined ? [] : [runningFive.finish(nameOf)]
      const since = (span: number, step: number) => startOf(now, step) - span + step
      const recentMinutes = [...minutes, ...current].filter(({ start }) => start >= since(hour, minute))
      const recentFives = [...fives, ...currentFive, ...current].filter(({ start }) => start >= since(day, fiveMinutes))
      return { at: now, hour: windowOf(minute, recentMinutes), day: windowOf(fiveMinutes, recentFives) }
    }
  }
}

const together = (all: ReadonlyArray<ByName>) => {
  const sum = new Map<string, Counts>()
  for (const each of all) {
    for (const [name, counts] of Object.entries(each)) sum.set(name, plus(sum.get(name) ?? none, counts))
  }
  return sum
}

const mergeWindows = (step: number, windows: ReadonlyArray<Window>): Window => {
  const points = new Map<number, Point>()
  const refused = new Map<string, number>()
  for (const window of windows) {
    for (const point of window.points) {
      const { start } = point
      points.set(start, { start, ...plus(points.get(start) ?? none, point) })
    }
    for (const [reason, count] of Object.entries(window.refused)) increase(refused, reason, count)
  }
  return {
    step,
    points: Array.from(points.values()).toSorted((one, two) => one.start - two.start),
    endpoints: Object.fromEntries(together(windows.map(({ endpoints }) => endpoints))),
    organizations: mostActive(together(windows.map(({ organizations }) => organizations))),
    refused: Object.fromEntries(refused)
  }
}

/** What several processes counted, together. */
export const merge = (snapshots: ReadonlyArray<Snapshot>): Snapshot => ({
  at: Math.max(0, ...snapshots.map(({ at }) => at)),
  hour: mergeWindows(
    minute,
    snapshots.map((each) => each.hour)
  ),
  day: mergeWindows(
    fiveMinutes,
    snapshots.map((each) => each.day)
  )
})

/**
 * A quantile of latencies, in milliseconds: within its bucket as if all of the bucket were spread evenly. Infinity where
 * it took longer than any bound, undefined where there was none.
 */
export const quantile = (counts: ReadonlyArray<number>, share: number): number | undefined => {
  const all = counts.reduce((sum, count) => sum + count, 0)
  if (all === 0) return undefined
  const rank = share * all
  let before = 0
  for (const [bucket, count] of counts.entries()) {
    if (count > 0 && before + count >= rank) {
      const upper = bounds[bucket]
      if (upper === undefined) return Infinity
      const lower = bounds[bucket - 1] ?? 0
      return lower + ((upper - lower) * (rank - before)) / count
    }
    before += count
  }
  return Infinity
}
