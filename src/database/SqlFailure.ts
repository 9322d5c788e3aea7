/** Failed statements: their classification, and transactions that fail with the errors of their statements. */
import { Data, Deferred, Effect, Predicate } from "effect"
import type { SqlClient } from "effect/sql"
import { ConnectionError, isSqlError, SqlError } from "effect/sql/SqlError"

export const connectFailure = (message: string) =>
  new SqlError({ reason: new ConnectionError({ cause: new Error(message), message, operation: "connect" }) })

/** The words of an error for people, which may quote values. */
export const sqlMessage = ({ reason }: SqlError) =>
  reason.cause instanceof Error ? reason.cause.message : reason.message

/** A text of a refusal; empty without one. */
const causeText = (cause: unknown, field: string) => {
  const value: unknown = Predicate.hasProperty(cause, field) ? cause[field] : undefined
  return Predicate.isString(value) ? value : ""
}

/** The SQLSTATE of a refusal, or the system's code of a failed connection; empty without one. */
export const errorCode = ({ reason }: SqlError): string => causeText(reason.cause, "code")

/** An undefined table, or column. */
export const isUndefined = (error: SqlError) => /^42(P01|703)$/.test(errorCode(error))

/**
 * The reason of a failure, to log and to store: its kind and code, with the constraint, table and column. Other texts are
 * left out, since they may quote a row or a parameter.
 */
export const safeReason = (error: SqlError): string => {
  const { cause, _tag, message } = error.reason
  const code = errorCode(error)
  // Without a code it is the driver's error, in words of its own.
  const words = code === "" && _tag === "ConnectionError" ? message : code
  // Only these messages of Postgres hold nothing but the name of an object.
  const denied = causeText(cause, "routine").startsWith("aclcheck_error") ? causeText(cause, "message") : ""
  const about = ["constraint", "table", "column"].filter((field) => causeText(cause, field) !== "")
  const parts = [`${_tag} ${words}`.trim(), denied, ...about.map((field) => `${field} ${causeText(cause, field)}`)]
  return parts.filter((part) => part !== "").join(", ")
}

/** Postgres is short of something, such as connections; or a pooler, which has no code for it. */
export const isShort = (error: SqlError): boolean =>
  errorCode(error).startsWith("53") || /connections (allowed|exceeded) \(max_/.test(sqlMessage(error))

/** True if no connection could be made, for another reason than that all are taken. */
export const isUnreachable = (error: SqlError): boolean => error.reason.operation === "connect" && !isShort(error)

/** True if others hold what the statement needs: a serialization failure, a deadlock, or a lock timeout. */
export const isContended = (error: SqlError): boolean => /^(40001|40P01|55P03)$/.test(errorCode(error))

/** The server takes no writes: it is a standby, perhaps since a moment ago. Its connections are as good as lost. */
export const isReadOnly = (error: SqlError): boolean => errorCode(error) === "25006"

/** True if no connection could be made, or it was lost. Class 08 from a server is its answer. */
export const isLost = (error: SqlError): boolean =>
  isUnreachable(error) ||
  isReadOnly(error) ||
  (error.reason._tag === "ConnectionError" && !errorCode(error).startsWith("08"))

/** Classifies a failure: no time or room for the statement, a statement that is refused, or no working database. */
const failureKind = (error: SqlError) => {
  const { _tag, operation } = error.reason
  if (isShort(error) || isContended(error) || _tag === "StatementTimeoutError") return "Busy"
  // A privilege, table or function is missing.
  return operation !== "connect" && errorCode(error).startsWith("42") ? "Refused" : "Unreachable"
}

/** The reason why a statement has no result. */
export type Failure = Data.TaggedEnum<{
  /** The database is up, and had no time for the statement. */
  Busy: { readonly reason: string }
  /** The database refuses the statement, for lack of a privilege or a migration. */
  Refused: { readonly reason: string }
  /** The database cannot be reached, or does not work. */
  Unreachable: { readonly reason: string }
}>
export const Failure = Data.taggedEnum<Failure>()

/** The predicate of a sentence about a database without a result. */
export const describe = Failure.$match({
  Busy: () => "does not answer in time",
  Refused: () => "refuses the service",
  Unreachable: () => "cannot be reached"
})

export const toFailure = (error: SqlError): Failure => Failure[failureKind(error)]({ reason: safeReason(error) })

/**
 * Retries a read once that a replica has ended, since changes of its primary overtook it, such as those of a vacuum. The
 * replica cancels the statement, or closes the connection while it reads the messages of a statement.
 */
export const retryOvertaken = <A, R>(read: Effect.Effect<A, SqlError, R>): Effect.Effect<A, SqlError, R> =>
  Effect.catchIf(
    read,
    (error) => error.reason._tag === "SerializationError" || (isLost(error) && !isUnreachable(error)),
    () => read
  )

/** Runs statements in a transaction. When the connection is lost, it fails with their error: to roll back would be a defect. */
export const inTransaction = Effect.fnUntraced(function* <A, E, R>(
  sql: SqlClient.SqlClient,
  statements: Effect.Effect<A, E, R>
) {
  const failed = yield* Deferred.make<never, E>()
  const noted = Effect.tapError(statements, (error) => Deferred.fail(failed, error))
  return yield* Effect.catchDefect(sql.withTransaction(noted), (defect): Effect.Effect<never, E | SqlError> => {
    if (!isSqlError(defect)) return Effect.die(defect)
    return Deferred.isDoneUnsafe(failed) ? Deferred.await(failed) : Effect.fail(defect)
  })
})

/** Lets a transaction last, and each of its statements: a pool limits those of requests, and Postgres 17 and later all. */
export const lasting = (sql: SqlClient.SqlClient) => sql`
  select set_config(name, '0', true) from pg_settings where name in ('statement_timeout', 'transaction_timeout')`

/** Runs statements in a transaction, however long it takes. */
export const inLongTransaction = <A, E, R>(sql: SqlClient.SqlClient, statements: Effect.Effect<A, E, R>) =>
  inTransaction(sql, Effect.andThen(lasting(sql), statements))
