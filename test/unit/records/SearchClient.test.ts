/**
 * The walk of a client that uses search alone, over a table that changes before each of its pages. It is a table in
 * memory, so that thousands of histories take a second. Times have microseconds, of which a response shows milliseconds.
 */
import { assert, it } from "@effect/vitest"
import { Arbitrary, Array, Data, DateTime, Effect, Result, Schema } from "effect"
import { integer } from "../../support/arbitraries.ts"
import { tries } from "../../support/tries.ts"
import { searchable } from "../../support/contract/Contract.ts"
import { documented } from "../../system/records/sync/documented.ts"
import type { Ask, Row } from "../../system/records/sync/ask.ts"
import { syncBySearch } from "../../system/records/sync/searchClient.ts"

// All times are in microseconds.
const second = 1_000_000

/** How long a transaction takes at most, from its stamp to its commit. */
const longest = 3 * second

/** In milliseconds. The `Date` of a response has seconds, and is later than what the response shows. */
const margin = longest / 1000 + 2000

const products = { name: "products", time: "modified_at", since: "modified_since", hasDeleted: false } as const

const history = {
  limit: integer(2, 7),
  writes: Arbitrary.array(
    Arbitrary.all({
      kind: Arbitrary.schema(Schema.Literals(["together", "within a millisecond", "removal", "nothing", "hang-up"])),
      first: integer(0, 39),
      count: integer(1, 15),
      takes: integer(0, longest),
      pause: integer(0, 2 * second)
    }),
    { minLength: 10, maxLength: 80 }
  )
}

interface Stored {
  readonly at: number
  readonly version: number
}

const Request = Schema.Struct({
  limit: Schema.Int,
  offset: Schema.Int,
  modified_since: Schema.optionalKey(Schema.UndefinedOr(Schema.String))
})
const isRequest = Schema.is(Request)

class HungUp extends Data.TaggedError("HungUp") {}
class Unexpected extends Data.TaggedError("Unexpected")<{ readonly cause: unknown }> {}

const shown = (at: number) => DateTime.formatIso(DateTime.makeUnsafe(Math.floor(at / 1000)))

interface Write {
  readonly kind: "together" | "within a millisecond" | "removal" | "nothing" | "hang-up"
  readonly first: number
  readonly count: number
  readonly takes: number
  readonly pause: number
}

const rowOf = (id: string, { at, version }: Stored) => ({ id, modified_at: shown(at), version })

/** A table, and a search of it. Before each page, the next of the writes is committed. */
const makeTable = (writes: ReadonlyArray<Write>) => {
  const left = [...writes]
  const table = new Map<string, Stored>()
  let now = DateTime.toEpochMillis(DateTime.makeUnsafe("2026-01-01T00:00:00Z")) * 1000
  let versions = 0
  const put = (id: number, at: number) => table.set(`product_${id}`, { at, version: ++versions })
  for (let id = 0; id < 40; id++) put(id, now - 3600 * second + (id < 30 ? id : id * second))

  const write = ({ count, first, kind, takes }: Write) => {
    for (let id = first; id < first + count; id++) {
      if (kind === "together") put(id, now - takes)
      if (kind === "within a millisecond") put(id, Math.floor((now - takes) / 1000) * 1000 + id)
      if (kind === "removal") table.delete(`product_${id}`)
    }
  }

  const page = ({ limit, modified_since, offset }: typeof Request.Type) => {
    const since = modified_since === undefined ? 0 : DateTime.toEpochMillis(DateTime.makeUnsafe(modified_since)) * 1000
    return [...table]
      .filter(([, { at }]) => at >= since)
      .toSorted(([a, one], [b, other]) => one.at - other.at || (a < b ? -1 : 1))
      .slice(offset, offset + limit)
      .map(([id, stored]) => rowOf(id, stored))
  }

  let asked = 0
  const ask: Ask = (_, request) => {
    assert.isBelow(++asked, 10_000, "the walk does not end")
    const next = left.shift()
    if (next !== undefined) {
      now += next.pause
      write(next)
    }
    if (next?.kind === "hang-up") return Promise.reject(new HungUp())
    if (!isRequest(request)) return Promise.reject(new Unexpected({ cause: request }))
    const date = DateTime.toDate(DateTime.makeUnsafe(now / 1000)).toUTCString()
    return Promise.resolve(Response.json({ body: page(request) }, { headers: { date } }))
  }
  return { table, left, ask }
}

/** Plays a history to its end, by a client whose rounds may be hung up on. */
const play = Effect.fnUntraced(function* (limit: number, writes: ReadonlyArray<Write>) {
  const { ask, left, table } = makeTable(writes)
  const copy = new Map<string, Row>()
  let from: string | undefined
  for (let isLast = false; !isLast;) {
    isLast = left.length === 0
    const before = new Map(table)
    const round = Effect.tryPromise({
      try: () => syncBySearch(ask, products, copy, from, { limit, margin }),
      catch: (cause) => (cause instanceof HungUp ? cause : new Unexpected({ cause }))
    })
    const next = yield* Effect.result(Effect.catchTag(round, "Unexpected", Effect.die))
    if (Result.isFailure(next)) continue
    from = next.success
    for (const [id, stored] of before) {
      if (table.get(id) === stored) assert.deepStrictEqual(copy.get(id), rowOf(id, stored))
    }
  }
})

const rule = "what was committed before a round and stays is in the copy when it ends"

for (const { often, options } of tries({ few: 150, many: 1500, size: 60, maxShrinks: 200 }))
  it.effect.prop(`${rule}${often}`, history, ({ limit, writes }) => play(limit, writes), options)

it.effect(`${rule}, also where a round takes longer than the margin`, () => {
  const bulk: Write = { kind: "together", first: 0, count: 15, takes: 0, pause: 2 * second }
  const late: Write = { kind: "together", first: 39, count: 1, takes: longest, pause: 0 }
  return play(2, [...Array.replicate(bulk, 30), late, ...Array.replicate(bulk, 10)])
})

it("The table of the documentation has every resource that can be searched, as search alone reads it", () => {
  assert.sameMembers(
    documented.map(({ name }) => name),
    searchable.map(({ name }) => name)
  )
  for (const { hasDeleted, name, since, time } of documented) {
    const { fields, filters, orderedBy } = searchable.find((resource) => resource.name === name) ?? assert.fail(name)
    assert.strictEqual(time, orderedBy in fields ? orderedBy : undefined)
    assert.strictEqual(hasDeleted, "include_deleted" in filters)
    if (time === undefined) assert.isUndefined(since)
    else assert.deepInclude(filters[since ?? ""], { compares: "since", fields: [time] })
  }
})
