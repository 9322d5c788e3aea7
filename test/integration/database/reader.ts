/** Readers of the changes of pets, in the words of tests. */
import { Effect } from "effect"
import { pets } from "../../../src/api/records/Pets.ts"
import { feedOf, readerOf, settled } from "../../support/changes.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

let organizations = 0

/** A reader of pets, for an organization of the test's own. */
export const reader = Effect.fnUntraced(function* () {
  const { sql } = yield* TestDatabase
  const organization = `org_${++organizations}`
  const { read } = readerOf(yield* feedOf(sql), organization, [pets.name])

  /** The changes since the last time, as `ID NAME`, and the removed ids. */
  const told = Effect.gen(function* () {
    yield* settled(sql)
    yield* sql`select change_mark()`
    const { records, removed } = yield* read()
    return { changed: records.map(({ id, name }) => (typeof name === "string" ? `${id} ${name}` : id)), removed }
  })
  /** Inserts records without a name, and reads them. */
  const insert = Effect.fnUntraced(function* (...ids: ReadonlyArray<string>) {
    for (const id of ids) yield* sql`insert into pets (organization_id, id) values (${organization}, ${id})`
    yield* told
  })
  return { sql, organization, told, insert }
})
