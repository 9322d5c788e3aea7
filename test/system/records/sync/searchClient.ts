/** Keeps a copy of a resource in step by search alone, as the documentation says under "By search alone". */
// oxlint-disable effecttsgo/async-function, effecttsgo/global-date, eslint/no-await-in-loop -- plain TypeScript, for clients that have no Effect
import { type Ask, bodyOf, type Row } from "./ask.ts"

/** What the table of the documentation says of a resource. */
export interface Resource {
  readonly name: string
  /** The time of the last change, where it is shown, and the filter for it. */
  readonly time?: string | undefined
  readonly since?: string | undefined
  readonly hasDeleted: boolean
}

interface Page {
  readonly body: ReadonlyArray<Row>
}

/**
 * A round: reads what has changed since a time, or everything, into the records of a copy.
 *
 * @param margin in milliseconds: longer than the longest writing transaction
 * @returns from which time on the next round reads; it is saved when the round is over
 */
export const syncBySearch = async (
  ask: Ask,
  resource: Resource,
  records: Map<string, Row>,
  from: string | undefined,
  { limit = 1000, margin = 5 * 60_000 } = {}
): Promise<string | undefined> => {
  const timeOf = (record: Row) => (resource.time === undefined ? undefined : String(record[resource.time]))
  const read = new Set<string>()
  let began: string | null = null
  let seen: string | undefined
  let since = from
  let offset = 0
  for (;;) {
    const filters = {
      ...(resource.since !== undefined && { [resource.since]: since }),
      ...(resource.hasDeleted && { include_deleted: true })
    }
    const response = await ask(`/${resource.name}/search`, { ...filters, limit, offset })
    began ??= response.headers.get("date")
    const { body }: Page = await bodyOf(response)
    for (const record of body) records.set(record.id, record)
    const [first] = body
    const hasMoved = first === undefined || timeOf(first) !== since || !read.has(first.id)
    if (offset > 0 && hasMoved) {
      offset = Math.max(0, offset - Math.floor(limit / 2))
      continue
    }
    const last = body.at(-1)
    seen = last === undefined ? seen : timeOf(last)
    const time = seen ?? since
    if (time !== since) read.clear()
    for (const record of body) if (timeOf(record) === time) read.add(record.id)
    offset = time === since ? offset + body.length - 1 : read.size - 1
    since = time
    if (body.length < limit) break
  }
  if (seen === undefined || began === null) return from
  return new Date(Math.min(Date.parse(seen), Date.parse(began)) - margin).toISOString()
}
