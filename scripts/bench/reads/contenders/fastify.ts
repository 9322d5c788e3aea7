/**
 * Fastify 5 and pg as well as one can: over the same stored JSON as this service, in rows that are joined as they are;
 * statements prepared by name; the API key looked up in the statement that reads, without a round trip of its own.
 */
import { hash } from "node:crypto"
import Fastify, { type FastifyReply, type FastifyRequest } from "fastify"
import pg from "pg"

const text = { type: ["string", "null"] } as const

const shared = { organization: text } as const

const times = ["modified_since", "created_at_since", "updated_at_since"] as const

const filters = {
  id: "id",
  pet: "pet",
  subscription: "subscription",
  home_clinic: "home_clinic",
  product_code: "product_code",
  invoice_line: "invoice_line",
  invoice_line_id: "invoice_line"
} as const

const bounds = { modified_since: "updated_at", created_at_since: "created_at", updated_at_since: "updated_at" }

const searchSchema = {
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

const getSchema = {
  type: "object",
  required: ["id"],
  additionalProperties: false,
  properties: { ...shared, id: { type: "string", minLength: 1 } }
} as const

interface Search extends Partial<Record<keyof typeof filters | (typeof times)[number], string | null>> {
  readonly organization?: string | null
  readonly limit: number
  readonly offset: number
  readonly include_deleted: boolean
}

/** The conditions of a search as SQL over the columns of the table, and their values. */
const conditionsOf = (search: Search, values: Array<unknown>) => {
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

const pool = new pg.Pool({ connectionString: process.env["DATABASE_URL"], max: 10 })

const app = Fastify({ ajv: { customOptions: { coerceTypes: false, removeAdditional: false } } })

const hashOf = ({ headers }: FastifyRequest) => {
  const [scheme, key] = (headers.authorization ?? "").split(" ")
  return scheme?.toLowerCase() === "bearer" && key !== undefined ? hash("sha256", key, "buffer") : undefined
}

const keyOf = "select organization_id from api_keys where key_hash = $1 and revoked_at is null"

const unauthorized = (reply: FastifyReply) =>
  reply.code(401).header("www-authenticate", "Bearer").send({ detail: "The API key is missing or invalid" })

const names = new Map<string, string>()

/** Reads with the organization of the key as `k`. What is wrong with the request is said to whoever has a key. */
const answer = async (
  request: FastifyRequest,
  reply: FastifyReply,
  { organization }: { readonly organization?: string | null },
  query: { readonly text: string; readonly values: ReadonlyArray<unknown> },
  render: (records: ReadonlyArray<string>) => string | undefined
) => {
  const keyHash = hashOf(request)
  if (keyHash === undefined) return unauthorized(reply)
  if (request.validationError) {
    const { rowCount } = await pool.query({ name: "key", text: keyOf, values: [keyHash] })
    return rowCount === 0 ? unauthorized(reply) : reply.code(422).send({ detail: request.validationError.validation })
  }
  let name = names.get(query.text)
  if (name === undefined) names.set(query.text, (name = `read_${names.size}`))
  const { rows } = await pool.query<[owner: string | null, record: string | null]>({
    name,
    text: `with k as materialized (${keyOf})
      select organization_id, null as record from k union all select null, r.record from (${query.text}) r`,
    values: [keyHash, ...query.values],
    rowMode: "array"
  })
  const records: Array<string> = []
  let owner: string | undefined
  for (const [found, record] of rows) {
    if (record !== null) records.push(record)
    else if (found !== null) owner = found
  }
  if (owner === undefined) return unauthorized(reply)
  if ((organization ?? owner) !== owner) {
    return reply.code(400).send({ detail: "organization does not match the organization of the API key" })
  }
  const json = render(records)
  if (json === undefined) return reply.code(404).send({ detail: "No such record" })
  return reply.type("application/json").send(json)
}

const pageOf = (records: ReadonlyArray<string>) => {
  let json = '{"body":['
  for (let index = 0; index < records.length; index++) json += index === 0 ? records[index] : `,${records[index]}`
  return `${json}]}`
}

const owned = "organization_id = (select organization_id from k)"

app.post<{ Body: Search }>(
  "/api/v3/consumption-logs/search",
  { schema: { body: searchSchema }, attachValidation: true },
  (request, reply) => {
    const values: Array<unknown> = [undefined]
    const { body } = request
    const conditions = request.validationError ? [] : conditionsOf(body, values)
    const text = `select record from consumption_logs where ${[owned, ...conditions].join(" and ")}
       order by updated_at, id limit ${body.limit} offset ${body.offset}`
    return answer(request, reply, body, { text, values: values.slice(1) }, pageOf)
  }
)

app.post<{ Body: { id: string; organization?: string } }>(
  "/api/v3/consumption-logs/get",
  { schema: { body: getSchema }, attachValidation: true },
  (request, reply) => {
    const text = `select record from consumption_logs where ${owned} and id = $2`
    return answer(request, reply, request.body, { text, values: [request.body.id] }, ([record]) => record)
  }
)

console.log(`Listening on ${await app.listen({ port: 0, host: "127.0.0.1" })}`)
process.once("SIGTERM", () => void app.close().then(() => pool.end()))
