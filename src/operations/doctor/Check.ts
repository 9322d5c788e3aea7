/** Checks of an installation. The doctor runs all of them, a start of the service those that are marked for it. */
import { Cause, Duration, Effect, Fiber, Option, Schema } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { codeOf } from "../../database/SqlFailure.ts"
import * as Failure from "../../process/Failure.ts"

/** The finding of a check. */
export interface Said {
  readonly status: "ok" | "warn" | "fail"
  readonly message: string
  /** The remedy, unless all is well. */
  readonly advice?: string
}

/** A finding with its area, such as a database. */
export interface Finding extends Said {
  readonly area: string
}

export const ok = (message: string): Said => ({ status: "ok", message })
export const warn = (message: string, advice: string): Said => ({ status: "warn", message, advice })
export const fail = (message: string, advice: string): Said => ({ status: "fail", message, advice })

/** The findings whose conditions hold. */
export const findings = (all: ReadonlyArray<Said | false>): ReadonlyArray<Said> => all.filter((one) => one !== false)

export interface Check<Subject, R = never> {
  /** Begins the sentence that the check could not be made. */
  readonly name: string
  readonly at: ReadonlyArray<"doctor" | "start">
  readonly applies?: (subject: Subject) => boolean
  readonly run: (subject: Subject) => Effect.Effect<ReadonlyArray<Said>, SqlError | Schema.SchemaError, R>
}

/** The checks of a list that an occasion runs on a subject. */
export const checksAt = <Subject, R>(
  occasion: Check<Subject>["at"][number],
  checks: ReadonlyArray<Check<Subject, R>>,
  subject: Subject
) => checks.filter(({ applies, at }) => at.includes(occasion) && (applies?.(subject) ?? true))

const timeout = Duration.seconds(6)

// A migration makes the object, and the check of the migrations says that it is missing.
const isMissing = (error: SqlError) => ["42P01", "42883"].includes(codeOf(error))

const unfinished = (name: string, cause: Cause.Cause<unknown>): ReadonlyArray<Said> => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (!isSqlError(error)) return [fail(`${name} could not be checked.`, "This should not happen. Report it.")]
  if (isMissing(error)) return []
  return error.reason._tag === "AuthorizationError"
    ? [warn(`${name} may not be looked at by this login.`, "Run the doctor as the login that migrates as well.")]
    : [fail(`${name} could not be checked: ${Failure.sqlReason(error)}`, "Look at the log of the database.")]
}

/** Runs a check. A failure or a timeout is a finding, and one that hangs is left behind. */
export const attempt = <E, R>(name: string, run: Effect.Effect<ReadonlyArray<Said>, E, R>) =>
  Effect.forkDetach(Effect.catchCause(run, (cause) => Effect.succeed(unfinished(name, cause)))).pipe(
    Effect.flatMap((fiber) => Effect.onInterrupt(Fiber.join(fiber), () => Effect.sync(() => fiber.interruptUnsafe()))),
    Effect.timeoutOrElse({
      duration: timeout,
      orElse: () =>
        Effect.succeed([
          fail(`${name} could not be checked: no answer within ${Duration.format(timeout)}.`, "Look at what keeps it.")
        ])
    })
  )

/** The findings of the doctor in an area. The checks run one after the other: they share a connection, and one measures. */
export const examine = <Subject, R>(area: string, checks: ReadonlyArray<Check<Subject, R>>, subject: Subject) =>
  Effect.map(
    Effect.forEach(checksAt("doctor", checks, subject), ({ name, run }) => attempt(name, run(subject))),
    (said) => said.flat().map((one): Finding => ({ area, ...one }))
  )

/** The rows of a statement. */
export const rows = <A, E>(
  row: Schema.Codec<A, unknown>,
  statement: Effect.Effect<ReadonlyArray<unknown>, E>
): Effect.Effect<ReadonlyArray<A>, E | Schema.SchemaError> =>
  Effect.flatMap(statement, Schema.decodeUnknownEffect(Schema.Array(row)))

/** The first row of a statement that returns one at least. */
export const first = <A, E>(
  row: Schema.Codec<A, unknown>,
  statement: Effect.Effect<ReadonlyArray<unknown>, E>
): Effect.Effect<A, E | Schema.SchemaError> =>
  Effect.flatMap(statement, (found) => Schema.decodeUnknownEffect(row)(found[0]))

/** Some names, and the number of the others. */
export const listed = (names: ReadonlyArray<string>) =>
  names.length > 4 ? `${names.slice(0, 4).join(", ")} and ${names.length - 4} more` : names.join(", ")
