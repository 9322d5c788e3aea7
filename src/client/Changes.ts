/** Follows the changes of a resource. */
import { PracticeDataError } from "./Errors.ts"
import type { ChangesPage } from "./generated/types.ts"
import { type Post, readChanges } from "./Pages.ts"
import type { ChangesOptions } from "./Resource.ts"
import { pause } from "./Retry.ts"

const longestWait = 20

/** A service that stops does not hold responses back. In milliseconds. */
const shortestRound = 1000

/** The pages of changes after a cursor. */
export async function* changes<Item>(
  post: Post,
  name: string,
  from: string | null | undefined,
  options: ChangesOptions
): AsyncGenerator<ChangesPage<Item>, void, undefined> {
  const { follow = false, limit, signal } = options
  const wait = options.wait ?? (follow ? longestWait : 0)
  if (follow && wait < 1)
    throw new RangeError(`wait must be from 1 to ${longestWait} seconds where changes are followed`)
  for (let cursor = from; ;) {
    const began = Date.now()
    const request = { cursor, limit, wait }
    const page = await post(`/${name}/changes`, request, readChanges<Item>, options, wait * 1000)
    const isEmpty = page.body.length === 0 && page.removed.length === 0
    if (page.cursor === cursor && (page.has_more || !isEmpty)) {
      throw new PracticeDataError(`/${name}/changes responds with changes, and a cursor that does not move`)
    }
    cursor = page.cursor
    yield page
    if (page.has_more) continue
    if (!follow) return
    if (isEmpty) await pause(Math.max(0, began + shortestRound - Date.now()), signal)
  }
}
