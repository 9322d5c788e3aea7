/** The program over a Postgres, and clients of it that keep a copy, as the tests of copies need them. */
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
  const program = yield* Process.start({ DATABASE_URL: url, DATABASE_POOL_SIZE: "8", DELETION_DELAY: "50 millis" })
  const address = yield* program.address
  return { address, key: Redacted.value(key), sql, url, ask: connect(address, Redacted.value(key)) }
})

/** The program, an endpoint of it as a client asks it, and a client of its database. */
export class Copied extends Context.Service<Copied, Effect.Success<typeof make>>()(
  "practice-data/test/system/records/sync/service"
) {
  static readonly layer = Layer.effect(Copied, make).pipe(Layer.provide([TestDatabase.layer, Reactivity.layer]))
}

const attempt = <A>(work: () => Promise<A>) =>
  Effect.tryPromise({
    try: work,
    catch: (cause) => (cause instanceof Killed ? cause : new Unexpected({ cause }))
  }).pipe(Effect.catchTag("Unexpected", Effect.die))

/** Asks, and kills the client after more and more responses, before it has applied them. */
export const mortal = (ask: Ask): Ask => {
  let [asked, next] = [0, 3]
  return (path, request) =>
    ask(path, request).then((response) => {
      if (++asked < next) return response
      next *= 2
      return Promise.reject(new Killed())
    })
}

/** A client that keeps a copy, and starts again from what it saved where it is killed. */
export interface Client {
  readonly name: string
  /** Brings the copy up to date, once. */
  readonly sync: Effect.Effect<void>
  readonly records: () => ReadonlyMap<string, Row>
}

/** One that uses changes. It is also killed while it saves, now and then. */
export const byChanges = (ask: Ask, resource: string, limit = 1000): Client => {
  let saved: Copy = { records: new Map() }
  let [saves, next] = [0, 2]
  const save = (copy: Copy) => {
    if (++saves === next) {
      next *= 2
      return Promise.reject(new Killed())
    }
    saved = { ...copy, records: new Map(copy.records) }
    return Promise.resolve()
  }
  const run = attempt(() =>
    syncByChanges(ask, resource, { ...saved, records: new Map(saved.records) }, save, { limit })
  )
  return { name: "changes", sync: Effect.asVoid(Effect.eventually(run)), records: () => saved.records }
}

/** One that uses search alone. */
export const bySearch = (ask: Ask, resource: Resource, limit = 1000): Client => {
  const records = new Map<string, Row>()
  let from: string | undefined
  const round = attempt(() => syncBySearch(ask, resource, records, from, { limit, margin }))
  const save = (next: string | undefined) => Effect.sync(() => void (from = next))
  return { name: "search", sync: Effect.flatMap(Effect.eventually(round), save), records: () => records }
}

/** The ids of the records that a client's copy does not have as the table has them, once it is brought up to date. */
const differences = Effect.fnUntraced(function* (client: Client, table: string, seesRemovals: boolean) {
  const { sql } = yield* Copied
  yield* settled(sql)
  yield* client.sync
  const rows = yield* sql<{ id: string; record: string }>`
    select id, record from ${sql(table)} where organization_id = ${organization}`
  const copy = client.records()
  const wrong = rows.filter(({ id, record }) => json(copy.get(id)) !== record).map(({ id }) => id)
  const stored = new Set(rows.map(({ id }) => id))
  const kept = seesRemovals ? [...copy.keys()].filter((id) => !stored.has(id)) : []
  return [...wrong, ...kept]
})

/** Checks that a copy is whole. A client that uses search alone does not see what is gone. */
export const isWhole = Effect.fnUntraced(function* (client: Client, table: string) {
  assert.deepStrictEqual(yield* differences(client, table, client.name === "changes"), [], client.name)
})

/** Keeps copies in step while writers write, and checks that they are whole in the end. */
export const inStep = Effect.fnUntraced(function* <E, R>(
  clients: ReadonlyArray<readonly [table: string, client: Client]>,
  writers: Effect.Effect<unknown, E, R>
) {
  let isOver = false
  const reading = yield* Effect.forEach(clients, ([, { sync }]) => Effect.repeat(sync, { until: () => isOver }), {
    concurrency: "unbounded"
  }).pipe(Effect.forkScoped)
  yield* writers
  isOver = true
  yield* Fiber.join(reading)
  yield* Effect.forEach(clients, ([table, client]) => isWhole(client, table))
})
