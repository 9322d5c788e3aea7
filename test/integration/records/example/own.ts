import { addIndex } from "../../../../src/database/addField.ts"
import type { Migrations } from "../../../../src/database/Migration.ts"

const own: Migrations = {
  pets_breed: addIndex({ table: "pets", name: "pets_breed", columns: "(organization_id, breed, updated_at, id)" })
}

export default own
