/** What a check of the doctor finds. */
import { Cause, Duration, Effect, Fiber, Option } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { codeOf } from "../../database/SqlFailure.ts"
import * as Failure from "../../process/Failure.ts"

export interface Finding {
  /** What was looked at, such as a database. */
  readonly area: string
  readonly status: "ok" | "warn" | "fail"
  /** What it is, in a sentence or two. */
  readonly message: string
  /** What to do about it. */
  readonly advice?: string
}

/** What a check says, in its area. */
export type Said = Omit<Finding, "area">

export const ok = (message: string): Said => ({ status: "ok", message })
export const warn = (message: string, advice: string): Said => ({ status: "warn", message, advice })
export const fail = (message: string, advice: string): Said => ({ status: "fail", message, advice })

/** How long a check may take. */
const longest = Duration.seconds(6)

/** Some names, and how many more there are. */
export const listed = (names: ReadonlyArray<string>) =>
  names.length > 4 ? `${names.slice(0, 4).join(", ")} and ${names.length - 4} more` : names.join(", ")

// What it looks at is made by a migration, and the check of the migrations says that it is missing.
const isMissing = (error: SqlError) => ["42P01", "42883"].includes(codeOf(error))

const unfinished = (what: string, cause: Cause.Cause<unknown>): ReadonlyArray<Said> => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (!isSqlError(error)) return [fail(`${what} could not be checked.`, "This should not happen. Report it.")]
  if (isMissing(error)) return []
  return error.reason._tag === "AuthorizationError"
    ? [warn(`${what} may not be looked at by this login.`, "Run the doctor as the login that migrates as well.")]
    : [fail(`${what} could not be checked: ${Failure.sqlReason(error)}`, "Look at the log of the database.")]
}

/**
 * Runs a check: in its time, and whatever happens to it, as findings. One that does not end is left behind.
 *
 * @param what is checked, to begin a sentence with
 */
export const check = <E, R>(
  area: string,
  what: string,
  said: Effect.Effect<ReadonlyArray<Said>, E, R>
): Effect.Effect<ReadonlyArray<Finding>, never, R> =>
  Effect.forkDetach(Effect.catchCause(said, (cause) => Effect.succeed(unfinished(what, cause)))).pipe(
    Effect.flatMap((fiber) => Effect.onInterrupt(Fiber.join(fiber), () => Effect.sync(() => fiber.interruptUnsafe()))),
    Effect.timeoutOrElse({
      duration: longest,
      orElse: () =>
        Effect.succeed([
          fail(`${what} could not be checked: no answer within ${Duration.format(longest)}.`, "Look at what keeps it.")
        ])
    }),
    Effect.map((all) => all.map((each): Finding => ({ area, ...each })))
  )
