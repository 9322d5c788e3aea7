/** What the operators' page reads and changes, of what a test has made up. */
import { Array, DateTime, Effect, Option, Order } from "effect"
import { taskIdOf } from "../deletions/Delivery.ts"
import { Replay } from "../deletions/TaskAdmin.ts"
import type { ApiKey } from "../keys/ApiKeys.ts"
import { type Actor, type Entry, latestFirst } from "./AuditLog.ts"
import { type Page, pageSize, type ShownTask, type TaskFilter, type Transaction, Unreadable } from "./OperatorRows.ts"

/** What there is. */
export interface Memory {
  readonly tasks?: ReadonlyArray<ShownTask>
  readonly keys?: ReadonlyArray<ApiKey>
  readonly audit?: ReadonlyArray<Entry>
  readonly holders?: ReadonlyArray<Transaction>
}

/** What was given, or that it was not. */
const read = <A>(find: () => A | undefined) =>
  Effect.suspend(() => {
    const found = find()
    return found === undefined
      ? Effect.fail(new Unreadable({ message: "There is no such store" }))
      : Effect.succeed(found)
  })

/** The page that begins at a place: the number of rows before it. */
const paged =
  (after: string | undefined) =>
  <A>(rows: ReadonlyArray<A>): Page<A> => {
    const start = after !== undefined && /^\d{1,9}$/.test(after) ? Number(after) : 0
    const end = start + pageSize
    return { rows: rows.slice(start, end), next: end < rows.length ? String(end) : undefined }
  }

const whole = <A>(page: Page<A>) => ({ ...page, isPartial: false })

const byTexts = <A>(texts: (row: A) => ReadonlyArray<string>) => Order.mapInput(Order.Array(Order.String), texts)

const orderOf = ({ organization, state }: TaskFilter): Order.Order<ShownTask> => {
  const isOfState = organization === undefined && state !== undefined && state !== "completed"
  const timeOf = (task: ShownTask) => (isOfState ? (task.due_at ?? task.finished_at ?? "") : task.scheduled_for)
  const ascending = byTexts((task: ShownTask) => [timeOf(task), task.organization_id, task.id])
  return isOfState && state !== "dead" ? ascending : Order.flip(ascending)
}

const isOf = (organization: string | undefined) => (row: { readonly organization_id: string }) =>
  organization === undefined || row.organization_id === organization

const isAt = (organization: string, id: string) => (task: ShownTask) =>
  task.organization_id === organization && task.id === id.toLowerCase()

/** The fake. */
export const make = (given: Memory) => {
  let { audit, tasks } = given
  const allTasks = read(() => tasks)

  const replay = Effect.fnUntraced(function* ({ name, source }: Actor, organization: string, id: string) {
    const all = yield* allTasks
    const task = all.find(isAt(organization, id))
    if (task === undefined) return Replay.NotFound()
    const { state } = task
    const at = DateTime.formatIso(yield* DateTime.now)
    const result = state === "dead" ? "replayed" : `left as it is: ${state}`
    const of = { organization_id: organization, id: String(audit?.length), action: "task.replay", target: task.id }
    audit = [...(audit ?? []), { ...of, at, actor: name, source, result }]
    if (state !== "dead") return Replay.NotDead({ organization, state })
    const replayed = { ...task, state: "scheduled", attempts: 0, due_at: at, finished_at: null } as const
    tasks = all.map((one) => (one === task ? replayed : one))
    return Replay.Replayed({ organization })
  })

  return {
    taskCounts: Effect.map(allTasks, (all) => {
      const count = (state: ShownTask["state"]) => all.filter((task) => task.state === state).length
      const due = Array.sort(Array.getSomes(all.map(({ due_at }) => Option.fromNullishOr(due_at))), Order.String)
      return {
        scheduled: count("scheduled"),
        running: count("running"),
        dead: count("dead"),
        oldest_due_at: due[0] ?? null,
        estimated: all.length
      }
    }),
    tasks: (filter: TaskFilter, after: string | undefined) =>
      Effect.map(allTasks, (all) => {
        const found = all.filter(isOf(filter.organization)).filter(({ state }) => (filter.state ?? state) === state)
        return whole(paged(after)(found.toSorted(orderOf(filter))))
      }),
    findTasks: (text: string, organization: string | undefined) =>
      Effect.map(allTasks, (all) => {
        const ids = (owner: string) => [text.toLowerCase(), taskIdOf(owner, text)]
        const found = all.filter(isOf(organization)).filter((task) => ids(task.organization_id).includes(task.id))
        return whole({ ...paged(undefined)(found), next: undefined })
      }),
    task: (organization: string, id: string) => Effect.map(allTasks, Array.findFirst(isAt(organization, id))),
    history: (organization: string, target: string) =>
      Effect.map(
        read(() => audit),
        (all) =>
          latestFirst(all.filter((entry) => isOf(organization)(entry) && entry.target === target)).slice(0, pageSize)
      ),
    keys: (organization: string | undefined, after: string | undefined) =>
      Effect.map(
        read(() => given.keys),
        (all) => {
          const found = all.filter(isOf(organization))
          return paged(after)(found.toSorted(byTexts((key: ApiKey) => [key.organization_id, key.id])))
        }
      ),
    audit: (after: string | undefined) =>
      Effect.map(
        read(() => audit),
        (all) => paged(after)(latestFirst(all))
      ),
    holders: read(() => given.holders),
    replay
  }
}
