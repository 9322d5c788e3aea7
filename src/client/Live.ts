/** Walks all pages of a live read of the payment processor. */
import { PracticeDataError } from "./Errors.ts"
import { type Post, readLive } from "./Pages.ts"
import type { AllOptions, AnyRecord } from "./Resource.ts"
import { refusePaging } from "./Walk.ts"

const largestPage = 100

/** Every object of a clinic's account, newest first: the next page starts after the last object of the page before. */
export async function* walkLive<Item>(
  post: Post,
  name: string,
  filters: object,
  options: AllOptions
): AsyncGenerator<Item, void, undefined> {
  refusePaging(filters)
  const path = `/${name}/search`
  let after: string | undefined
  for (;;) {
    const request = { ...filters, limit: options.pageSize ?? largestPage, starting_after: after }
    const { data, has_more } = await post(path, request, readLive<Item & AnyRecord>, options)
    const objects: Array<Item> = data
    yield* objects
    if (!has_more) return
    const id = data.at(-1)?.["id"]
    if (typeof id !== "string" || id === after) {
      throw new PracticeDataError(`${path} says that there is more, and gives no object to go on from`)
    }
    after = id
  }
}
