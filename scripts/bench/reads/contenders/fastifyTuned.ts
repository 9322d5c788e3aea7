/**
 * Fastify 5 and pg as well as one can: over the same stored JSON as this service, in rows that are joined as they are;
 * statements prepared by name; the API key looked up in the statement that reads, without a round trip of its own.
 */
import { hash } from "node:crypto"
import Fastify, { type FastifyReply, type FastifyRequest } from "fastify"
import pg from "pg"
import { conditionsOf, getSchema, type Search, searchSchema } from "./request.ts"

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
