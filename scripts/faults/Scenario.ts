/** A row of the table of promises: what is done to the service, what is promised, and what was seen. */
import { Cause, Clock, Data, Duration, Effect, Exit, type Scope } from "effect"
import type { Ground } from "./support/Ground.ts"

/** What was seen, in words, and whether it is what was promised. A scenario that cannot be run here says why. */
export interface Seen {
  readonly seen: string
  readonly result: "pass" | "fail" | "skip"
}

/** One way to try to take the service down. */
export interface Scenario {
  readonly name: string
  readonly done: string
  readonly promise: string
  /** Tries it once. Whatever it fails with is a failed promise. */
  readonly run: (ground: Ground) => Effect.Effect<Seen, NotTried, Scope.Scope>
}

/** It came to no end: something that the scenario needs went wrong, and that may be the service. */
export class NotTried extends Data.TaggedError("NotTried")<{ readonly message: string }> {}

const firstLineOf = <E>(cause: Cause.Cause<E>) => Cause.pretty(cause).split("\n").slice(0, 2).join(" ").slice(0, 400)

/** A scenario, whatever it may fail with. */
export const make = <E>({
  run,
  ...about
}: Omit<Scenario, "run"> & {
  readonly run: (ground: Ground) => Effect.Effect<Seen, E, Scope.Scope>
}): Scenario => ({
  ...about,
  run: (ground) => Effect.catchCause(run(ground), (cause) => Effect.fail(new NotTried({ message: firstLineOf(cause) })))
})

/** A scenario with what came of it. */
export interface Row extends Omit<Scenario, "run">, Seen {
  readonly seconds: number
}

/** One figure and the bound that it must keep. */
export interface Check {
  readonly text: string
  readonly isKept: boolean
}

const rounded = (value: number) => (Math.abs(value) < 10 ? Number(value.toFixed(2)) : Math.round(value))

/** A figure that must not be larger than its bound. */
export const atMost = (bound: number, what: string, value: number, unit = ""): Check => ({
  text: `${what} ${rounded(value)}${unit}${value <= bound ? "" : ` (more than ${bound}${unit})`}`,
  isKept: value <= bound
})

/** A figure that must not be smaller than its bound. */
export const atLeast = (bound: number, what: string, value: number, unit = ""): Check => ({
  text: `${what} ${rounded(value)}${unit}${value >= bound ? "" : ` (less than ${bound}${unit})`}`,
  isKept: value >= bound
})

/** Something that is worth knowing and promised by nobody. */
export const note = (text: string): Check => ({ text, isKept: true })

/** Passes when each of the checks is kept. */
export const verdict = (...checks: ReadonlyArray<Check>): Seen => ({
  seen: checks
    .map(({ text }) => text)
    .filter((text) => text !== "")
    .join("; "),
  result: checks.every(({ isKept }) => isKept) ? "pass" : "fail"
})

/** Says why a scenario is not run. */
export const skip = (reason: string): Seen => ({ seen: reason, result: "skip" })

// The longest scenario of all has its own bounds. This one is for what nobody thought of.
const longest = Duration.minutes(2)

/** Runs a scenario to its row. */
export const row = Effect.fnUntraced(function* ({ run, ...about }: Scenario, ground: Ground, timeout = longest) {
  const begun = yield* Clock.currentTimeMillis
  const exit = yield* Effect.exit(Effect.timeout(Effect.scoped(run(ground)), timeout))
  const seen: Seen = Exit.isSuccess(exit) ? exit.value : { seen: firstLineOf(exit.cause), result: "fail" }
  const made: Row = { ...about, ...seen, seconds: ((yield* Clock.currentTimeMillis) - begun) / 1000 }
  return made
})
