/** A service for tests of code that uses the clients: records in memory, behind a `fetch`. */
import { resources } from "./generated/resources.ts"
import type { Fetch } from "./Options.ts"
import type { AnyRecord } from "./Resource.ts"
import { isObject } from "./Response.ts"

/** A request as the service received it. */
export interface ReceivedRequest {
  readonly path: string
  readonly body: AnyRecord
  readonly headers: Headers
}

export interface FakeService {
  /** The `fetch` option of the clients. */
  readonly fetch: Fetch
  /** All requests so far, those that failed included. */
  readonly requests: ReadonlyArray<ReceivedRequest>
  /** Gives the next request an error of this status, such as 503. A header `x-error` sets its code. */
  readonly failNext: (status: number, headers?: Readonly<Record<string, string>>) => void
}

const respond = (status: number, body: object, headers: Readonly<Record<string, string>> = {}) =>
  Response.json(body, { status, headers: { "x-request-id": "fake-request", "x-changes-lag": "0", ...headers } })

/** The code of an error by its status. */
const codes: Readonly<Record<number, string>> = {
  400: "out_of_range",
  401: "unauthorized",
  404: "record_not_found",
  410: "cursor_expired",
  422: "request_invalid",
  429: "too_many_requests",
  503: "record_store_down"
}

/** A detail is a text, and of a 422 a list of faults. */
const refuse = (status: number, msg: string, headers?: Readonly<Record<string, string>>, type = "value_error") =>
  respond(
    status,
    { detail: status === 422 ? [{ loc: ["body"], msg, type }] : msg },
    { "x-service": "practice-data", "x-error": codes[status] ?? "internal_server_error", ...headers }
  )

const notFilters = ["organization", "limit", "offset", "starting_after", "include_deleted"]

/** The fields of filters that have another name than their field. */
const fields: Readonly<Record<string, ReadonlyArray<string>>> = {
  clinic: ["clinic", "clinic_id", "home_clinic", "servicing_clinic"],
  created: ["created_at", "created"],
  modified: ["modified_at", "updated_at"],
  scheduled: ["scheduled_for"],
  updated: ["updated_at"]
}

/** The processor counts seconds. A time without an offset is UTC. */
const timeOf = (value: unknown) =>
  typeof value === "number" ? value : Date.parse(String(value).replace(/^(\S+)[ T]([\d:.]+)$/, "$1T$2Z"))

/** True if a record satisfies a filter: a time within a bound, or an equal field. */
const satisfies = (record: AnyRecord, name: string, value: unknown): boolean => {
  if (value === null || value === undefined || notFilters.includes(name)) return true
  const [, named = name, bound] = /^(.+)_(since|before|gte|lte)$/.exec(name) ?? []
  // `pet_id` names the field `pet`, and `created_at_since` the field `created_at`.
  const values = (fields[named] ?? [named, named.replace(/_id$/, "")]).flatMap((field) => record[field] ?? [])
  if (bound === undefined) return values.some((each) => each === value || JSON.stringify(each) === value)
  const [at, limit] = [timeOf(values[0]), timeOf(value)]
  if (bound === "before") return at < limit
  return bound === "lte" ? at <= limit : at >= limit
}

const isDeleted = (record: AnyRecord) => record["is_deleted"] === true || record["removed"] === true

type Records = Readonly<Record<string, ReadonlyArray<AnyRecord>>>

const search = (isLive: boolean, records: ReadonlyArray<AnyRecord>, request: AnyRecord) => {
  const filters = Object.entries(request).filter(([name]) => !(isLive && name === "clinic"))
  const { limit = 100, offset = 0, starting_after: after } = request
  const cursor = records.findIndex(({ id }) => id === after)
  if (typeof after === "string" && cursor === -1) {
    return refuse(400, "starting_after is unknown", { "x-error": "cursor_not_found" })
  }
  const rest = records.slice(cursor + 1)
  const shown = rest.filter((record) => request["include_deleted"] === true || !isDeleted(record))
  const matching = shown.filter((record) => filters.every(([name, value]) => satisfies(record, name, value)))
  const end = Number(offset) + Number(limit)
  const page = matching.slice(Number(offset), end)
  return respond(200, isLive ? { data: page, has_more: end < matching.length } : { body: page })
}

/** All changes at once; none after the cursor of the last response. */
const changes = (records: Records, name: string, { cursor, resources: requested }: AnyRecord) => {
  const known = cursor === null || cursor === undefined ? records : {}
  const page = { cursor: "fake-cursor", has_more: false }
  if (name !== "")
    return respond(200, { ...page, body: known[name] ?? [], removed: [] }, { "x-changes-complete": "true" })
  const body = resources
    .filter((each) => each.verbs.includes("changes") && (!Array.isArray(requested) || requested.includes(each.name)))
    .flatMap(({ name: resource }) => (known[resource] ?? []).map((record) => ({ resource, record })))
  return respond(200, { ...page, body, is_consistent: true, schema: "fake" })
}

const count = (list: unknown) => (Array.isArray(list) ? list.length : 0)

/**
 * A service in memory. It searches by filters, reads by id, gives all records as changes once, and accepts deliveries, which
 * it never runs. It checks no key and no unknown field, its records stay in the given order, and those of live reads belong
 * to any clinic. A record satisfies no filter on a field that it lacks.
 *
 * @example
 * const service = fakeService({ charges: [{ id: "charge_1", status: "open" }] })
 * const client = new PracticeData({ baseUrl: "http://fake", apiKey: "fake", fetch: service.fetch })
 *
 * @param records by the names of resources in the API's paths, such as `consumption-logs`; another name throws
 */
export const fakeService = (records: Records = {}): FakeService => {
  const requests: Array<ReceivedRequest> = []
  const failures: Array<Response> = []
  const deliveries = new Map<string, string>()
  const unknown = Object.keys(records).find((name) => resources.every((resource) => resource.name !== name))
  if (unknown !== undefined) {
    throw new RangeError(`No resource is named ${unknown}: expected ${resources.map(({ name }) => name).join(", ")}`)
  }
  const handle = ({ body, headers, path }: ReceivedRequest): Response => {
    if (path === "/api/v1/invoice-deletions") {
      const key = headers.get("idempotency-key") ?? ""
      const [sent, before] = [JSON.stringify(body), deliveries.get(key)]
      if (before !== undefined && before !== sent)
        return refuse(422, "This Idempotency-Key was used with a different payload", {}, "idempotency_key_reused")
      deliveries.set(key, sent)
      const now = new Date().toISOString()
      return respond(before === undefined ? 202 : 200, {
        status: before === undefined ? "scheduled" : "duplicate",
        task_id: `task-${key}`,
        scheduled_for: now,
        idempotency_key: key,
        invoices_count: count(body["invoices"]),
        invoice_lines_count: count(body["invoice_lines"]),
        received_at: now
      })
    }
    const [, name = "", verb] = /^\/api\/v3(?:\/([^/]+))?\/(\w+)$/.exec(path) ?? []
    if (verb === "changes") return changes(records, name, body)
    const info = resources.find((resource) => resource.name === name)
    if (info === undefined) return respond(404, { detail: "Not Found" }, { "x-error": "not_found" })
    const all = records[name] ?? []
    if (verb === "search") return search(info.live === true, all, body)
    const record = all.find((each) => Object.entries(body).every(([field, value]) => each[field] === value))
    return record === undefined ? refuse(404, "No such record") : respond(200, record)
  }
  const fetch: Fetch = (url, { body, headers }) => {
    const json: unknown = JSON.parse(typeof body === "string" ? body : "{}")
    const request = { path: new URL(url).pathname, body: isObject(json) ? json : {}, headers: new Headers(headers) }
    requests.push(request)
    return Promise.resolve(failures.shift() ?? handle(request))
  }
  return {
    fetch,
    requests,
    failNext: (status, headers) => void failures.push(refuse(status, `A failure of ${status}`, headers))
  }
}
