/** `/ops/audit`: the changes by operators, newest first. */
import type { Entry } from "../Commands.ts"
import * as Format from "../Format.ts"
import { id, small } from "../Layout.ts"
import { OperatorStore } from "../OperatorStore.ts"
import { list as listOf } from "../Page.ts"
import { linkTo } from "./Deletions.ts"

export const list = listOf<Entry>({
  place: "/ops/audit",
  filters: { organization: ["Organization"], target: ["Id of a key, secret or task"] },
  read: (filter) => OperatorStore.use(({ audit }) => audit(filter)),
  columns: (now) => ({
    When: ({ at }) => Format.moment(at, now),
    Who: ({ actor, source }) => [actor, " ", small(source)],
    What: ({ action }) => id(action),
    Result: ({ result }) => result,
    Target: ({ action, organization_id, target }) =>
      id(target, action.startsWith("task.") ? linkTo({ organization_id, id: target }) : undefined),
    Organization: ({ organization_id: of }) => id(of)
  })
})
