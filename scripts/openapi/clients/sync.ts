/** The work of each program: it copies a resource by changes, and compares the copy with a search. */

import { setTimeout } from "node:timers/promises"

/** The address of the service and a key of its demo data. */
export const [address = "", key = ""] = process.argv.slice(2)

/** Sends a request, and again after `Retry-After` where the service had no time for it. */
export const patientFetch: typeof fetch = async (input, init) => {
  const request = new Request(input, init)
  const response = await fetch(request.clone())
  const after = Number(response.headers.get("retry-after") ?? Number.NaN)
  if (response.status !== 503 || Number.isNaN(after)) return response
  await setTimeout(after * 1000)
  return patientFetch(request)
}

/** A response as the clients give it. */
interface Answer<Data> {
  readonly data?: Data | undefined
  readonly error?: unknown
  readonly response?: Response | undefined
}

interface Change {
  readonly record?: { readonly id: string }
  readonly removed?: string
  readonly reset?: true
}

/** A client's method for changes. */
export type Changes = (body: {
  cursor?: string
  limit: number
  resources: Array<"invoices" | "charges">
}) => Promise<Answer<{ body: Array<Change>; cursor: string; has_more: boolean }>>

/** A client's methods for a resource. */
interface Resource<Item> {
  readonly search: (body: { offset: number; limit: number }) => Promise<Answer<{ body: Array<Item> }>>
  readonly get: (id: string) => Promise<Answer<Item>>
}

/** The data of a response, or the end of the program. */
export const expectData = <Data>(answer: Answer<Data>): Data => {
  if (answer.data === undefined) throw new Error(`${answer.response?.status}: ${JSON.stringify(answer.error)}`)
  return answer.data
}

export const expectEqual = (actual: unknown, expected: unknown) => {
  const [one, other] = [JSON.stringify(actual), JSON.stringify(expected)]
  if (one !== other) throw new Error(`${one} is not ${other}`)
}

const copy = async (changes: Changes, name: "invoices" | "charges") => {
  const items = new Map<string, unknown>()
  let cursor: string | undefined
  for (;;) {
    const request = { limit: 40, resources: [name] }
    const page = expectData(await changes(cursor === undefined ? request : { ...request, cursor }))
    for (const { record, removed } of page.body) {
      if (record !== undefined) items.set(record.id, record)
      if (removed !== undefined) items.delete(removed)
    }
    cursor = page.cursor
    if (!page.has_more) return items
  }
}

const walk = async <Item>({ search }: Resource<Item>) => {
  const items: Array<Item> = []
  for (;;) {
    const { body } = expectData(await search({ offset: items.length, limit: 100 }))
    items.push(...body)
    if (body.length < 100) return items
  }
}

const copied: Record<string, number> = {}

/** Copies a resource, and checks the copy. */
export const sync = async <Item extends { id: string }>(
  name: "invoices" | "charges",
  changes: Changes,
  resource: Resource<Item>
) => {
  const items = await copy(changes, name)
  const found = await walk(resource)
  for (const item of found) expectEqual(items.get(item.id), item)
  const [first] = found
  if (first === undefined) throw new Error(`no ${name}`)
  expectEqual(expectData(await resource.get(first.id)), first)
  copied[name] = items.size
}

/** Tells what was copied. */
export const report = () => console.log(JSON.stringify(copied))
