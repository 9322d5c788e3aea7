/** A service made up for walks: records in the order of a time in microseconds and their id, changed between pages. */
import type { Fetch } from "../../../src/client/index.ts"
import { isObject } from "../../../src/client/Response.ts"
import { sentOf } from "./support.ts"

/** A record: its time in microseconds. */
export interface Model {
  readonly id: string
  readonly micros: number
}

const start = Date.UTC(2026, 0, 1)

/** A time as a record shows it: whole milliseconds. */
export const shown = (micros: number) => new Date(start + Math.floor(micros / 1000)).toISOString()

/** A time as a caller may write it, to the microsecond and with an offset. */
export const exact = (micros: number) => {
  const at = new Date(start + 2 * 3_600_000 + Math.floor(micros / 1000)).toISOString()
  return `${at.slice(0, -1)}${String(micros % 1000).padStart(3, "0")}+02:00`
}

const microsOf = (time: string) => {
  const [, whole = "", fraction = "", zone = ""] = /^(.{19})\.(\d{3,6})(.*)$/.exec(time) ?? []
  return (Date.parse(`${whole}${zone}`) - start) * 1000 + Number(fraction.padEnd(6, "0"))
}

const inOrder = (a: Model, b: Model) => a.micros - b.micros || (a.id < b.id ? -1 : 1)

/** Writes between one page and the next. */
export type Write = (records: ReadonlyArray<Model>, request: number) => ReadonlyArray<Model>

/** A `fetch` that searches records, and lets writers write before each page but the first. */
export const modelService = (
  initial: ReadonlyArray<Model>,
  { hasTimes = true, write = (records) => records }: { readonly hasTimes?: boolean; readonly write?: Write } = {}
) => {
  let records = initial.toSorted(inOrder)
  let requests = 0
  const fetch: Fetch = (url, init) => {
    if (requests > 0) records = write(records, requests).toSorted(inOrder)
    requests += 1
    const body: unknown = JSON.parse(sentOf(url, init).body)
    const { limit, offset, updated_at_since: since } = isObject(body) ? body : {}
    const from = typeof since === "string" ? microsOf(since) : -Infinity
    const found = records.filter(({ micros }) => micros >= from)
    const page = found.slice(Number(offset), Number(offset) + Number(limit))
    const shownOf = ({ id, micros }: Model) => ({ id, ...(hasTimes && { updated_at: shown(micros) }) })
    return Promise.resolve(Response.json({ body: page.map(shownOf) }))
  }
  return { fetch, requests: () => requests, records: () => records }
}
