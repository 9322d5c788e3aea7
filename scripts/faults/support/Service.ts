/** The program under attack, and what its callers ask. */
import { Effect } from "effect"
import { headersOf, json, type Organization } from "../../../test/blackbox/support/Client.ts"
import * as Process from "../../../test/blackbox/support/Process.ts"

/** Starts the program and waits until it listens. It is gone when the scope closes. */
export const start = Effect.fnUntraced(function* (environment: Process.Environment) {
  const process = yield* Process.start(environment)
  const { port } = new URL(yield* process.address)
  return { ...process, port: Number(port) }
})

/** A search of an organization. */
export const search = (resource: string, body: object = {}, organization: Organization = "oakridge") => ({
  path: `/api/v3/${resource}/search`,
  headers: headersOf(organization),
  body: json(body)
})

/** What a neighbour of oakridge asks: little. */
export const neighbourly = [search("consumption-logs", { limit: 10 }, "harbor")] as const

/** A delivery that names one invoice. */
export const delivery = (key: string) => ({
  path: "/api/v1/invoice-deletions",
  headers: { "content-type": "application/json", "idempotency-key": key, "x-organization-id": "org_oakridge" },
  body: json({ invoices: [{ invoice_id: "invoice_of_nobody" }] })
})

/** The health check. */
export const health = { method: "GET", path: "/api/v1/health" } as const

/** The readiness check. */
export const ready = { method: "GET", path: "/api/v1/health/ready" } as const
