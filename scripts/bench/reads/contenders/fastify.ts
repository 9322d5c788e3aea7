/**
 * Fastify 5 and pg as well as one can: over the same stored JSON as this service, in rows that are joined as they are;
 * statements prepared by name; the API key looked up in the statement that reads, without a round trip of its own.
 */
import { hash } from "node:crypto"
import Fastify, { type FastifyReply, type FastifyRequest } from "fastify"
import pg from "pg"

/** The condition of each filter on the columns of the table, without its value. */
const filters = {
  id: "id =",
  pet: "pet =",
  subscription: "subscription =",
  home_clinic: "home_clinic =",
  product_code: "product_code =",
  invoice_line: "invoice_line =",
  invoice_line_id: "invoice_line =",
  modified_since: "updated_at >=",
  created_at_since: "created_at >=",
  updated_at_since: "updated_at >="
} as const
type Filter = keyof typeof filters

const text = { type: ["string", "null"] }
const time = { ...text, format: "date-time" }

const searchSchema = {
  type: "object",
  additionalProperties: false,
  properties: {
    organization: text,
    limit: { type: "integer", minimum: 1, maximum: 1000, default: 100 },
    offset: { type: "integer", minimum: 0, maximum: 2147483647, default: 0 },
    ...Object.fromEntries(Object.keys(filters).map((name) => [name, name.endsWith("_since") ? time : text])),
    include_deleted: { type: "boolean", default: false }
  }
}

const getSchema = {
  type: "object",
  required: ["id"],
  additionalProperties: false,
  properties: { organization: text, id: { type: "string", minLength: 1 } }
}

interface Search extends Partial<Record<Filter | "organization", string | null>> {
  readonly limit: number
  readonly offset: number
  readonly include_deleted: boolean
}

/** The conditions of a search, whose values are added to those of the statement. */
const conditionsOf = (search: Search, values: Array<unknown>) => {
  const conditions: Array<string> = []
  for (const [name, condition] of Object.entries(filters)) {
    const value = search[name as Filter] ?? undefined
    if (value !== undefined) conditions.push(`${condition} $${values.push(value)}`)
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
  textOf: (values: Array<unknown>) => string,
  render: (records: ReadonlyArray<string>) => string | undefined
) => {
  const keyHash = hashOf(request)
  if (keyHash === undefined) return unauthorized(reply)
  if (request.validationError) {
    const { rowCount } = await pool.query({ name: "key", text: keyOf, values: [keyHash] })
    return rowCount === 0 ? unauthorized(reply) : reply.code(422).send({ detail: request.validationError.validation })
  }
  const values: Array<unknown> = [keyHash]
  const query = textOf(values)
  let name = names.get(query)
  if (name === undefined) names.set(query, (name = `read_${names.size}`))
  const { rows } = await pool.query<[owner: string | null, record: string | null]>({
    name,
    text: `with k as materialized (${keyOf})
      select organization_id, null as record from k union all select null, r.record from (${query}) r`,
    values,
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
    const { body } = request
    const textOf = (values: Array<unknown>) =>
      `select record from consumption_logs where ${[owned, ...conditionsOf(body, values)].join(" and ")}
       order by updated_at, id limit ${body.limit} offset ${body.offset}`
    return answer(request, reply, body, textOf, pageOf)
  }
)

app.post<{ Body: { id: string; organization?: string } }>(
  "/api/v3/consumption-logs/get",
  { schema: { body: getSchema }, attachValidation: true },
  (request, reply) => {
    const textOf = (values: Array<unknown>) =>
      `select record from consumption_logs where ${owned} and id = $${values.push(request.body.id)}`
    return answer(request, reply, request.body, textOf, ([record]) => record)
  }
)

console.log(`Listening on ${await app.listen({ port: 0, host: "127.0.0.1" })}`)
