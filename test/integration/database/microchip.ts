/** A field to add to pets, for tests. */
import type { Field } from "../../../src/database/addField.ts"

/** A field that pets do not have. */
export const microchip: Field = {
  table: "pets",
  field: "microchipNumber",
  type: `text collate "C"`,
  description: "The owner's number of the chip",
  indexes: { pets_microchip_number: "(organization_id, microchip_number, updated_at, id)" }
}
