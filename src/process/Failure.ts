/** What a process prints when it cannot start or do what it was asked: one line that names what to change, and no secret. */
import { Predicate, Schema, SchemaIssue } from "effect"
import type { ConfigError } from "effect/Config"
import type { ServeError } from "effect/http/HttpServerError"
import type { MigrationError } from "effect/sql/Migrator"
import type { SqlError } from "effect/sql/SqlError"
import { note } from "./Printed.ts"

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

const configuration = ({ cause }: ConfigError) =>
  Schema.isSchemaError(cause)
    ? issuesOf(cause.issue)
        .issues.map(({ path = [], message }) => `${path.map(String).join(".")}: ${message}`)
        .join("; ")
    : cause.message

const reasonOf = (cause: unknown) => (Predicate.isError(cause) ? cause.message : String(cause))

/** An error whose message is meant for the user as it is. */
interface Explained<Tag extends string> {
  readonly _tag: Tag
  readonly message: string
}

/** Why a process cannot start. */
export type Failure =
  | ConfigError
  | Explained<"CannotListen">
  | Explained<"EmbeddedDatabaseError">
  | MigrationError
  | ServeError
  | SqlError

/** Why a process cannot start, or a command did not do what it was asked. */
type AnyFailure = Failure | Explained<"NotMigrated"> | Explained<"Refused">

const database = "The database (of DATABASE_URL or CREDENTIALS_DATABASE_URL, or the embedded one)"

/** Why a database failed, in its own words or the driver's. */
export const sqlReason = ({ reason }: SqlError) => reasonOf(reason.cause)

const sqlFailure = (error: SqlError) =>
  error.reason._tag === "ConnectionError"
    ? `${database} does not answer: ${sqlReason(error)}`
    : `${database} refuses: ${sqlReason(error)}`

/** A failure in one line, without a secret. */
export const explain = (failure: AnyFailure): string => {
  switch (failure._tag) {
    case "ConfigError":
      return `The configuration is wrong. ${configuration(failure)}`
    case "CannotListen":
    case "EmbeddedDatabaseError":
    case "NotMigrated":
    case "Refused":
      return failure.message
    case "MigrationError":
      return `${failure.message}: ${reasonOf(failure.cause)}`
    case "ServeError":
      if (Predicate.hasProperty(failure.cause, "code") && failure.cause.code === "ENOTSUP")
        return "This system cannot share a port among processes. Leave PROCESSES unset, and start several processes on ports of their own behind a load balancer."
      return `The server cannot listen: ${reasonOf(failure.cause)}. Choose another address with HOST and PORT.`
    case "SqlError":
      return sqlFailure(failure)
  }
}

/** Prints a failure to standard error. */
export const report = (failure: AnyFailure) => note(explain(failure))
