/**
 * The databases of the service: the one that holds the records and the tasks, and the one that holds the API keys. They
 * are often the same server, and always clients of their own, so that one can be down alone. (The embedded database is
 * a single session, so there all are the same client.)
 */
import { PgClient } from "@effect/sql-pg"
import { Context, Duration, Effect, Fiber, Layer, Predicate, Redacted } from "effect"
import type { SqlError } from "effect/sql/SqlError"

/** The database of the records. */
export class RecordDatabase extends Context.Service<RecordDatabase, PgClient.PgClient>()(
  "practice-data/Database/Database/RecordDatabase"
) {}

/** The database of the API keys. */
export class CredentialDatabase extends Context.Service<CredentialDatabase, PgClient.PgClient>()(
  "practice-data/Database/Database/CredentialDatabase"
) {}

/** The database of the records, for the intake and the worker: a pool of their own beside that of the reads. */
export class TaskDatabase extends Context.Service<TaskDatabase, PgClient.PgClient>()(
  "practice-data/Database/Database/TaskDatabase"
) {}

/** How to reach a Postgres. */
export interface Options {
  readonly url: Redacted.Redacted
  readonly applicationName: string
  /** How many connections to keep open at most. */
  readonly maxConnections: number
  /** After how long the server gives up on a statement. */
  readonly statementTimeout: Duration.Input
  /** Whether the server looks out for a client that died, to end its statement and free its locks. */
  readonly watchesClient?: boolean
  /** Settings of each session, by name. */
  readonly settings?: Readonly<Record<string, string>>
}

/**
 * The planner's settings for searches: rows are read in the order of an index, and never gathered and sorted. That would
 * do for few rows and be far too slow for many, and a plan that is made for all organizations cannot know which it is.
 */
export const inOrder = { enable_bitmapscan: "off", enable_seqscan: "off" } as const

/**
 * A pool of connections to a Postgres. Connections open when they are needed, so that a database that is down keeps
 * nobody from starting, and one that comes back is found by the next query.
 */
export const connect = (options: Options) =>
  PgClient.make({
    url: options.url,
    applicationName: options.applicationName,
    maxConnections: options.maxConnections,
    connectTimeout: "1 second",
    maxMessageSize: 256 * 1024 * 1024,
    startupParameters: {
      TimeZone: "UTC",
      statement_timeout: String(Duration.toMillis(options.statementTimeout)),
      ...(options.watchesClient === true ? { client_connection_check_interval: "500" } : {}),
      ...options.settings
    }
  })

/** All databases on the one client that there is. */
export const layerShared = (client: PgClient.PgClient) =>
  Layer.mergeAll(
    Layer.succeed(RecordDatabase, client),
    Layer.succeed(CredentialDatabase, client),
    Layer.succeed(TaskDatabase, client)
  )

const named = (cause: unknown, field: string): string | undefined => {
  const value: unknown = Predicate.hasProperty(cause, field) ? cause[field] : undefined
  return Predicate.isString(value) && value !== "" ? value : undefined
}

/** The SQLSTATE of a database's refusal, or the system's code of a connection that failed; nothing where there is none. */
export const codeOf = ({ reason }: SqlError): string | undefined => named(reason.cause, "code")

/**
 * What went wrong, for what is logged and stored: its kind and code, and the constraint, table and column it is about.
 * The text of a database's exception is left out, since it may quote a row or a parameter.
 */
export const reasonOf = (error: SqlError): string => {
  const { reason } = error
  const code = codeOf(error)
  // Without a code it is not from the database, and these words are the driver's own.
  const words = code === undefined && reason._tag === "ConnectionError" ? reason.message : undefined
  const about = ["constraint", "table", "column"].flatMap((field) => {
    const name = named(reason.cause, field)
    return name === undefined ? [] : [`${field} ${name}`]
  })
  return [[reason._tag, code ?? words].filter(Predicate.isNotUndefined).join(" "), ...about].join(", ")
}

/** Whether two clients are of the same database. */
export const isSameDatabase = (one: PgClient.PgClient, another: PgClient.PgClient): boolean =>
  one === another ||
  (one.config.url !== undefined &&
    another.config.url !== undefined &&
    Redacted.value(one.config.url) === Redacted.value(another.config.url))

/**
 * Answers in time whatever has become of the connection: an interrupted query waits until its server has noticed, so
 * one that runs out of time is left to finish on its own.
 */
export const within = <E2>(duration: Duration.Input, onTimeout: () => E2) =>
  Effect.fnUntraced(function* <A, E, R>(query: Effect.Effect<A, E, R>) {
    const fiber = yield* Effect.forkDetach(query, { startImmediately: true })
    return yield* Fiber.join(fiber).pipe(
      Effect.timeoutOrElse({
        duration,
        orElse: () => Effect.andThen(Effect.logWarning("A database did not answer in time"), Effect.fail(onTimeout()))
      }),
      Effect.onExit(() => Effect.sync(() => fiber.interruptUnsafe()))
    )
  })
