/** What a failed statement says of the database. */
import { Effect, Predicate } from "effect"
import type { SqlError } from "effect/sql/SqlError"

const named = (cause: unknown, field: string): string | undefined => {
  const value: unknown = Predicate.hasProperty(cause, field) ? cause[field] : undefined
  return Predicate.isString(value) && value !== "" ? value : undefined
}

/** The SQLSTATE of a database's refusal, or the system's code of a connection that failed; empty where there is none. */
export const codeOf = ({ reason }: SqlError): string => named(reason.cause, "code") ?? ""

/** The object that a privilege is lacking for. Only these messages of Postgres are sure to hold nothing but its name. */
const deniedBy = (cause: unknown) =>
  named(cause, "routine")?.startsWith("aclcheck_error") === true ? named(cause, "message") : undefined

/**
 * What went wrong, for what is logged and stored: its kind and code, and the constraint, table and column it is about.
 * The text of any other exception is left out, since it may quote a row or a parameter.
 */
export const reasonOf = (error: SqlError): string => {
  const { reason } = error
  const code = codeOf(error)
  // Without a code it is not from the database, and these words are the driver's own.
  const words = code === "" && reason._tag === "ConnectionError" ? reason.message : code
  const about = ["constraint", "table", "column"].flatMap((field) => {
    const name = named(reason.cause, field)
    return name === undefined ? [] : [`${field} ${name}`]
  })
  return [`${reason._tag} ${words}`.trim(), deniedBy(reason.cause) ?? [], ...about].flat().join(", ")
}

/** Postgres is short of something, such as connections. */
const isShort = (error: SqlError) => codeOf(error).startsWith("53")

/** Whether no connection could be made, for another reason than that all are taken. */
export const isUnreachable = (error: SqlError): boolean => error.reason.operation === "connect" && !isShort(error)

/** Whether the database is there, and had no time or no room for the statement. */
export const isBusy = (error: SqlError): boolean =>
  isShort(error) || /^(StatementTimeout|LockTimeout|Deadlock|Serialization)Error$/.test(error.reason._tag)

/** True if the database is reachable and refuses the statement: a privilege, table or function is missing. */
export const isRefusal = (error: SqlError): boolean =>
  error.reason.operation !== "connect" && codeOf(error).startsWith("42")

/** A replica ends a read that its primary's changes overtake, such as those of a vacuum. */
const isOvertaken = (error: SqlError) => error.reason._tag === "SerializationError"

/** A read, once more after the replica has ended it: in the same time, if that is limited around this. */
export const retryOvertaken = <A, R>(read: Effect.Effect<A, SqlError, R>): Effect.Effect<A, SqlError, R> =>
  Effect.catchIf(read, isOvertaken, () => read)
