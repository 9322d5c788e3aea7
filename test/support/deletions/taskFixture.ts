/** One task of each state, made as the intake and a worker make them. */
import { Context, Duration, Effect, Layer, Option } from "effect"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { show } from "../../../src/deletions/OperatorTasks.ts"
import type { State } from "../../../src/api/DeletionTasks.ts"
import { TestDatabase } from "../TestDatabase.ts"
import { claimAll, delivery, scheduled } from "./tasks.ts"

export const reason = "The clinic's ledger is locked"

/** A delivery of one invoice and one line, with a key. */
export const deliveryWith = (organization: string, key: string) => {
  const items = { invoices: [{ invoice_id: `invoice_${key}` }], invoice_lines: [{ invoice_line_id: `line_${key}` }] }
  return delivery(key, items, organization)
}

const schedule = (organization: string, key: string) =>
  Effect.map(scheduled(deliveryWith(organization, key)), ({ taskId }) => taskId)

/** A task that has failed as often as a task may. Tasks that others have left are claimed and fail in between. */
export const makeDead = Effect.fnUntraced(function* (organization: string, key: string) {
  const scheduler = yield* Scheduler
  const id = yield* schedule(organization, key)
  const attempt = Effect.flatMap(claimAll(), (claims) =>
    Effect.forEach(claims, (claim) => scheduler.fail(claim, reason, Duration.zero))
  )
  yield* Effect.repeat(Effect.andThen(attempt, show({ id, organization })), {
    until: Option.exists(({ state }) => state === "dead")
  })
  return id
})

const make = Effect.gen(function* () {
  const scheduler = yield* Scheduler
  const dead = yield* makeDead("org_a", "dead")
  const completed = yield* schedule("org_a", "completed")
  for (const claim of yield* claimAll()) yield* scheduler.run(claim)
  const running = yield* schedule("org_b", "running")
  yield* claimAll()
  const waiting = yield* Effect.provide(schedule("org_b", "scheduled"), Scheduler.layer(Duration.hours(2)))
  return { dead, completed, running, scheduled: waiting } satisfies Record<Exclude<State, "cancelled">, string>
})

/** The ids of the tasks, by their state. */
export class Tasks extends Context.Service<Tasks, Effect.Success<typeof make>>()(
  "practice-data/test/support/deletions/taskFixture/Tasks"
) {
  static readonly layer = Layer.effect(Tasks, make).pipe(
    Layer.provideMerge(Scheduler.layer(Duration.zero)),
    Layer.provideMerge(TestDatabase.layerDatabases)
  )
}
