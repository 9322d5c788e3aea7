/** The tasks that are dead, of which there are few. */
import { addIndex } from "./addField.ts"

export default addIndex({
  table: "deletion_tasks",
  name: "deletion_tasks_dead",
  columns: "(organization_id, finished_at) where state = 'dead'"
})
