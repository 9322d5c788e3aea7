/**
 * The indexes by which claims take organizations in turn and the payloads of old tasks are found, and what the roles need:
 * the intake tells an organization with a row from others, the worker empties payloads.
 *
 * The version before claims by the index that it has, and shows an emptied payload as null.
 */
import { Effect } from "effect"
import { addIndex, locking, retried } from "./addField.ts"
import { script } from "./script.ts"

const table = "deletion_tasks"

const privileges = script(`
alter table deletion_tasks alter column payload drop not null;
grant update (payload) on deletion_tasks to practice_data_worker;
grant select (organization_id) on organizations to practice_data_intake;
`)

// Nulls first, though there are none: no other index has this order, which the planner could take and sort the rest.
const indexes = [
  { name: "deletion_tasks_turns", columns: "(organization_id nulls first, due_at) where state = 'scheduled'" },
  { name: "deletion_tasks_payloads", columns: "(finished_at) where state = 'completed' and payload is not null" }
]

export default {
  online: Effect.gen(function* () {
    yield* retried(locking(table, privileges))
    yield* Effect.forEach(indexes, (index) => addIndex({ table, ...index }).online, { discard: true })
  })
}
