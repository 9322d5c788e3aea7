/** One kind of hostile body, sent by many at once, and what a neighbour has of it. */
import { Array, Clock, Effect } from "effect"
import * as Callers from "../support/Callers.ts"
import * as Proc from "../support/Proc.ts"
import * as Service from "../support/Service.ts"
import type { Kind } from "./bodies.ts"
import * as Senders from "./Senders.ts"

const readers = 10
const silent = 5
const times = 2

/** How long one kind may take, in milliseconds. */
const during = 12_000

/** What is promised of every request, whatever it holds. */
export const bounds = {
  /** How long another one waits, in milliseconds: the goal is 100, and this machine is shared. */
  wait: 250,
  /** How large a refusal is, in bytes. */
  refusal: 64 * 1024
} as const

/** The service that is attacked. */
export interface Target {
  readonly pid: number
  readonly port: number
}

/** What a neighbour has to wait alone, and what processor time the service takes for one of its requests. */
export interface Baseline {
  readonly longest: number
  /** In milliseconds. */
  readonly cpu: number
}

const neighbours = (port: number) =>
  Callers.startNeighbour(port, [Service.health, ...Service.neighbourly], { callers: 2, patience: 20_000 })

/** What it is like with nobody else. */
export const measureBaseline = ({ pid, port }: Target) =>
  Effect.gen(function* () {
    const neighbour = yield* neighbours(port)
    const before = yield* Proc.cpuMillis(pid)
    yield* Effect.sleep("2 seconds")
    const cpu = (yield* Proc.cpuMillis(pid)) - before
    const report = yield* neighbour.stop
    const made: Baseline = { longest: Callers.longest(report), cpu: cpu / Math.max(1, report.length) }
    return made
  }).pipe(Effect.scoped)

/** What came of one kind. */
export interface Result {
  readonly kind: string
  readonly requestBytes: number
  readonly statuses: ReadonlyArray<number>
  readonly answerBytes: number
  /** Processor time of the service for each request, in milliseconds. */
  readonly cpu: number
  readonly longest: number
  /** In MiB. */
  readonly peak: number
  /** The bounds that were broken. */
  readonly broken: ReadonlyArray<string>
}

/** Attacks with one kind. */
export const attack = ({ pid, port }: Target, kind: Kind, seed: number, baseline: Baseline) =>
  Effect.gen(function* () {
    const neighbour = yield* neighbours(port)
    yield* Proc.forgetPeak(pid)
    const senders = yield* Senders.start({ port, kind: kind.name, seed, readers, silent, times, during })
    const before = yield* Proc.cpuMillis(pid)
    const begun = yield* Clock.currentTimeMillis
    const sent = yield* senders.report
    // What those who do not read have sent is answered too.
    yield* Effect.sleep("300 millis")
    const spent = (yield* Proc.cpuMillis(pid)) - before
    const peak = yield* Proc.peakMemory(pid)
    const isAlive = yield* Proc.isRunning(pid)
    const report = yield* neighbour.stop
    const longest = Callers.longest(report)
    const meanwhile = report.filter(({ at }) => at > begun).length
    const failed = Callers.unlike(report, Callers.isGood).length
    const refusals = sent.statuses.filter((status) => status >= 400)
    const made: Result = {
      kind: kind.name,
      requestBytes: sent.requestBytes,
      statuses: Array.dedupe(sent.statuses),
      answerBytes: sent.answerBytes,
      cpu: Math.max(0, spent - baseline.cpu * meanwhile) / Math.max(1, sent.sent),
      longest,
      peak,
      broken: [
        isAlive ? "" : "the process ended",
        longest > bounds.wait ? "wait" : "",
        refusals.length > 0 && sent.answerBytes > bounds.refusal ? "size of the answer" : "",
        sent.unanswered > 0 ? `${sent.unanswered} not answered` : "",
        sent.statuses.includes(500) ? "500" : "",
        failed > 0 ? `${failed} failed requests of the neighbour` : ""
      ].filter((text) => text !== "")
    }
    return made
  }).pipe(Effect.scoped)
