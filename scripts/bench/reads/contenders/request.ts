/** What both Fastify contenders take: the request of a search and of a read of consumption logs, as JSON Schema. */

const text = { type: ["string", "null"] } as const

const shared = { organization: text } as const

const times = ["modified_since", "created_at_since", "updated_at_since"] as const

export const filters = {
  id: "id",
  pet: "pet",
  subscription: "subscription",
  home_clinic: "home_clinic",
  product_code: "product_code",
  invoice_line: "invoice_line",
  invoice_line_id: "invoice_line"
} as const

export const bounds = { modified_since: "updated_at", created_at_since: "created_at", updated_at_since: "updated_at" }

export const searchSchema = {
  type: "object",
  additionalProperties: false,
  properties: {
    ...shared,
    limit: { type: "integer", minimum: 1, maximum: 1000, default: 100 },
    offset: { type: "integer", minimum: 0, maximum: 2147483647, default: 0 },
    ...Object.fromEntries(Object.keys(filters).map((name) => [name, text])),
    include_deleted: { type: "boolean", default: false },
    ...Object.fromEntries(times.map((name) => [name, { type: ["string", "null"], format: "date-time" }]))
  }
} as const

export const getSchema = {
  type: "object",
  required: ["id"],
  additionalProperties: false,
  properties: { ...shared, id: { type: "string", minLength: 1 } }
} as const

export interface Search extends Partial<Record<keyof typeof filters | (typeof times)[number], string | null>> {
  readonly organization?: string | null
  readonly limit: number
  readonly offset: number
  readonly include_deleted: boolean
}

/** The conditions of a search as SQL over the columns of the table, and their values. */
export const conditionsOf = (search: Search, values: Array<unknown>) => {
  const conditions: Array<string> = []
  for (const [name, column] of Object.entries(filters)) {
    const value = search[name as keyof typeof filters]
    if (value !== undefined && value !== null) conditions.push(`${column} = $${values.push(value)}`)
  }
  for (const [name, column] of Object.entries(bounds)) {
    const value = search[name as keyof typeof bounds]
    if (value !== undefined && value !== null) conditions.push(`${column} >= $${values.push(value)}`)
  }
  if (!search.include_deleted) conditions.push("not is_deleted")
  return conditions
}
