/** What the processes of this host say of themselves, and since when what they depend on is as it is. */
import { Clock, Context, Effect, Fiber, Layer, Option, Schedule } from "effect"
import { Figures, type ProcessSnapshot, type Silent } from "./Figures.ts"

/** What a process depends on. Times are in milliseconds since 1970. */
export interface Dependency {
  readonly process: number
  readonly name: string
  /** What is wrong with it; null if nothing is. */
  readonly problem: string | null
  /** Since when something, or nothing, has been wrong; if it was never different, since it was first looked at. */
  readonly since: number
  /** The last problem, also once it is over. */
  readonly last: { readonly problem: string; readonly at: number } | null
}

/** What was seen. */
export interface Seen {
  readonly at: number
  readonly processes: ReadonlyArray<ProcessSnapshot>
  readonly silent: ReadonlyArray<Silent>
  readonly dependencies: ReadonlyArray<Dependency>
}

/** How often it is looked, so that what happens while nobody has the page open is known, too. */
const interval = "5 seconds"

const isSilent = (one: ProcessSnapshot | Silent): one is Silent => "silent" in one
const isHeard = (one: ProcessSnapshot | Silent): one is ProcessSnapshot => !isSilent(one)

/** How old what is seen may be, in milliseconds. */
const oldest = 1000

/** How long the processes may take together. */
const within = "1500 millis"

/** What is known of dependencies, with what the processes say now. */
export const next = (
  before: ReadonlyArray<Dependency>,
  processes: ReadonlyArray<ProcessSnapshot>,
  at: number
): ReadonlyArray<Dependency> =>
  processes.flatMap(({ checks, process }) =>
    Object.entries(checks).map(([name, problem]) => {
      const known = before.find((one) => one.process === process && one.name === name)
      const isSame = known !== undefined && (known.problem === null) === (problem === null)
      return {
        process,
        name,
        problem,
        since: isSame ? known.since : at,
        last: problem === null ? (known?.last ?? null) : { problem, at }
      }
    })
  )

export class Watch extends Context.Service<
  Watch,
  {
    /** What is seen now; at most a second old. */
    readonly look: Effect.Effect<Seen>
  }
>()("practice-data/operations/Watch") {
  static readonly layer = Layer.effect(
    Watch,
    Effect.gen(function* () {
      const figures = yield* Figures
      let dependencies: ReadonlyArray<Dependency> = []
      const look = Effect.gen(function* () {
        const found = yield* Effect.timeoutOption(figures.all, within)
        const all = Option.getOrElse(found, (): ReadonlyArray<ProcessSnapshot | Silent> => [])
        const at = yield* Clock.currentTimeMillis
        const processes = all.filter(isHeard)
        dependencies = next(dependencies, processes, at)
        return { at, processes, silent: all.filter(isSilent), dependencies }
      })
      const scope = yield* Effect.scope
      let looking: { readonly at: number; readonly fiber: Fiber.Fiber<Seen> } | undefined
      // In a fiber of its own: whoever asked first may leave, and the others still get what is seen.
      const shared = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        if (looking === undefined || now - looking.at >= oldest) {
          looking = { at: now, fiber: yield* Effect.forkIn(look, scope) }
        }
        return yield* Fiber.join(looking.fiber)
      })
      yield* Effect.forkScoped(Effect.repeat(shared, Schedule.spaced(interval)))
      return Watch.of({ look: shared })
    })
  )
}

/** The highest value of a metric in the text format of Prometheus; undefined where there is none. */
export const highest = (seen: Seen, name: string): number | undefined => {
  const values = seen.processes.flatMap(({ metrics }) =>
    metrics.split("\n").flatMap((line) => {
      if (!line.startsWith(name) || !["{", " "].includes(line.charAt(name.length))) return []
      const value = Number(line.slice(line.lastIndexOf(" ") + 1))
      return Number.isFinite(value) ? [value] : []
    })
  )
  return values.length === 0 ? undefined : Math.max(...values)
}
