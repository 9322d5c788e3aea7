/**
 * A check finds facts, each with a status. The doctor runs all checks and shows their facts with advice; what fails in a
 * check of a dependency is a warning of `HealthChecks`, whose readiness alone decides whether a process gets requests.
 */
import { Cause, Duration, Effect, Fiber, Option } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { codeOf, isUnreachable, messageOf } from "../database/SqlFailure.ts"

/** A fact, with its remedy unless all is well. */
export interface Fact {
  readonly status: "ok" | "warn" | "fail"
  readonly message: string
  readonly advice?: string
}

/** A fact with its area, such as a database. */
export type Finding = Fact & { readonly area: string }

export const ok = (message: string): Fact => ({ status: "ok", message })
export const warn = (message: string, advice: string): Fact => ({ status: "warn", message, advice })
export const fail = (message: string, advice: string): Fact => ({ status: "fail", message, advice })

/** The facts whose conditions hold. */
export const facts = (...all: ReadonlyArray<Fact | false>): ReadonlyArray<Fact> => all.filter((one) => one !== false)

/** Checks by name, which begins the sentence that a check failed. */
export type Checks<R = never> = Readonly<Record<string, Effect.Effect<ReadonlyArray<Fact>, SqlError, R>>>

/** The longest that a check takes, unless it is given more. */
const usual = Duration.seconds(6)

const remedy =
  "Check the URL (host, port, login, password, sslmode), and that the server is running and accepts connections from this machine. See its log."

const unfinished = (name: string, cause: Cause.Cause<unknown>): ReadonlyArray<Fact> => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (!isSqlError(error)) return [fail(`${name} could not be checked.`, "This is a bug: please report it.")]
  // An undefined table or function: the check of the migrations reports it.
  if (["42P01", "42883"].includes(codeOf(error))) return []
  return error.reason._tag === "AuthorizationError" && !isUnreachable(error)
    ? [
        warn(
          `${name} could not be checked: this login may not read them.`,
          "Run the doctor also as the login that runs migrations."
        )
      ]
    : [fail(`${name} could not be checked: ${messageOf(error)}`, remedy)]
}

/** Runs a check. A failure or a timeout is a fact, and a check that hangs is left behind. */
const attempt = <R>(name: string, run: Checks<R>[string], timeout: Duration.Duration) =>
  Effect.forkDetach(Effect.catchCause(run, (cause) => Effect.succeed(unfinished(name, cause)))).pipe(
    Effect.flatMap((fiber) => Effect.onInterrupt(Fiber.join(fiber), () => Effect.sync(() => fiber.interruptUnsafe()))),
    Effect.timeoutOrElse({
      duration: timeout,
      orElse: () =>
        Effect.succeed([fail(`${name} could not be checked: no response within ${Duration.format(timeout)}.`, remedy)])
    })
  )

export const inArea = (area: string, all: ReadonlyArray<Fact>) => all.map((fact): Finding => ({ area, ...fact }))

/** The findings of checks. They run one after the other: they share a connection, and one measures. */
export const examine = <R>(area: string, checks: Checks<R>, timeout = usual) =>
  Effect.map(
    Effect.forEach(Object.entries(checks), ([name, run]) => attempt(name, run, timeout)),
    (lists) => inArea(area, lists.flat())
  )

/** The first names, and the number of the others. */
export const listed = (names: ReadonlyArray<string>) =>
  names.length > 4 ? `${names.slice(0, 4).join(", ")} and ${names.length - 4} more` : names.join(", ")
