/** The work of each program: they copy a resource by its changes, and compare the copy with a search. */

/** The address of the service and a key of its demo data. */
export const [address = "", key = ""] = process.argv.slice(2)

/** A response as the clients give it. */
interface Answer<Data> {
  readonly data?: Data | undefined
  readonly error?: unknown
  readonly response?: Response | undefined
}

/** A client's methods for a resource. */
interface Resource<Item> {
  readonly changes: (body: {
    cursor?: string
    limit: number
  }) => Promise<Answer<{ body: Array<Item>; removed: Array<string>; cursor: string; has_more: boolean }>>
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

const copy = async <Item extends { id: string }>({ changes }: Resource<Item>) => {
  const items = new Map<string, Item>()
  let cursor: string | undefined
  for (;;) {
    const page = expectData(await changes(cursor === undefined ? { limit: 40 } : { cursor, limit: 40 }))
    for (const id of page.removed) items.delete(id)
    for (const item of page.body) items.set(item.id, item)
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
export const sync = async <Item extends { id: string }>(name: string, resource: Resource<Item>) => {
  const items = await copy(resource)
  const found = await walk(resource)
  for (const item of found) expectEqual(items.get(item.id), item)
  const [first] = found
  if (first === undefined) throw new Error(`no ${name}`)
  expectEqual(expectData(await resource.get(first.id)), first)
  copied[name] = items.size
}

/** Tells what was copied. */
export const report = () => console.log(JSON.stringify(copied))
