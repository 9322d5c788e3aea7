/** What the processes of this host say of themselves. */
import { Array, Context, Effect, Layer, Metric, Predicate, Record } from "effect"
import { HealthChecks } from "./HealthChecks.ts"
import * as Exposition from "../observability/Exposition.ts"
import * as Recent from "../observability/Recent.ts"
import { ProcessRuntime } from "../observability/ProcessRuntime.ts"
import * as Series from "../observability/Series.ts"
import { answering, type Answered, Children } from "../process/Children.ts"
import { version } from "../process/Package.ts"

/** What a process says of itself. Plain JSON. */
export interface ProcessSnapshot {
  /** Which of the processes of this host, from 1. */
  readonly process: number
  readonly pid: number
  /** In milliseconds since 1970. */
  readonly startedAt: number
  readonly version: string
  readonly roles: ReadonlyArray<string>
  /** In the text format of Prometheus. */
  readonly metrics: string
  readonly recent: Recent.Snapshot
  readonly ready: boolean
  /** What is wrong with each thing that the process depends on, by its name; null where nothing is. */
  readonly checks: Readonly<Record<string, string | null>>
  /** The resident memory, in bytes. */
  readonly memory: number
  /** How late timers were at most, of 99 %, in milliseconds. */
  readonly eventLoopDelay: number
}

/** A process that does not answer. */
export interface Silent {
  readonly process: number
  readonly pid: number | null
  /** Why nothing is known of it. */
  readonly silent: string
}

/** The metrics of this process. */
const ownMetrics = Effect.map(Metric.MetricRegistry, (registry) =>
  Effect.provideService(Exposition.text, Metric.MetricRegistry, registry)
)

/** What this process says of itself, as the first one. */
const ownFigures = Effect.fnUntraced(function* (roles: ReadonlyArray<string>) {
  const health = yield* HealthChecks
  const recent = yield* Recent.Recent
  const { eventLoopDelay, memory } = yield* ProcessRuntime
  const metrics = yield* ownMetrics
  const snapshot = Effect.gen(function* () {
    const [ready, checks] = yield* Effect.all([health.isReady, health.checks], { concurrency: 2 })
    const seen: ProcessSnapshot = {
      process: 1,
      pid: process.pid,
      startedAt: Math.round(performance.timeOrigin),
      version,
      roles,
      metrics: yield* metrics,
      recent: yield* recent.snapshot,
      ready,
      checks: Record.map(checks, (problem) => (Predicate.isString(problem) ? problem : null)),
      memory: memory(),
      eventLoopDelay: eventLoopDelay(0.99) * 1000
    }
    return seen
  })
  return { snapshot, metrics }
})

/** Shows how many processes serve. */
const processes = Effect.fnUntraced(function* (count: number, restarts: () => number) {
  const { gauge, read } = yield* Series.current
  const answered = gauge("practice_data_processes_answered")
  gauge("practice_data_processes").set(count)
  answered.set(count)
  yield* read("practice_data_process_restarts_total", restarts)
  return answered
})

/** The questions of a parent to its children. */
const questions = { metrics: "metrics", snapshot: "snapshot" } as const

// A child is of the same version as its parent, unless the files were replaced while that ran.
const isSnapshot = (answer: unknown): answer is ProcessSnapshot =>
  Predicate.hasProperty(answer, "recent") && Predicate.hasProperty(answer, "checks")

const silent = ({ pid, process }: Answered): Silent => ({
  process,
  pid: pid ?? null,
  silent: pid === undefined ? "It does not run" : "It did not answer within a second"
})

export class Figures extends Context.Service<
  Figures,
  {
    readonly all: Effect.Effect<ReadonlyArray<ProcessSnapshot | Silent>>
    /** The metrics of all of them, in the text format of Prometheus. Takes a second at most. */
    readonly metrics: Effect.Effect<string>
  }
>()("practice-data/operations/Figures") {
  /**
   * Of the one process that there is.
   *
   * @param roles what it does
   */
  static readonly layer = (roles: ReadonlyArray<string>) =>
    Layer.effect(
      Figures,
      Effect.gen(function* () {
        const { metrics, snapshot } = yield* ownFigures(roles)
        yield* processes(1, () => 0)
        return Figures.of({ all: Effect.map(snapshot, Array.of), metrics })
      })
    )

  /** Of the children of this process, and in the metrics also its own. */
  static readonly layerOfChildren = Layer.effect(
    Figures,
    Effect.gen(function* () {
      const { ask, places } = yield* Children
      const own = yield* ownMetrics
      const answered = yield* processes(places.length, () => places.reduce((sum, { restarts }) => sum + restarts, 0))
      return Figures.of({
        all: Effect.map(ask(questions.snapshot), (answers) =>
          answers.map((each) => (isSnapshot(each.answer) ? { ...each.answer, process: each.process } : silent(each)))
        ),
        metrics: Effect.gen(function* () {
          const parts = (yield* ask(questions.metrics)).flatMap(({ answer, process }) =>
            Predicate.isString(answer) ? [{ process: String(process), text: answer }] : []
          )
          answered.set(parts.length)
          return Exposition.merged([{ process: "parent", text: yield* own }, ...parts])
        })
      })
    })
  )

  /**
   * In a child: answers its parent until the scope closes.
   *
   * @param roles what the child does
   */
  static readonly layerOfChild = (roles: ReadonlyArray<string>) =>
    Layer.effectDiscard(
      Effect.gen(function* () {
        const { metrics, snapshot } = yield* ownFigures(roles)
        yield* answering({ [questions.snapshot]: snapshot, [questions.metrics]: metrics })
      })
    )
}
