/**
 * What the operators' page reads from the databases and changes there: bounded, in little time, and with the reason where
 * it cannot.
 */
import { Context, Effect, Layer, Option } from "effect"
import { taskIdOf } from "../deletions/Delivery.ts"
import { Replay } from "../deletions/TaskAdmin.ts"
import type { ApiKey } from "../keys/ApiKeys.ts"
import type { Actor, Entry } from "./AuditLog.ts"
import {
  type Page,
  type ShownTask,
  type TaskCounts,
  type TaskFilter,
  type TaskPage,
  type Transaction,
  Unreadable
} from "./OperatorRows.ts"
import * as Postgres from "./OperatorStorePostgres.ts"

type Read<A> = Effect.Effect<A, Unreadable>

/** What the fake was given, or that it was not. */
const of = <A>(found: A | undefined): Read<A> =>
  found === undefined ? Effect.fail(new Unreadable({ message: "There is no such store" })) : Effect.succeed(found)

const paged = <A>(rows: ReadonlyArray<A>) => ({ rows, next: undefined })

export class OperatorStore extends Context.Service<
  OperatorStore,
  {
    readonly taskCounts: Read<TaskCounts>
    /**
     * A page of tasks. Those that are scheduled or running: those that are due first come first. The dead of all
     * organizations: those that died last. All others: those that were scheduled for the latest time.
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

  /** The fake: what it is given, each list in one page. Without a value, nothing can be read. */
  static readonly layerMemory = (given: Memory) => {
    const tasks = of(given.tasks)
    return Layer.succeed(
      OperatorStore,
      OperatorStore.of({
        taskCounts: Effect.map(tasks, (all) => ({
          scheduled: all.filter(({ state }) => state === "scheduled").length,
          running: all.filter(({ state }) => state === "running").length,
          dead: all.filter(({ state }) => state === "dead").length,
          oldest_due_at:
            all
              .flatMap(({ due_at }) => (due_at === null ? [] : [due_at]))
              .toSorted()
              .at(0) ?? null,
          estimated: all.length
        })),
        tasks: ({ organization, state }) =>
          Effect.map(tasks, (all) => ({
            ...paged(
              all.filter(
                (task) =>
                  (state === undefined || task.state === state) &&
                  (organization === undefined || task.organization_id === organization)
              )
            ),
            isPartial: false
          })),
        findTasks: (text, organization) =>
          Effect.map(tasks, (all) => ({
            ...paged(
              all.filter(
                (task) =>
                  (organization === undefined || task.organization_id === organization) &&
                  (task.id === text || task.id === taskIdOf(task.organization_id, text))
              )
            ),
            isPartial: false
          })),
        task: (organization, id) =>
          Effect.map(tasks, (all) =>
            Option.fromNullishOr(all.find((task) => task.organization_id === organization && task.id === id))
          ),
        history: (organization, target) =>
          Effect.map(of(given.audit), (all) =>
            all.filter((entry) => entry.organization_id === organization && entry.target === target)
          ),
        keys: (organization) =>
          Effect.map(of(given.keys), (all) =>
            paged(all.filter((key) => organization === undefined || key.organization_id === organization))
          ),
        audit: () => Effect.map(of(given.audit), paged),
        holders: of(given.holders),
        replay: (_, organization, id) =>
          Effect.map(tasks, (all) => {
            const task = all.find((one) => one.organization_id === organization && one.id === id)
            if (task === undefined) return Replay.NotFound()
            return task.state === "dead"
              ? Replay.Replayed({ organization })
              : Replay.NotDead({ organization, state: task.state })
          })
      })
    )
  }
}

/** What the fake has. */
export interface Memory {
  readonly tasks?: ReadonlyArray<ShownTask>
  readonly keys?: ReadonlyArray<ApiKey>
  readonly audit?: ReadonlyArray<Entry>
  readonly holders?: ReadonlyArray<Transaction>
}
