/** The tasks that are dead, for operators, who look at those of all organizations. */
import { addIndex } from "./addField.ts"

export default addIndex({
  table: "deletion_tasks",
  name: "deletion_tasks_dead",
  columns: "(finished_at, organization_id, id) where state = 'dead'"
})
