/** The endpoints of the deletion tasks. */
import { Effect, Predicate, Result } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { DataApi } from "../api/DataApi.ts"
import { type GetRequest, type SearchRequest, State } from "../api/DeletionTasks.ts"
import { TaskIdRequired } from "../api/Errors.ts"
import * as Instant from "../api/records/Instant.ts"
import { pageOf } from "../records/Handlers.ts"
import { taskIdOf } from "./Delivery.ts"
import { TaskReads } from "./TaskReads.ts"
import type { Criteria } from "./TaskReadsPostgres.ts"

/** What a request asks for. A text that is no state is none's. */
const criteriaOf = ({ scheduled_since = null, state = null }: SearchRequest): Criteria => ({
  states: State.literals.filter((each) => state === null || state === each),
  scheduledSince: scheduled_since === null ? undefined : Result.getOrUndefined(Instant.parse(scheduled_since))
})

/** The id of the task that a request asks for. That of a delivery is derived from its key. */
const idOf = Effect.fnUntraced(function* ({ idempotency_key, task_id }: GetRequest) {
  const [given, ...others] = [task_id, idempotency_key].filter(Predicate.isNotNullish)
  if (given === undefined || others.length > 0 || given.trim() === "") return yield* new TaskIdRequired()
  return task_id ?? taskIdOf(yield* CurrentOrganization.id, given)
})

export const layer = HttpApiBuilder.group(DataApi, "deletion-tasks", (handlers) =>
  Effect.map(TaskReads, (tasks) =>
    handlers.handleAll({
      search: Effect.fnUntraced(function* ({ payload }) {
        yield* CurrentOrganization.check(payload)
        const page = yield* pageOf(payload)
        return { body: yield* tasks.search(criteriaOf(payload), page) }
      }),
      get: Effect.fnUntraced(function* ({ payload }) {
        yield* CurrentOrganization.check(payload)
        return yield* tasks.get(yield* idOf(payload))
      })
    })
  )
)
