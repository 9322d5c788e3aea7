/** The references between records, from the contract. */
import { columnOf, kindOf } from "../api/records/Field.ts"
import { resources } from "../api/records/index.ts"

/** The target of references to clients, who have no table. */
export const clients = "clients"

const tableOf = new Map(resources.map(({ record, table }) => [kindOf(record.fields.id), table]))

/** The columns that name a record, with the table of that record: `target`. */
export const references = resources.flatMap(({ hidden, record, table }) =>
  Object.entries({ ...record.fields, ...hidden }).flatMap(([field, schema]) => {
    const kind = field === "id" ? undefined : kindOf(schema)
    const target = kind === "client" ? clients : tableOf.get(kind)
    return target === undefined ? [] : [{ table, column: columnOf(field), target }]
  })
)
