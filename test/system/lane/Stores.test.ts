/**
 * Stores that refuse, lock and leave: the lane responds as the router does.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Array, Context, Duration, Effect, Layer } from "effect"
import { json } from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import { inTime } from "../../support/inTime.ts"
import { options } from "../../support/Service.ts"
import * as TcpProxy from "../../support/TcpProxy.ts"
import { newLogin, TestDatabase } from "../../support/TestDatabase.ts"
import { agree, each, exchange, start, type Ways } from "./TwoWays.ts"
import { header, requestTo, textOf } from "./wire.ts"

const make = Effect.gen(function* () {
  const { proxy, url } = yield* TcpProxy.through((yield* newLogin("api")).url)
  return { proxy, ways: yield* start({ DATABASE_URL: url, ROLES: "data-api" }) }
})

/** Both ways to a database behind a proxy, as the role of the data API. */
class Stores extends Context.Service<Stores, Effect.Success<typeof make>>()(
  "practice-data/test/system/lane/Stores/Stores"
) {
  static readonly layer = Layer.effect(Stores, make).pipe(Layer.provideMerge(TestDatabase.layerDemo))
}

const unknown = "pda_live_unknown"

const search = requestTo("/charges/search", '{"limit":1}')

/** The id of requests that are sent until they succeed. */
const retried = "retried"

const reads = [
  textOf(search),
  textOf(requestTo("/charges/search", '{"limit":1000}')),
  textOf(requestTo("/charges/get", '{"id":"charge_oakridge_0001"}')),
  textOf(requestTo("/changes", '{"limit":1,"resources":["charges"]}')),
  textOf(requestTo("/charges/search", '{"limit":0}')),
  textOf(requestTo("/charges/search", '{"organization":"org_harbor"}')),
  textOf(requestTo("/charges/search", "{}", unknown))
]

/** Each read on a connection of its own, at the same time. */
const agreeOnReads = (ways: Ways) =>
  Effect.forEach(
    reads,
    (read) => Effect.map(agree(ways, exchange({ pieces: [read] }), read), ([found]) => found?.head.slice(9, 12)),
    { concurrency: "unbounded" }
  )

const allRead = ["200", "200", "200", "200", "400", "400", "401"]
const noneReads = Array.replicate("503", reads.length)
const noRecords = ["503", "503", "503", "503", "400", "400", "401"]

/** Waits until both respond to a read with a text. */
const both = Effect.fnUntraced(function* (wanted: string) {
  const { ways } = yield* Stores
  const read = each(ways, exchange({ pieces: [textOf(header("x-request-id", retried)(search))] }))
  yield* eventually(wanted, read, ({ lane, router }) => {
    const [one, other] = [lane, router].map(([first]) => json(first))
    assert.match(`${one}${other}`, /^(\{"head":"HTTP\/1.1 (200|503) .*){2}$/)
    return one?.includes(wanted) === true && other?.includes(wanted) === true
  })
})

/** Waits until both read again. */
const restored = both(" 200 OK")

const locked = <A, E, R>(table: string, does: Effect.Effect<A, E, R>) =>
  Effect.flatMap(TestDatabase, ({ sql }) =>
    sql.withTransaction(Effect.andThen(sql.unsafe(`lock table ${table} in access exclusive mode`), does))
  )

layer(Stores.layer, options)("The lane and the router", (it) => {
  it.effect("respond the same without the privilege to read a table", () =>
    Effect.gen(function* () {
      const [{ sql }, { ways }] = [yield* TestDatabase, yield* Stores]
      yield* sql`revoke select on charges from practice_data_api`
      assert.deepStrictEqual(yield* agreeOnReads(ways), noRecords)
      yield* sql`grant select on charges to practice_data_api`
      assert.deepStrictEqual(yield* agreeOnReads(ways), allRead)
    })
  )

  it.effect.each([
    ["api_keys", noneReads, 2],
    ["charges", noRecords, 8]
  ] as const)("respond the same while %s is locked", ([table, expected, seconds]) =>
    Effect.gen(function* () {
      const { ways } = yield* Stores
      const [took, statuses] = yield* Effect.timed(locked(table, agreeOnReads(ways)))
      assert.deepStrictEqual(statuses, expected)
      assert.isBelow(Duration.toSeconds(took), inTime(seconds + 0.2))
      yield* restored
    })
  )

  it.effect.each([
    ["refuses connections", "refuse"],
    ["is silent", "swallow"]
  ] as const)("respond the same while the database %s", ([, cut]) =>
    Effect.gen(function* () {
      const { proxy, ways } = yield* Stores
      yield* proxy.cut(cut)
      if (cut === "swallow") yield* both("cannot be reached")
      assert.deepStrictEqual(yield* agreeOnReads(ways), noneReads)
      yield* proxy.mend
      yield* restored
    })
  )
})
