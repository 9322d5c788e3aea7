import { addIndex } from "../../../../src/database/migrations/addField.ts"

export default addIndex({ table: "pets", name: "pets_breed", columns: "(organization_id, breed, updated_at, id)" })
