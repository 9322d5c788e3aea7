/** Readers of the feed of one resource, in the words of tests. */
import { Effect } from "effect"
import { pets } from "../../../src/api/records/Pets.ts"
import { feedOf, pageOf } from "../../support/Follower.ts"
import { settled } from "../../support/settled.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { asKnown } from "../records/stores.ts"

let organizations = 0

/** A reader of pets, for an organization of the test's own. */
export const reader = Effect.fnUntraced(function* () {
  const { sql } = yield* TestDatabase
  const changes = yield* feedOf(sql)
  const organization = `org_${++organizations}`
  let cursor: string | undefined = undefined

  /** The changes since the last time, as `ID NAME`, and the removed ids. */
  const told = Effect.fnUntraced(function* (limit = 1000) {
    yield* settled(sql)
    yield* sql`select change_mark()`
    const changed: Array<string> = []
    const removed: Array<string> = []
    let hasMore = true
    while (hasMore) {
      const { json } = yield* asKnown(organization)(changes({ cursor, limit, resources: [pets.name] }))
      const page: Effect.Success<ReturnType<typeof pageOf>> = yield* pageOf(json)
      cursor = page.cursor
      changed.push(...page.body.map(({ id, name }) => (typeof name === "string" ? `${id} ${name}` : id)))
      removed.push(...page.removed)
      hasMore = page.has_more
    }
    return { changed, removed }
  })
  /** Inserts records without a name, and reads them. */
  const insert = Effect.fnUntraced(function* (...ids: ReadonlyArray<string>) {
    for (const id of ids) yield* sql`insert into pets (organization_id, id) values (${organization}, ${id})`
    yield* told()
  })
  return { sql, organization, told, insert }
})
