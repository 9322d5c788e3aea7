/** The program over a Postgres, and clients of it that keep a copy. */
import { assert } from "@effect/vitest"
import { Context, Data, Effect, Fiber, Layer, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { connect as connectTo, layerShared } from "../../../../src/database/Database.ts"
import * as ApiKeys from "../../../../src/keys/ApiKeys.ts"
import { json } from "../../../support/Client.ts"
import * as Process from "../../../support/Process.ts"
import { settled } from "../../../support/settled.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { type Ask, connect, type Row } from "./ask.ts"
import { type Copy, syncByChanges } from "./changesClient.ts"
import { type Resource, syncBySearch } from "./searchClient.ts"

/** The organization whose records are copied. */
export const organization = "org_copied"

/** In milliseconds; longer than any transaction of these tests takes. */
const margin = 5000

class Killed extends Data.TaggedError("Killed") {}
class Unexpected extends Data.TaggedError("Unexpected")<{ readonly cause: unknown }> {}

const make = Effect.gen(function* () {
  const { sql: admin, url } = yield* TestDatabase
  const sql = yield* connectTo({
    url: Redacted.make(url),
    applicationName: "practice-data-test-writers",
    maxConnections: 8,
    statementTimeout: "1 minute"
  })
  const { key } = yield* Effect.provide(ApiKeys.create({ organization, name: "copies" }), layerShared(admin))
  const program = yield* Process.start({ DATABASE_URL: url, DATABASE_POOL_SIZE: "8", DELETION_DELAY: "50ms" })
  const address = yield* program.address
  return { address, sql, ask: connect(address, Redacted.value(key)) }
})

/** The program, an endpoint of it as a client asks it, and a client of its database. */
export class Copied extends Context.Service<Copied, Effect.Success<typeof make>>()(
  "practice-data/test/system/records/sync/service"
) {
  static readonly layer = Layer.effect(Copied, make).pipe(Layer.provide([TestDatabase.layer, Reactivity.layer]))
}

/** Fails after more and more calls, as a client that is killed. */
const mortal = <Args extends ReadonlyArray<unknown>, A>(call: (...args: Args) => Promise<A>, first: number) => {
  let [calls, next] = [0, first]
  return (...args: Args): Promise<A> =>
    call(...args).then((result) => {
      if (++calls < next) return result
      next *= 2
      return Promise.reject(new Killed())
    })
}

const untilAlive = <A>(work: () => Promise<A>) =>
  Effect.tryPromise({
    try: work,
    catch: (cause) => (cause instanceof Killed ? cause : new Unexpected({ cause }))
  }).pipe(Effect.catchTag("Unexpected", Effect.die), Effect.eventually)

/** A client that keeps a copy of a table, and starts again from what it saved where it is killed. */
export interface Client {
  readonly table: string
  /** True if it also removes what was removed. */
  readonly seesRemovals: boolean
  /** Brings the copy up to date, once. */
  readonly sync: Effect.Effect<unknown>
  readonly records: () => ReadonlyMap<string, Row>
}

/** A client that uses changes, and one that uses search alone. */
export const clientsOf = (ask: Ask, resource: Resource, limit = 1000): ReadonlyArray<Client> => {
  const table = resource.name.replaceAll("-", "_")
  let saved: Copy = { records: new Map() }
  const save = mortal((copy: Copy) => {
    saved = { ...copy, records: new Map(copy.records) }
    return Promise.resolve()
  }, 2)
  const asked = mortal(ask, 3)
  const copyOf = () => ({ ...saved, records: new Map(saved.records) })
  const records = new Map<string, Row>()
  let from: string | undefined
  return [
    {
      table,
      seesRemovals: true,
      sync: untilAlive(() => syncByChanges(asked, resource.name, copyOf(), save, { limit })),
      records: () => saved.records
    },
    {
      table,
      seesRemovals: false,
      sync: Effect.map(
        untilAlive(() => syncBySearch(asked, resource, records, from, { limit, margin })),
        (next) => (from = next)
      ),
      records: () => records
    }
  ]
}

/** Brings copies up to date, and checks that they are the same as their tables. */
export const areWhole = Effect.fnUntraced(function* (clients: ReadonlyArray<Client>) {
  const { sql } = yield* Copied
  for (const { records, seesRemovals, sync, table } of clients) {
    yield* settled(sql)
    yield* sync
    const rows = yield* sql<{ id: string; record: string }>`
      select id, record from ${sql(table)} where organization_id = ${organization}`
    const copy = records()
    const wrong = rows.filter(({ id, record }) => json(copy.get(id)) !== record).map(({ id }) => id)
    const stored = new Set(rows.map(({ id }) => id))
    const kept = seesRemovals ? [...copy.keys()].filter((id) => !stored.has(id)) : []
    assert.deepStrictEqual({ wrong, kept }, { wrong: [], kept: [] }, table)
  }
})

/** Keeps copies in step while writers write, and checks that they are whole in the end. */
export const inStep = Effect.fnUntraced(function* <E, R>(
  clients: ReadonlyArray<Client>,
  writers: Effect.Effect<unknown, E, R>
) {
  let isOver = false
  const reading = yield* Effect.forEach(clients, ({ sync }) => Effect.repeat(sync, { until: () => isOver }), {
    concurrency: "unbounded"
  }).pipe(Effect.forkScoped)
  yield* writers
  isOver = true
  yield* Fiber.join(reading)
  yield* areWhole(clients)
})
