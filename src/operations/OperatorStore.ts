/**
 * The reads of the operators' pages, over the databases of tasks and API keys. Each is bounded, ends within two seconds,
 * and fails with a text for a person.
 */
import { Context, Duration, Effect, Layer, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { CredentialDatabase, type Database, TaskDatabase } from "../database/Database.ts"
import { describe, type Failure } from "../database/SqlFailure.ts"
import * as Facts from "../deletions/Facts.ts"
import * as Tasks from "../deletions/OperatorTasks.ts"
import * as ApiKeys from "../keys/ApiKeys.ts"
import * as SigningSecrets from "../keys/SigningSecrets.ts"
import * as Commands from "./Commands.ts"

/** A read that failed, as the status of its response and a sentence for a person. */
export class Problem extends Schema.TaggedError<Problem>()("Problem", { status: Schema.Int, message: Schema.String }) {}

export const problem = (status: number, message: string) => new Problem({ status, message })

export const mostRows = 100

/** The most rows that are read, of which the last one shows that there are more. */
const limit = mostRows + 1

const firstRows = <A>(rows: ReadonlyArray<A>) => ({
  rows: rows.slice(0, mostRows),
  isPartial: rows.length > mostRows
})

/** The first rows of a list. `isPartial`: true if there are more. */
export type FirstRows<A> = ReturnType<typeof firstRows<A>>

/** Reads of a store, in their turn and in time. */
const reader =
  <R>(services: Context.Context<R>, database: Database, store: string) =>
  <A>(statements: Effect.Effect<A, SqlError, R>): Effect.Effect<A, Problem> =>
    database.run(
      {
        key: "operators",
        within: Duration.millis(1500),
        unavailable: (failure: Failure) => problem(503, `The ${store} store ${describe(failure)}.`)
      },
      Effect.provideContext(statements, services)
    )

const make = Effect.gen(function* () {
  const services = yield* Effect.context<TaskDatabase | CredentialDatabase>()
  const sql = yield* TaskDatabase
  const readTasks = reader(services, sql, "task")
  const readKeys = reader(services, yield* CredentialDatabase, "credential")
  const readBoth = reader(services, sql, "task or credential")

  return {
    taskCounts: readTasks(Tasks.counts(sql)),
    /** The deletions that ended in the last day, by hour and state. */
    lastDay: readTasks(Tasks.lastDay(sql)),
    tasks: (filter: Tasks.TaskFilter) => Effect.map(readTasks(Tasks.list(filter, limit)), firstRows),
    /** Finds tasks by their id or the Idempotency-Key of their delivery. */
    findTasks: (text: string, organization: string | undefined) =>
      Effect.map(readTasks(Tasks.find(text, organization, limit)), firstRows),
    task: (organization: string, id: string) =>
      Effect.flatMap(
        readTasks(Tasks.show({ organization, id })),
        Effect.fromOption(() => problem(404, "No deletion of this organization has this id."))
      ),
    /** The first items of a task, and the numbers of all. */
    items: (organization: string, id: string) =>
      Effect.map(readTasks(Facts.ofTask(organization, id, limit)), ({ counts, items }) => ({
        counts,
        ...firstRows(items)
      })),
    keys: (organization: string | undefined) => Effect.map(readKeys(ApiKeys.list(organization, limit)), firstRows),
    secrets: (organization: string | undefined) =>
      Effect.map(readTasks(SigningSecrets.list(organization, limit)), firstRows),
    /** The audit log, newest first. */
    audit: (filter: Parameters<typeof Commands.auditLog>[0]) =>
      Effect.map(readBoth(Commands.auditLog(filter, limit)), firstRows)
  }
})

export class OperatorStore extends Context.Service<OperatorStore, Effect.Success<typeof make>>()(
  "practice-data/operations/OperatorStore"
) {
  static readonly layer = Layer.effect(OperatorStore, make)
}
