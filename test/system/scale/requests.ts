/** Requests that must have the same responses however the data is spread, and what of a response that is. */
import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { resources } from "../../../src/api/records/index.ts"
import { json, keys, type Organization } from "../../support/Client.ts"
import type { Request, Response } from "./haproxy.ts"

export const jsonHeaders = (authorization: string) =>
  [
    ["Authorization", authorization],
    ["Content-Type", "application/json"]
  ] as const

export const ask = (path: string, body: object, organization: Organization = "harbor"): Request => ({
  path: `/api/v3${path}`,
  headers: jsonHeaders(`Bearer ${keys[organization]}`),
  body: json(body)
})

export const search = ask("/charges/search", { limit: 3 })

export const organizations = ["oakridge", "harbor"] as const

/** Requests of both organizations, and of nobody. */
export const reads: ReadonlyArray<Request> = [
  ...organizations.flatMap((organization) => [
    ...resources
      .filter(({ name }) => name !== "organization")
      .flatMap(({ name }) => [
        ask(`/${name}/search`, { limit: 7 }, organization),
        ask(`/${name}/search`, { limit: 1000, offset: 3 }, organization),
        ask(`/${name}/get`, { id: "of_nobody" }, organization)
      ]),
    ask("/organization/get", {}, organization),
    ask("/organization/get", { organization: "org_harbor" }, organization),
    ask("/charges/search", { limit: 0 }, organization),
    ask("/charges/search", { limits: 1, clinic: 5 }, organization),
    ask("/invoice-deletions/search", {}, organization),
    ask("/psp-payments/search", { clinic: "clinic_harbor_01" }, organization),
    ask("/nothing", {}, organization)
  ]),
  ...[
    "",
    "Bearer",
    "Bearer ",
    "Bearer of_nobody",
    `bearer ${keys.harbor}`,
    `BEARER   ${keys.harbor}  `,
    `Bearer\t${keys.harbor}`,
    `Token ${keys.harbor}`,
    keys.harbor,
    `Bearer ${keys.harbor}, Bearer ${keys.oakridge}`,
    `Bearer ${keys.harbor}é`
  ].map((authorization) => ({ ...search, headers: jsonHeaders(authorization) })),
  { ...search, headers: [...jsonHeaders(`Bearer ${keys.harbor}`), ["Authorization", `Bearer ${keys.oakridge}`]] },
  { ...search, headers: [["Authorization", ""], ...jsonHeaders(`Bearer ${keys.harbor}`)] },
  { ...search, headers: [["Content-Type", "application/json"]] },
  { ...search, body: "" },
  { ...search, body: "{" },
  { ...search, path: `${search.path}?limit=2` },
  { ...search, method: "PUT" },
  { path: "/api/v3/openapi.json", method: "GET" },
  { path: "/api/v3/docs", method: "HEAD" },
  { path: "/api/v1/openapi.json", method: "GET" },
  { path: "/api/v1/health/ready", method: "GET" },
  { path: "/", method: "GET" }
]

export const delivery = (key: string, ids: ReadonlyArray<string>, invoice: string): Request => ({
  path: "/api/v1/invoice-deletions",
  headers: [
    ["Content-Type", "application/json"],
    ["Idempotency-Key", key],
    ...ids.map((id) => ["X-Organization-Id", id] as const)
  ],
  body: json({ invoices: [{ invoice_id: invoice }] })
})

export const deliveries = [
  delivery("one", ["org_harbor"], "invoice_harbor_0001"),
  delivery("one", ["org_harbor"], "invoice_harbor_0001"),
  delivery("one", ["org_harbor"], "invoice_harbor_0002"),
  delivery("one", ["org_oakridge"], "invoice_oakridge_0001"),
  delivery("two", ["  org_harbor "], "invoice_oakridge_0002"),
  delivery("three", ["org_of_nobody"], "invoice_harbor_0003"),
  delivery("four", [], "invoice_harbor_0004"),
  delivery("four", [""], "invoice_harbor_0004"),
  delivery("four", ["org_harbor", "org_oakridge"], "invoice_harbor_0004"),
  delivery("four", ["org_harbor", "org_harbor"], "invoice_harbor_0004"),
  delivery("four", ["org_harbor, org_oakridge"], "invoice_harbor_0004")
]

/** What must be the same: all but the times of a receipt. */
export const shown = ({ body, headers, status }: Response) => ({
  status,
  body: body.replaceAll(/"(received_at|scheduled_for)":"[^"]+"/g, `"$1":"..."`),
  type: headers["content-type"],
  authenticate: headers["www-authenticate"],
  allow: headers["allow"]
})

/** All invoices, those that are deleted too. */
export const invoices = ask("/invoices/search", { limit: 1000, include_deleted: true })

/** Without the times of a deletion. */
export const withoutTimes = (body: string) => body.replaceAll(/"(updated_at|deleted_at)":"[^"]+"/g, "")

/** Sends a request to two, and fails where their responses differ. Returns the first one's. */
export const same =
  <E>(both: (request: Request) => Effect.Effect<readonly [Response, Response], E>) =>
  (request: Request) =>
    Effect.map(both(request), ([one, other]) => {
      assert.deepStrictEqual(shown(other), shown(one), json(request))
      return one
    })

const Records = Schema.fromJsonString(Schema.Struct({ body: Schema.Array(Schema.Struct({ id: Schema.String })) }))

/** Sends all reads, and gets a record of each resource. */
export const readAll = Effect.fnUntraced(function* <E>(compare: (request: Request) => Effect.Effect<Response, E>) {
  yield* Effect.forEach(reads, compare, { concurrency: 6, discard: true })
  yield* Effect.forEach(
    organizations.flatMap((organization) =>
      resources.flatMap(({ name }) => (name === "organization" ? [] : [{ name, organization }]))
    ),
    Effect.fnUntraced(function* ({ name, organization }) {
      const page = yield* compare(ask(`/${name}/search`, { limit: 1 }, organization))
      const { body } = yield* Schema.decodeEffect(Records)(page.body)
      const [{ id } = { id: "" }] = body
      const { status } = yield* compare(ask(`/${name}/get`, { id }, organization))
      assert.strictEqual(status, 200)
    }),
    { concurrency: 6, discard: true }
  )
})
