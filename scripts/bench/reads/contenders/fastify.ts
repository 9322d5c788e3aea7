/**
 * Fastify 5 and pg as their documentation shows them: a pool, rows of columns, JSON Schema for the request and the
 * response, the API key looked up in a hook.
 */
import { hash } from "node:crypto"
import Fastify from "fastify"
import pg from "pg"
import { conditionsOf, getSchema, type Search, searchSchema } from "./request.ts"

pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number)

const pool = new pg.Pool({ connectionString: process.env["DATABASE_URL"], max: 10 })

const kinds = {
  text: { type: ["string", "null"] },
  number: { type: ["number", "null"] },
  boolean: { type: "boolean" },
  time: { type: ["string", "null"], format: "date-time" }
} as const

const fields: ReadonlyArray<readonly [kind: keyof typeof kinds, names: string]> = [
  ["text", "id home_clinic servicing_clinic invoice_pims_id"],
  ["time", "invoice_date"],
  ["text", "invoice_line"],
  ["number", "invoice_line_aje_delta_discounted invoice_line_aje_delta_gross"],
  ["text", "invoice_line_pims_id pet pet_benefit product_code product_name"],
  ["number", "qty_available_on_plan qty_consumed qty_in_plan qty_out_of_plan qty_remaining"],
  ["number", "revenue_in_plan_total revenue_out_of_plan_total revenue_to_recognize_total"],
  ["number", "revenue_to_recognize_per_unit"],
  ["boolean", "is_unlimited_benefit"],
  ["text", "subscription"],
  ["time", "created_at updated_at"],
  ["boolean", "is_deleted"]
]

const record = {
  type: "object",
  properties: Object.fromEntries(
    fields.flatMap(([kind, names]) => names.split(" ").map((name) => [name, kinds[kind]] as const))
  )
} as const

const columns = Object.keys(record.properties).join(", ")

const app = Fastify({ ajv: { customOptions: { coerceTypes: false, removeAdditional: false } } })

app.decorateRequest("organization", "")

declare module "fastify" {
  interface FastifyRequest {
    organization: string
  }
}

app.addHook("onRequest", async (request, reply) => {
  const [scheme, key] = (request.headers.authorization ?? "").split(" ")
  if (scheme?.toLowerCase() === "bearer" && key !== undefined) {
    const { rows } = await pool.query<{ organization_id: string }>(
      "select organization_id from api_keys where key_hash = $1 and revoked_at is null",
      [hash("sha256", key, "buffer")]
    )
    if (rows[0] !== undefined) {
      request.organization = rows[0].organization_id
      return
    }
  }
  return reply.code(401).header("www-authenticate", "Bearer").send({ detail: "The API key is missing or invalid" })
})

app.post<{ Body: Search }>(
  "/api/v3/consumption-logs/search",
  {
    schema: {
      body: searchSchema,
      response: { 200: { type: "object", properties: { body: { type: "array", items: record } } } }
    }
  },
  async ({ body, organization }, reply) => {
    if ((body.organization ?? organization) !== organization) {
      return reply.code(400).send({ detail: "organization does not match the organization of the API key" })
    }
    const values: Array<unknown> = [organization]
    const conditions = ["organization_id = $1", ...conditionsOf(body, values)]
    const { rows } = await pool.query(
      `select ${columns} from consumption_logs where ${conditions.join(" and ")}
       order by updated_at, id limit $${values.push(body.limit)} offset $${values.push(body.offset)}`,
      values
    )
    return { body: rows }
  }
)

app.post<{ Body: { id: string; organization?: string } }>(
  "/api/v3/consumption-logs/get",
  { schema: { body: getSchema, response: { 200: record } } },
  async ({ body, organization }, reply) => {
    if ((body.organization ?? organization) !== organization) {
      return reply.code(400).send({ detail: "organization does not match the organization of the API key" })
    }
    const { rows } = await pool.query(
      `select ${columns} from consumption_logs where organization_id = $1 and id = $2`,
      [organization, body.id]
    )
    return rows[0] ?? reply.code(404).send({ detail: "No such record" })
  }
)

console.log(`Listening on ${await app.listen({ port: 0, host: "127.0.0.1" })}`)
process.once("SIGTERM", () => void app.close().then(() => pool.end()))
