/** What a process says when it cannot start: one line that names what to change, and no secret. */
import { Console, Predicate, Schema, SchemaIssue } from "effect"
import type { ConfigError } from "effect/Config"
import type { ServeError } from "effect/http/HttpServerError"
import type { MigrationError } from "effect/sql/Migrator"
import type { SqlError } from "effect/sql/SqlError"
import type { EmbeddedDatabaseError } from "./Database/Embedded.ts"

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

const configuration = ({ cause }: ConfigError) =>
  Schema.isSchemaError(cause)
    ? issuesOf(cause.issue)
        .issues.map(({ path = [], message }) => `${path.map(String).join(".")}: ${message}`)
        .join("; ")
    : cause.message

const reasonOf = (cause: unknown) => (Predicate.isError(cause) ? cause.message : String(cause))

/** Why a process cannot start. */
export type Failure = ConfigError | EmbeddedDatabaseError | MigrationError | ServeError | SqlError

const explain = (failure: Failure): string => {
  switch (failure._tag) {
    case "ConfigError":
      return `The configuration is wrong. ${configuration(failure)}`
    case "EmbeddedDatabaseError":
      return failure.message
    case "MigrationError":
      return `${failure.message}: ${reasonOf(failure.cause)}`
    case "ServeError":
      if (Predicate.hasProperty(failure.cause, "code") && failure.cause.code === "ENOTSUP")
        return "This system cannot share a port among processes. Leave WORKERS unset, and start several processes on ports of their own behind a load balancer."
      return `The server cannot listen: ${reasonOf(failure.cause)}. Choose another address with HOST and PORT.`
    case "SqlError":
      return `The database of DATABASE_URL or CREDENTIALS_DATABASE_URL does not answer: ${reasonOf(failure.reason.cause)}`
  }
}

/** Says why on standard error. */
export const report = (failure: Failure) => Console.error(explain(failure))
