/**
 * What the operators' page reads from the databases and changes there: bounded, in little time, and with the reason where
 * it cannot.
 */
import { Context, type Effect, Layer, type Option } from "effect"
import type { Replay } from "../deletions/TaskAdmin.ts"
import type { ApiKey } from "../keys/ApiKeys.ts"
import type { Actor, Entry } from "./AuditLog.ts"
import type { Page, ShownTask, TaskCounts, TaskFilter, TaskPage, Transaction, Unreadable } from "./OperatorRows.ts"
import * as Memory from "./OperatorStoreMemory.ts"
import * as Postgres from "./OperatorStorePostgres.ts"

type Read<A> = Effect.Effect<A, Unreadable>

export class OperatorStore extends Context.Service<
  OperatorStore,
  {
    readonly taskCounts: Read<TaskCounts>
    /**
     * A page of tasks. Of all organizations, the scheduled and the running: those that are due first come first; the
     * dead: those that died last. All others: those that were scheduled for the latest time.
     *
     * @param after where the page before ended; a text that is no such place means the beginning
     */
    readonly tasks: (filter: TaskFilter, after: string | undefined) => Read<TaskPage>
    /** The tasks with this id, or of deliveries with this Idempotency-Key, at most a page of them. */
    readonly findTasks: (text: string, organization: string | undefined) => Read<TaskPage>
    readonly task: (organization: string, id: string) => Read<Option.Option<ShownTask>>
    /** The latest entries about a key, a secret or a task, newest first. */
    readonly history: (organization: string, target: string) => Read<ReadonlyArray<Entry>>
    /** API keys by organization, without what would open anything. */
    readonly keys: (organization: string | undefined, after: string | undefined) => Read<Page<ApiKey>>
    /** The audit log, newest first. */
    readonly audit: (after: string | undefined) => Read<Page<Entry>>
    /** What holds the changes back, oldest first. */
    readonly holders: Read<ReadonlyArray<Transaction>>
    /** Replays a dead task, and writes it to the audit log. */
    readonly replay: (actor: Actor, organization: string, id: string) => Read<Replay>
  }
>()("practice-data/operations/OperatorStore") {
  /** From the databases of tasks and of API keys. */
  static readonly layer = Layer.effect(OperatorStore, Postgres.make)

  /** The fake: what it is given. Without a value, nothing can be read. */
  static readonly layerMemory = (given: Memory.Memory) => Layer.sync(OperatorStore, () => Memory.make(given))
}
