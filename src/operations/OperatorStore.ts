/**
 * The reads and changes of the operators' pages, over the databases of tasks and API keys. Each is bounded, ends within
 * two seconds, and fails with a text for a person.
 */
import { Context, Duration, Effect, flow, Layer, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { CredentialDatabase, type Database, isSameDatabase, TaskDatabase } from "../database/Database.ts"
import * as Store from "../database/Store.ts"
import * as Facts from "../deletions/Facts.ts"
import * as Tasks from "../deletions/OperatorTasks.ts"
import * as ApiKeys from "../keys/ApiKeys.ts"
import * as SigningSecrets from "../keys/SigningSecrets.ts"
import * as Commands from "./Commands.ts"

/** A read or a change that failed, as the status of its response and a sentence for a person. */
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

const within = Duration.millis(1500)

/** Runs reads and changes of a store in their turn and in time. */
const runner = <I>(tag: Context.Key<I, Database>, database: Database, store: string) => {
  const run =
    (describe: (failure: Store.Failure) => string) =>
    <A>(statements: Effect.Effect<A, SqlError, I>): Effect.Effect<A, Problem> => {
      const unavailable = (failure: Store.Failure) => problem(503, `The ${store} store ${describe(failure)}`)
      return database.run({ key: "operators", within, unavailable }, Effect.provideService(statements, tag, database))
    }
  const read = run((failure) => `${Store.describe(failure)}.`)
  return {
    read,
    rows: <A>(list: Effect.Effect<ReadonlyArray<A>, SqlError, I>) => Effect.map(read(list), firstRows),
    change: run((failure) =>
      failure._tag === "Refused"
        ? "refuses the service: see its log. Nothing was changed."
        : "did not respond. Check again: the change may have been made."
    )
  }
}

export interface CredentialFilter {
  readonly organization: string | undefined
  readonly id?: string | undefined
}

const make = Effect.gen(function* () {
  const [sql, credentials] = [yield* TaskDatabase, yield* CredentialDatabase]
  const tasks = runner(TaskDatabase, sql, "task")
  const keys = runner(CredentialDatabase, credentials, "credential")

  return {
    taskCounts: tasks.read(Tasks.counts(sql)),
    tasks: (filter: Tasks.TaskFilter) => tasks.rows(Tasks.list(filter, limit)),
    /** Finds tasks by their id or the Idempotency-Key of their delivery. */
    findTasks: (text: string, organization: string | undefined) => tasks.rows(Tasks.find(text, organization, limit)),
    task: (organization: string, id: string) =>
      Effect.flatMap(
        tasks.read(Tasks.details({ organization, id })),
        Effect.fromOption(() => problem(404, "No deletion of this organization has this id."))
      ),
    /** The first items of a task, and the numbers of all. */
    items: (organization: string, id: string) =>
      Effect.map(tasks.read(Facts.ofTask(organization, id, limit)), ({ counts, items }) => ({
        counts,
        ...firstRows(items)
      })),
    countUndoable: flow(Facts.countUndoable, tasks.read),
    keys: ({ id, organization }: CredentialFilter) => keys.rows(ApiKeys.list(organization, { id, limit })),
    secrets: ({ id, organization }: CredentialFilter) => tasks.rows(SigningSecrets.list(organization, { id, limit })),
    /** The audit log, newest first. Changes of API keys are logged in the database of the keys. */
    audit: (filter: Commands.EntryFilter) => {
      const reads = [
        tasks.read(Commands.entries(sql, filter, limit)),
        ...(isSameDatabase(sql, credentials) ? [] : [keys.read(Commands.entries(credentials, filter, limit))])
      ]
      return Effect.map(Effect.all(reads, { concurrency: 2 }), (logs) => firstRows(Commands.latestOf(logs, limit)))
    },
    countDead: flow(Tasks.countDead, tasks.read),
    // Changes are logged.
    replay: flow(Commands.replayTask, tasks.change),
    replayDead: flow(Commands.replayDead, tasks.change),
    cancel: flow(Commands.cancelTask, tasks.change),
    undo: flow(Commands.undoDeletions, tasks.change),
    createKey: flow(
      Commands.createKey,
      keys.change,
      Effect.map(({ id, key: secret }) => ({ id, secret }))
    ),
    revokeKey: flow(Commands.revokeKey, keys.change),
    addSecret: flow(Commands.addSecret, tasks.change),
    revokeSecret: flow(Commands.revokeSecret, tasks.change)
  }
})

export class OperatorStore extends Context.Service<OperatorStore, Effect.Success<typeof make>>()(
  "practice-data/operations/OperatorStore"
) {
  static readonly layer = Layer.effect(OperatorStore, make)
}
