/** The findings of the doctor, and the checks that find them. */
import { Cause, Duration, Effect, Fiber, Option } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { messageOf } from "../../database/SqlFailure.ts"

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
export const facts = (...all: ReadonlyArray<Fact | false | undefined>): ReadonlyArray<Fact> =>
  all.filter((one) => one !== false && one !== undefined)

export const inArea = (area: string, all: ReadonlyArray<Fact>) => all.map((fact): Finding => ({ area, ...fact }))

const longest = Duration.seconds(6)

const advice = "Check the URL (host, port, login, password, sslmode), and that the server is running. See its log."

const unfinished = (name: string, cause: Cause.Cause<unknown>) => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return isSqlError(error)
    ? fail(`${name} could not be checked: ${messageOf(error)}`, advice)
    : fail(`${name} could not be checked.`, "This is a bug: please report it.")
}

/** The facts of a check. A failure or a timeout is a fact, and a check that hangs is left behind. */
export const attempt = <R>(name: string, check: Effect.Effect<ReadonlyArray<Fact>, SqlError, R>) =>
  Effect.forkDetach(Effect.catchCause(check, (cause) => Effect.succeed([unfinished(name, cause)]))).pipe(
    Effect.flatMap((fiber) => Effect.onInterrupt(Fiber.join(fiber), () => Effect.sync(() => fiber.interruptUnsafe()))),
    Effect.timeoutOrElse({
      duration: longest,
      orElse: () =>
        Effect.succeed([fail(`${name} could not be checked: no response in ${Duration.format(longest)}.`, advice)])
    })
  )
