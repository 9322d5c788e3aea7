/** Writers of pets, at random: several at once, in transactions that overlap, some of which are rolled back. */
import { Effect, Random } from "effect"
import type { Database } from "../../src/database/Database.ts"
import { organization } from "./Follower.ts"

const ids = 30

let written = 0
let committed = 0

/** A statement that changes a pet, or several. */
const change = Effect.gen(function* () {
  const id = `pet_${yield* Random.nextIntBetween(0, ids)}`
  const name = `name ${++written}`
  const kind = yield* Random.nextIntBetween(0, 10)
  if (kind < 5) {
    return `insert into pets (organization_id, id, name) values ('${organization}', '${id}', '${name}')
      on conflict (organization_id, id) do update set name = excluded.name`
  }
  if (kind < 7) return `delete from pets where organization_id = '${organization}' and id = '${id}'`
  if (kind < 8) return `update pets set name = '${name}' where organization_id = '${organization}' and id < '${id}'`
  return `update pets set name = '${name}', updated_at = '2020-01-01' where organization_id = '${organization}' and id = '${id}'`
})

const pause = Effect.flatMap(Random.nextIntBetween(0, 60), (millis) => Effect.sleep(millis))

/** A transaction of some changes; one that fails, because others hold its rows or the server is gone, is none. */
export const transaction = (sql: Database) =>
  Effect.gen(function* () {
    const session = yield* sql.reserve
    const run = (text: string) => session.executeUnprepared(text, [], undefined)
    // Whatever ends the fiber, the session has no open transaction. After the end there is nothing to roll back.
    yield* Effect.addFinalizer(() => Effect.ignore(run("rollback")))
    yield* run("begin")
    yield* run("set local lock_timeout = '100ms'")
    for (let left = yield* Random.nextIntBetween(1, 4); left > 0; left--) {
      yield* run(yield* change)
      yield* pause
    }
    const end = (yield* Random.nextIntBetween(0, 5)) === 0 ? "rollback" : "commit"
    yield* run(end)
    committed += end === "commit" ? 1 : 0
  }).pipe(Effect.scoped, Effect.ignore)

/** How many transactions have been committed. */
export const commits = () => committed

/** Writes with a number of writers at once until it is interrupted. */
export const write = (sql: Database, writers = 4) =>
  Effect.all(
    Array.from({ length: writers }, () => Effect.forever(Effect.andThen(transaction(sql), Effect.sleep(1)))),
    { concurrency: "unbounded", discard: true }
  )
