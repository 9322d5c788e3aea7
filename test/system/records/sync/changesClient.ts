/** Keeps a copy of a resource in step by changes, as the documentation says under "By changes". */
// oxlint-disable effecttsgo/async-function, eslint/no-await-in-loop -- plain TypeScript, for clients that have no Effect
import { type Ask, bodyOf, type Row } from "./ask.ts"

/** A copy, and how far it has come. They are saved together. */
export interface Copy {
  readonly records: Map<string, Row>
  cursor?: string | undefined
}

interface Page {
  readonly body: ReadonlyArray<Row>
  readonly removed: ReadonlyArray<string>
  readonly cursor: string
  readonly has_more: boolean
}

/**
 * Brings a copy up to date.
 *
 * @param save stores the copy and its cursor, in one transaction
 * @param wait for how many seconds a response may wait for something new
 * @returns how many seconds a transaction has been open whose changes are not told yet
 */
export const syncByChanges = async (
  ask: Ask,
  resource: string,
  copy: Copy,
  save: (copy: Copy) => Promise<void>,
  { limit = 1000, wait = 0 } = {}
): Promise<number> => {
  for (;;) {
    const response = await ask(`/${resource}/changes`, { cursor: copy.cursor, limit, wait })
    if (response.status === 410) {
      copy.records.clear()
      copy.cursor = undefined
      continue
    }
    const page: Page = await bodyOf(response)
    for (const id of page.removed) copy.records.delete(id)
    for (const record of page.body) copy.records.set(record.id, record)
    copy.cursor = page.cursor
    await save(copy)
    if (!page.has_more) return Number(response.headers.get("x-changes-lag"))
  }
}
