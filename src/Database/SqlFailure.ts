/** What a failed statement says of the database. */
import { Predicate } from "effect"
import type { SqlError } from "effect/sql/SqlError"

/** What went wrong, for the log: no parameter, no address and no row. */
export const reasonOf = ({ reason }: SqlError): string =>
  `${reason._tag}: ${Predicate.isError(reason.cause) ? reason.cause.message : reason.message}`

/** The SQLSTATE with which Postgres refused; empty where it did not come to that. */
export const codeOf = ({ reason: { cause } }: SqlError): string =>
  Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) ? cause.code : ""

/** Postgres is short of something, such as connections. */
const isShort = (error: SqlError) => codeOf(error).startsWith("53")

/** Whether no connection could be made, for another reason than that all are taken. */
export const isUnreachable = (error: SqlError): boolean => error.reason.operation === "connect" && !isShort(error)

/** Whether the database is there, and had no time or no room for the statement. */
export const isBusy = (error: SqlError): boolean =>
  isShort(error) || /^(StatementTimeout|LockTimeout|Deadlock|Serialization)Error$/.test(error.reason._tag)
