/**
 * The data API as the contract words it, typed by hand: the document and the running service are held against it.
 * Nothing here comes from the sources of the service.
 */
import { type Resource, resources, type Stability } from "./Resource.ts"

export { resources }

/** The resource of a name. */
export const resourceOf = (name: string): Resource => {
  const found = resources.find((resource) => resource.name === name)
  if (found === undefined) throw new Error(`no such resource: ${name}`)
  return found
}

/** The resources that can be searched. */
export const searchable = resources.filter((resource) => resource.search !== undefined)

/** A search that leaves nothing out. */
export const everything = ({ filters }: Resource) => ({
  limit: 1000,
  ...("include_deleted" in filters ? { include_deleted: true } : {})
})

/** An endpoint: a POST with a JSON body. */
export interface Endpoint {
  readonly path: string
  readonly kind: "search" | "get" | "changes" | "processor" | "search tasks" | "get task"
  readonly stability: Stability
  /** The fields of its request, in order. */
  readonly request: Readonly<Record<string, "string" | "integer" | "boolean" | "date-time" | "strings">>
  /** A request with nothing but the required fields. */
  readonly least: Readonly<Record<string, string>>
  readonly required: ReadonlyArray<string>
  /** The statuses that the contract lists. */
  readonly listed: ReadonlyArray<string>
  /** The statuses that were decided. */
  readonly decided: ReadonlyArray<string>
}

/** An endpoint that returns records. */
interface RecordEndpoint extends Endpoint {
  readonly resource: Resource
}

const page = { organization: "string", limit: "integer", offset: "integer" } as const

const common = {
  least: {},
  required: [],
  listed: ["200", "400", "401", "422", "503"],
  decided: ["413", "415", "429", "500"]
} as const
const found = { ...common, decided: ["404", ...common.decided] }

const endpointsOf = (resource: Resource): ReadonlyArray<RecordEndpoint> => {
  const { filters, get: stability, name, search } = resource
  const get = { ...found, path: `/${name}/get`, kind: "get", stability, resource } as const
  if (search === undefined) return [{ ...get, request: { organization: "string" } }]
  const types = Object.entries(filters).map(([filter, { type }]) => [filter, type] as const)
  return [
    {
      ...common,
      path: `/${name}/search`,
      kind: "search",
      stability: search,
      resource,
      request: { ...page, ...Object.fromEntries(types) }
    },
    { ...get, request: { id: "string", organization: "string" }, least: { id: "none" }, required: ["id"] }
  ]
}

/** Every endpoint of records. */
export const recordEndpoints = resources.flatMap(endpointsOf)

const kinds = ["payments", "charges", "refunds", "disputes", "payouts", "balance-transactions"]

/** Every live read of the payment processor. The contract shows one; the others were decided to be the same. */
export const processorEndpoints = kinds.map((name): Endpoint => ({
  ...common,
  path: `/psp-${name}/search`,
  kind: "processor",
  stability: name === "balance-transactions" ? "contract" : "provisional",
  request: {
    clinic: "string",
    organization: "string",
    limit: "integer",
    starting_after: "string",
    created_gte: "integer",
    created_lte: "integer"
  },
  least: { clinic: "clinic_oakridge_01" },
  required: ["clinic"]
}))

/** The endpoints of the deletion tasks, as they were decided. */
export const taskEndpoints: ReadonlyArray<Endpoint> = [
  {
    ...common,
    path: "/invoice-deletions/search",
    kind: "search tasks",
    stability: "provisional",
    request: { ...page, state: "string", scheduled_since: "date-time" }
  },
  {
    ...found,
    path: "/invoice-deletions/get",
    kind: "get task",
    stability: "provisional",
    request: { task_id: "string", idempotency_key: "string", organization: "string" },
    least: { task_id: "none" }
  }
]

const counts = (...names: ReadonlyArray<string>) => names.map((name) => `${name}: integer!`).join(", ")

const invoices = counts("deleted", "not_found", "clinic_mismatch", "client_mismatch", "failed")
const lines = counts("deleted", "not_found", "invoice_mismatch", "clinic_mismatch", "failed")

/** The fields of a deletion task, named as in the receipt of its delivery. The outcome is null until it is completed. */
export const taskFields = {
  task_id: "uuid!",
  idempotency_key: "string!",
  state: "string!",
  received_at: "date-time!",
  scheduled_for: "date-time!",
  started_at: "date-time",
  finished_at: "date-time",
  attempts: "integer!",
  invoices_count: "integer!",
  invoice_lines_count: "integer!",
  outcome: `invoices: ${invoices}!, invoice_lines: ${lines}!, lines_of_invoices: integer!`,
  remembered: "integer!"
} as const

/** Every endpoint. */
export const endpoints: readonly [Endpoint, ...ReadonlyArray<Endpoint>] = [
  {
    ...common,
    path: "/changes",
    kind: "changes",
    stability: "provisional",
    request: { cursor: "string", limit: "integer", wait: "integer", organization: "string", resources: "strings" },
    decided: ["410", ...common.decided, "501"]
  },
  ...recordEndpoints,
  ...processorEndpoints,
  ...taskEndpoints
]
