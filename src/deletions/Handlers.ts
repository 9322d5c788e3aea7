/** The endpoints of deletion tasks, over `SenderTasks`. */
import { Effect, Predicate, Result } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentOrganization } from "../api/Authorization.ts"
import { DataApi } from "../api/DataApi.ts"
import { type GetRequest, type SearchRequest, State } from "../api/DeletionTasks.ts"
import { TaskIdRequired } from "../api/Errors.ts"
import * as Instant from "../api/records/Instant.ts"
import { pageOf } from "../api/records/Requests.ts"
import { taskIdOf } from "./Delivery.ts"
import { SenderTasks } from "./SenderTasks.ts"

/** The id of the requested task. That of a delivery is derived from its key. */
const idOf = Effect.fnUntraced(function* ({ idempotency_key, task_id }: GetRequest) {
  const [given, ...others] = [task_id, idempotency_key].filter(Predicate.isNotNullish)
  if (given === undefined || others.length > 0 || given.trim() === "") return yield* new TaskIdRequired()
  return task_id ?? taskIdOf(yield* CurrentOrganization.id, given)
})

/** The criteria of a request. No task is in an unknown state. */
const criteriaOf = ({ scheduled_since = null, state = null }: SearchRequest) => ({
  states: State.literals.filter((each) => state === null || state === each),
  scheduledSince: scheduled_since === null ? undefined : Result.getOrUndefined(Instant.parse(scheduled_since))
})

export const tasks = HttpApiBuilder.group(DataApi, "deletion-tasks", (handlers) =>
  Effect.map(SenderTasks, (reads) =>
    handlers.handleAll({
      search: Effect.fnUntraced(function* ({ payload }) {
        yield* CurrentOrganization.check(payload)
        return { body: yield* reads.search(criteriaOf(payload), yield* pageOf(payload)) }
      }),
      get: Effect.fnUntraced(function* ({ payload }) {
        yield* CurrentOrganization.check(payload)
        return yield* reads.get(yield* idOf(payload))
      })
    })
  )
)
