/** The index by which the feed of all resources finds removals, in its order. */
import { addIndex } from "./addField.ts"

export default addIndex({
  table: "removals",
  name: "removals_order",
  columns: "(organization_id, change_position, id, table_name)"
})
