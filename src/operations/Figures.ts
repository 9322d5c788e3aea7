/** Figures of the processes of this host: their metrics, and the state of their dependencies over time. */
import { Array, Context, Effect, Layer, Metric, Predicate, Result } from "effect"
import { PrometheusMetrics } from "effect/observability"
import * as Recent from "../observability/Recent.ts"
import * as Series from "../observability/Series.ts"
import { version } from "../process/Package.ts"
import { answering, Children } from "../process/Processes.ts"
import * as Time from "../process/Time.ts"
import { HealthChecks } from "./HealthChecks.ts"

const ownMetrics = Effect.map(Metric.MetricRegistry, (registry) =>
  Effect.provideService(PrometheusMetrics.format(), Metric.MetricRegistry, registry)
)

const ownFigures = Effect.fnUntraced(function* (roles: ReadonlyArray<string>) {
  const health = yield* HealthChecks
  const recent = yield* Recent.Recent
  const metrics = yield* ownMetrics
  const own = {
    /** The number of the process on this host, from 1. */
    process: 1,
    pid: process.pid,
    /** In milliseconds since 1970. */
    startedAt: Math.round(performance.timeOrigin),
    version,
    roles
  }
  const snapshot = Effect.map(
    Effect.all(
      { metrics, recent: recent.snapshot, ready: health.isReady, checks: health.checks },
      { concurrency: "unbounded" }
    ),
    (now) => ({ ...own, ...now })
  )
  return { snapshot, metrics }
})

/** The figures of a process. Plain JSON. */
export type ProcessSnapshot = Effect.Success<Effect.Success<ReturnType<typeof ownFigures>>["snapshot"]>

export interface Processes {
  readonly processes: ReadonlyArray<ProcessSnapshot>
  /** Those that do not answer, and why. */
  readonly silent: ReadonlyArray<{ readonly process: number; readonly pid: number | null; readonly silent: string }>
}

/** Adds since when each dependency is in its state. */
const watching = (all: Effect.Effect<Processes>) => {
  const states = new Map<string, { readonly status: string; readonly since: number }>()
  const sinceOf = (key: string, status: string, now: number) => {
    const known = states.get(key)
    if (known?.status === status) return known.since
    states.set(key, { status, since: now })
    return now
  }
  return Effect.gen(function* () {
    const figures = yield* all
    const [now, wall] = [yield* Time.monotonic, yield* Time.wall]
    const dependencies = figures.processes.flatMap(({ checks, process }) =>
      Object.entries(checks).map(([name, check]) => ({
        process,
        name,
        ...check,
        /** The start of its current state, or of watching, in milliseconds since 1970. */
        since: Math.round(wall - (now - sinceOf(`${process} ${name}`, check.status, now)))
      }))
    )
    return { ...figures, dependencies }
  })
}

export type WatchedProcesses = Effect.Success<ReturnType<typeof watching>>

const comment = /^# (?:HELP|TYPE) (\S+)/

/** A sample with the label `process` before its other labels. */
const labelled = (sample: string, process: string) =>
  sample.replace(/[{ ]/, (end) => `{process="${process}"${end === "{" ? "," : "} "}`)

/** The metrics of several processes, distinguished by the label `process`. Each metric is described once. */
export const merged = (parts: ReadonlyArray<Readonly<Record<"process" | "text", string>>>): string => {
  // The comments of each metric, and its samples in all processes.
  const families = new Map<string, Set<string>>()
  for (const { process, text: given } of parts) {
    let family = new Set<string>()
    for (const line of given.split("\n")) {
      const name = comment.exec(line)?.[1]
      if (name !== undefined) {
        family = families.get(name) ?? new Set()
        families.set(name, family.add(line))
      } else if (line !== "") family.add(labelled(line, process))
    }
  }
  return [...families.values()].map((lines) => [...lines, ""].join("\n")).join("")
}

const countProcesses = Effect.fnUntraced(function* (count: number, restarts: () => number) {
  const { gauge, read } = yield* Series.current
  const answered = gauge("practice_data_processes_answered")
  gauge("practice_data_processes").set(count)
  answered.set(count)
  yield* read("practice_data_process_restarts_total", restarts)
  return answered
})

// A child is of the same version as its parent, unless the files were replaced while that ran.
const isSnapshot = (answer: unknown): answer is ProcessSnapshot =>
  Predicate.hasProperty(answer, "recent") && Predicate.hasProperty(answer, "checks")

export class Figures extends Context.Service<
  Figures,
  {
    /** The figures and the dependencies, at most a second old. */
    readonly watched: Effect.Effect<WatchedProcesses>
    /** The metrics of all processes, in the text format of Prometheus. Takes a second at most. */
    readonly metrics: Effect.Effect<string>
  }
>()("practice-data/operations/Figures") {
  static readonly make = (all: Effect.Effect<Processes>, metrics: Effect.Effect<string>) =>
    Effect.map(
      Time.cachedFor(watching(all), () => "1 second"),
      (watched) => Figures.of({ watched, metrics })
    )

  static readonly layer = (roles: ReadonlyArray<string>) =>
    Layer.effect(
      Figures,
      Effect.gen(function* () {
        const { metrics, snapshot } = yield* ownFigures(roles)
        yield* countProcesses(1, () => 0)
        const all = Effect.map(snapshot, (own) => ({ processes: [own], silent: [] }))
        return yield* Figures.make(all, metrics)
      })
    )

  /** The figures of the children of this process. The metrics include its own. */
  static readonly layerOfChildren = Layer.effect(
    Figures,
    Effect.gen(function* () {
      const { ask, places } = yield* Children
      const own = yield* ownMetrics
      const answered = yield* countProcesses(places.length, () =>
        places.reduce((sum, { restarts }) => sum + restarts, 0)
      )
      const all = Effect.map(ask("snapshot"), (answers) => {
        const [processes, silent] = Array.partition(answers, ({ answer, pid = null, process }) =>
          isSnapshot(answer)
            ? Result.succeed({ ...answer, process })
            : Result.fail({ process, pid, silent: pid === null ? "Not running" : "No answer within a second" })
        )
        return { processes, silent }
      })
      const metrics = Effect.gen(function* () {
        const parts = (yield* ask("metrics")).flatMap(({ answer, process }) =>
          Predicate.isString(answer) ? [{ process: String(process), text: answer }] : []
        )
        answered.set(parts.length)
        return merged([{ process: "parent", text: yield* own }, ...parts])
      })
      return yield* Figures.make(all, metrics)
    })
  )

  /** In a child: answers its parent until the scope closes. */
  static readonly layerOfChild = (roles: ReadonlyArray<string>) =>
    Layer.effectDiscard(Effect.flatMap(ownFigures(roles), answering))
}

/** The highest value of a metric, whose labels may be part of the name; undefined without one. */
export const highest = (processes: ReadonlyArray<ProcessSnapshot>, name: string): number | undefined => {
  const values = processes
    .flatMap(({ metrics }) => metrics.split("\n"))
    .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    .map((line) => Number(line.slice(line.lastIndexOf(" ") + 1).replace("Inf", "Infinity")))
  return values.length === 0 ? undefined : Math.max(...values)
}
