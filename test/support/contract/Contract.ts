/**
 * The data API as the contract words it, typed by hand: what the document and the running service are held against.
 * Nothing here comes from the sources of the service.
 */
import * as Decided from "./Decided.ts"
import type { Resource, Stability } from "./Resource.ts"
import * as Shown from "./Shown.ts"

/** Every resource. */
export const resources: ReadonlyArray<Resource> = [...Object.values(Shown), ...Object.values(Decided)]

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
interface Described {
  readonly path: string
  readonly stability: Stability
  /** The fields of its request, in order. */
  readonly request: Readonly<Record<string, "string" | "integer" | "boolean" | "date-time">>
  /** A request of nothing but what it needs. */
  readonly least: Readonly<Record<string, string>>
  /** The fields that a request cannot leave out. */
  readonly required: ReadonlyArray<string>
  /** The statuses that the contract lists. */
  readonly listed: ReadonlyArray<string>
  /** The statuses that were decided. */
  readonly decided: ReadonlyArray<string>
}

/** An endpoint that returns records. */
export interface RecordEndpoint extends Described {
  readonly kind: "search" | "get" | "changes"
  readonly resource: Resource
}

/** An endpoint that reads live from the payment processor. */
export interface ProcessorEndpoint extends Described {
  readonly kind: "processor"
}

/** An endpoint that returns deletion tasks. */
export interface TaskEndpoint extends Described {
  readonly kind: "search tasks" | "get task"
}

export type Endpoint = RecordEndpoint | ProcessorEndpoint | TaskEndpoint

const listed = ["200", "400", "401", "422", "503"]

const endpointsOf = (resource: Resource): ReadonlyArray<RecordEndpoint> => {
  const filters = Object.entries(resource.filters).map(([name, { type }]) => [name, type] as const)
  const hasId = resource.search !== undefined
  const get: RecordEndpoint = {
    path: `/${resource.name}/get`,
    kind: "get",
    stability: resource.get,
    resource,
    request: hasId ? { id: "string", organization: "string" } : { organization: "string" },
    least: hasId ? { id: "none" } : {},
    required: hasId ? ["id"] : [],
    listed,
    decided: ["404", "413", "415", "429", "500"]
  }
  if (resource.search === undefined) return [get]
  return [
    {
      path: `/${resource.name}/search`,
      kind: "search",
      stability: resource.search,
      resource,
      request: { organization: "string", limit: "integer", offset: "integer", ...Object.fromEntries(filters) },
      least: {},
      required: [],
      listed,
      decided: ["413", "415", "429", "500"]
    },
    get,
    {
      path: `/${resource.name}/changes`,
      kind: "changes",
      stability: "provisional",
      resource,
      request: { cursor: "string", limit: "integer", wait: "integer", organization: "string" },
      least: {},
      required: [],
      listed,
      decided: ["410", "413", "415", "429", "500", "501"]
    }
  ]
}

/** Every endpoint of records. */
export const recordEndpoints = resources.flatMap(endpointsOf)

/** Every live read of the payment processor. The contract shows one; the others were decided to be the same. */
export const processorEndpoints = (
  [
    ["payments", "provisional"],
    ["charges", "provisional"],
    ["refunds", "provisional"],
    ["disputes", "provisional"],
    ["payouts", "provisional"],
    ["balance-transactions", "contract"]
  ] as const
).map(([name, stability]): ProcessorEndpoint => ({
  path: `/psp-${name}/search`,
  kind: "processor",
  stability,
  request: {
    clinic: "string",
    organization: "string",
    limit: "integer",
    starting_after: "string",
    created_gte: "integer",
    created_lte: "integer"
  },
  least: { clinic: "clinic_oakridge_01" },
  required: ["clinic"],
  listed,
  decided: ["413", "415", "429", "500"]
}))

/** The endpoints of the deletion tasks, as they were decided. */
export const taskEndpoints: ReadonlyArray<TaskEndpoint> = [
  {
    path: "/invoice-deletions/search",
    kind: "search tasks",
    stability: "provisional",
    request: {
      organization: "string",
      limit: "integer",
      offset: "integer",
      state: "string",
      scheduled_since: "date-time"
    },
    least: {},
    required: [],
    listed,
    decided: ["413", "415", "429", "500"]
  },
  {
    path: "/invoice-deletions/get",
    kind: "get task",
    stability: "provisional",
    request: { task_id: "string", idempotency_key: "string", organization: "string" },
    least: { task_id: "none" },
    required: [],
    listed,
    decided: ["404", "413", "415", "429", "500"]
  }
]

const counts = (...names: ReadonlyArray<string>) => names.map((name) => `${name}: integer!`).join(", ")

const named = counts("deleted", "not_found", "clinic_mismatch", "client_mismatch")
const namedLines = counts("deleted", "not_found", "invoice_mismatch", "clinic_mismatch")

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
  outcome: `invoices: ${named}!, invoice_lines: ${namedLines}!, lines_of_invoices: integer!`
} as const

/** Every endpoint. */
export const endpoints: ReadonlyArray<Endpoint> = [...recordEndpoints, ...processorEndpoints, ...taskEndpoints]
