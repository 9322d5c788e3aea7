/** The order in which the data API reads the deletion tasks of an organization. */
import { addIndex } from "./addField.ts"

export default addIndex({
  table: "deletion_tasks",
  name: "deletion_tasks_order",
  columns: "(organization_id, state, scheduled_for, id)",
  replaces: ["deletion_tasks_state"]
})
