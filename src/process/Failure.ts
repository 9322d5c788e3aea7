/** The end of a process: a failure is explained in one line, without a secret; a second stop signal ends it at once. */
import { constants } from "node:os"
import { inspect } from "node:util"
import { MutableRef, Predicate, Schema, SchemaIssue } from "effect"
import type { ConfigError } from "effect/Config"
import type { ServeError } from "effect/http/HttpServerError"
import { isPlatformError } from "effect/PlatformError"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { note } from "./Printed.ts"

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

const configuration = ({ cause }: ConfigError) =>
  Schema.isSchemaError(cause)
    ? formatIssues(cause.issue)
        .issues.map(({ path = [], message }) => `${path.map(String).join(".")}: ${message}`)
        .join("; ")
    : cause.message

export const errorText = (cause: unknown) => (Predicate.isError(cause) ? cause.message : String(cause))

/** The errors of files that need more words than the system's. */
const fileErrors: Readonly<Record<string, string>> = {
  EACCES: "permission denied. Check that its folder exists and is writable",
  EIO: "the disk fails",
  ENOSPC: "the disk is full. Free some space"
}

/** The reason of a failure with a file, and what to do. */
export const reasonOfFile = (cause: unknown): string => {
  if (isPlatformError(cause) && Predicate.isError(cause.cause)) return reasonOfFile(cause.cause)
  const reason = Predicate.hasProperty(cause, "code") ? fileErrors[String(cause.code)] : undefined
  return reason ?? errorText(cause)
}

/** Explains why a server cannot listen on the address of the variables HOST and PORT, with a prefix or without. */
export const explainListen = (what: string, cause: unknown, prefix = "") =>
  Predicate.hasProperty(cause, "code") && cause.code === "EADDRINUSE" && Predicate.hasProperty(cause, "port")
    ? `Port ${String(cause.port)} is in use. Stop the program that uses it, or choose another port with ${prefix}PORT.`
    : `${what} cannot listen: ${errorText(cause)}. Choose another address with ${prefix}HOST and ${prefix}PORT.`

/** An error whose message is meant for the user as it is. */
interface Explained {
  readonly _tag: "CannotListen" | "EmbeddedDatabaseError" | "NotMigrated" | "Refused" | "Unavailable"
  readonly message: string
}

/** The cause of a migration that failed is an error of its own. */
interface CannotMigrate {
  readonly _tag: "CannotMigrate"
  readonly message: string
  readonly cause?: unknown
}

export type Failure = CannotMigrate | ConfigError | Explained | ServeError | SqlError

/** Explains a failure in one line, without a secret. */
export const explain = (failure: Failure): string => {
  switch (failure._tag) {
    case "ConfigError":
      return `Invalid configuration. ${configuration(failure)}`
    case "CannotMigrate":
      if (failure.cause === undefined) return failure.message
      return `${failure.message}: ${errorText(isSqlError(failure.cause) ? failure.cause.reason.cause : failure.cause)}`
    case "ServeError":
      return explainListen("The server", failure.cause)
    case "SqlError": {
      const answer = failure.reason._tag === "ConnectionError" ? "does not answer" : "refuses"
      return `The database (of DATABASE_URL or CREDENTIALS_DATABASE_URL, or the embedded one) ${answer}: ${errorText(failure.reason.cause)}`
    }
    default:
      return failure.message
  }
}

export const report = (failure: Failure) => note(explain(failure))

/** Reports a defect, with its stack for whoever repairs it. */
export const reportDefect = (defect: unknown) => note(`This is a bug in practice-data: ${inspect(defect)}`.split("\n"))

/**
 * Milliseconds. A sooner signal is a copy of the first: Ctrl-C reaches every process of a terminal, and npm forwards
 * its signals to a program that has received them already.
 */
const duplicateWindow = 300

/** Ends the process at once at the second stop signal, with the exit code of that signal. */
export const endAtSecondSignal = () => {
  const first = MutableRef.make<number | undefined>(undefined)
  const received = (signal: "SIGINT" | "SIGTERM") => {
    const now = performance.now()
    first.current ??= now
    if (now - first.current > duplicateWindow) process.exit(128 + constants.signals[signal])
  }
  process.on("SIGINT", received).on("SIGTERM", received)
}
