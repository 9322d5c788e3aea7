/** What is asked of each contender. */

/** A read of consumption logs, in the words of the API. */
export interface Work {
  readonly name: string
  readonly endpoint: "search" | "get" | "changes"
  readonly body: Readonly<Record<string, string | number | boolean | ReadonlyArray<string>>>
  readonly hasKey?: false
}

const page = (limit: number, more: Work["body"] = {}, name = `page of ${limit}`): Work => ({
  name,
  endpoint: "search",
  body: { limit, ...more }
})

export const pageOf100 = page(100)

export const all: ReadonlyArray<Work> = [
  pageOf100,
  page(1000),
  page(100, { pet: "pet_1" }, "selective filter"),
  page(100, { product_code: "none" }, "filter that matches nothing"),
  page(100, { updated_at_since: "2030-01-01T00:00:00Z" }, "poll without news"),
  { name: "single record", endpoint: "get", body: { id: "consumption_log_4001" } },
  { ...pageOf100, name: "no valid key", hasKey: false }
]
