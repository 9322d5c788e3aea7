/**
 * Clients that keep a copy as the documentation says, over HTTP, against the program on a Postgres that others write at
 * the same time. They are killed now and then, and go on from what they saved. Nothing may be lost.
 */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Array, Data, Deferred, Effect, Fiber, Random } from "effect"
import { searchable } from "../../../support/contract/Contract.ts"
import * as Client from "../../../support/Client.ts"
import { eventually } from "../../../support/eventually.ts"
import { options } from "../../../support/Service.ts"
import { long } from "../../../support/tries.ts"
import type { Ask } from "./ask.ts"
import { type Copy, syncByChanges } from "./changesClient.ts"
import { documented } from "./documented.ts"
import { byChanges, bySearch, Copied, inStep, isWhole, mortal, organization } from "./service.ts"

const resourceOf = (name: string) => documented.find((resource) => resource.name === name) ?? assert.fail(name)

const tableOf = (name: string) => name.replaceAll("-", "_")

/** A client of each kind, killed now and then. */
const clientsOf = (ask: Ask, name: string, limit?: number) =>
  [byChanges(mortal(ask), name, limit), bySearch(mortal(ask), resourceOf(name), limit)].map(
    (client) => [tableOf(name), client] as const
  )

type Clients = ReturnType<typeof clientsOf>

class RolledBack extends Data.TaggedError("RolledBack") {}

const upTo = (most: number) => Random.nextIntBetween(1, most)

describe("the table of the documentation", () => {
  test.each(searchable)("says how $name is read by search alone", ({ fields, filters, name, orderedBy }) => {
    const { hasDeleted, since, time } = resourceOf(name)
    assert.strictEqual(time, orderedBy in fields ? orderedBy : undefined)
    assert.strictEqual(hasDeleted, "include_deleted" in filters)
    if (time === undefined) return assert.isUndefined(since)
    assert.deepInclude(filters[since ?? ""], { compares: "since", fields: [time] })
  })

  test("has every resource that can be searched", () => {
    assert.sameMembers(
      documented.map(({ name }) => name),
      searchable.map(({ name }) => name)
    )
  })
})

const year = "now() - interval '1 year'"

/** Inserts records of a name and a number, changed at a time, which may name the number: `n`. */
const insert = Effect.fnUntraced(function* (name: string, count: number, at = "now()", prefix = name) {
  const { sql } = yield* Copied
  const { time = "created_at" } = resourceOf(name)
  yield* sql`insert into ${sql(tableOf(name))} (organization_id, id, ${sql(time)})
    select ${organization}, ${prefix} || '_' || n, ${sql.literal(at)} from generate_series(1, ${count}::integer) n`
})

/** Brings copies up to date, and checks that they are whole. */
const areWhole = (clients: Clients) => Effect.forEach(clients, ([table, client]) => isWhole(client, table))

layer(Copied.layer, options)("a copy is whole", (it) => {
  it.effect.each(documented)("of $name", ({ name }) =>
    Effect.gen(function* () {
      const { ask, sql } = yield* Copied
      const clients = clientsOf(ask, name, 2)
      yield* insert(name, 5, year, "few")
      yield* areWhole(clients)
      yield* sql`insert into ${sql(tableOf(name))} (organization_id, id) values (${organization}, 'another')`
      yield* areWhole(clients)
    })
  )

  it.effect("while four writers have transactions of up to 200 ms, some of which are rolled back", () =>
    Effect.gen(function* () {
      const { ask, sql } = yield* Copied
      yield* insert("charges", 40, `${year} + n * interval '1 second'`)
      const transaction = Effect.gen(function* () {
        const [id, status, millis] = [yield* upTo(40), yield* upTo(1000), yield* upTo(200)]
        yield* sql`update charges set status = ${`${status}`}, updated_at = now() where id = ${`charges_${id}`}`
        yield* sql`insert into charges (organization_id, id) values (${organization}, ${`new_${status}`})
          on conflict (organization_id, id) do update set status = ${`again ${status}`}, updated_at = now()`
        yield* Effect.sleep(millis)
        if (status % 5 === 0) return yield* new RolledBack()
      }).pipe(
        sql.withTransaction,
        Effect.catchTag("RolledBack", () => Effect.void),
        Effect.retry({ times: 20 })
      )
      const writers = Effect.forEach(Array.range(1, 40), () => transaction, { concurrency: 4 })
      yield* inStep(clientsOf(ask, "charges"), writers)
    })
  )

  it.effect(
    "of 5,000 records that one UPDATE changes while they are read",
    () =>
      Effect.gen(function* () {
        const { ask, sql } = yield* Copied
        yield* insert("products", 5000, year)
        const clients = clientsOf(ask, "products")
        yield* areWhole(clients)
        const change = (name: string) =>
          sql`update products set product_name = ${name}, modified_at = now() where organization_id = ${organization}`
        yield* change("changed before")
        yield* areWhole(clients)
        yield* inStep(clients, change("changed meanwhile"))
      }),
    long
  )

  it.effect("where records that were read are changed before each page, and all were in one millisecond", () =>
    Effect.gen(function* () {
      const { ask, sql } = yield* Copied
      yield* insert(
        "subscriptions",
        3000,
        `date_trunc('milliseconds', ${year}) + (n % 1000) * interval '1 microsecond'`
      )
      const change = sql`
        update subscriptions t set status = 'changed', updated_at = now()
        from (
          select id from subscriptions where organization_id = ${organization} order by updated_at, id limit 150
        ) oldest
        where t.organization_id = ${organization} and t.id = oldest.id`
      const run = Effect.runPromiseWith(yield* Effect.context())
      let pages = 0
      const changing: Ask = (path, request) => {
        pages += 1
        return pages === 1 || pages > 12 ? ask(path, request) : run(change).then(() => ask(path, request))
      }
      // A single round.
      yield* isWhole(bySearch(changing, resourceOf("subscriptions"), 500), "subscriptions")
      assert.isAbove(pages, 6)
      pages = 0
      const byPosition = byChanges(changing, "subscriptions", 500)
      yield* byPosition.sync
      // What is changed meanwhile, transactions of other tests may hold back: at first from these pages, and from now on
      // it is left as it is.
      assert.isAtLeast(pages, 6)
      pages = 12
      yield* isWhole(byPosition, "subscriptions")
    })
  )

  it.effect("of 1,500 records whose microseconds are within one millisecond", () =>
    Effect.gen(function* () {
      const { ask } = yield* Copied
      yield* insert("pets", 1500, `date_trunc('milliseconds', ${year}) + (n % 1000) * interval '1 microsecond'`)
      yield* areWhole(clientsOf(ask, "pets"))
    })
  )

  it.effect("while the worker deletes invoices and their lines", () =>
    Effect.gen(function* () {
      const { address, ask, sql } = yield* Copied
      yield* insert("invoices", 1000, year)
      yield* sql`insert into invoice_lines (organization_id, id, invoice, updated_at)
        select organization_id, id || '_' || line, id, updated_at from invoices, generate_series(1, 2) line
        where organization_id = ${organization} and id like 'invoices_%'`
      const client = yield* Client.make(address)
      const deliver = (delivery: number) =>
        client.call({
          path: "/api/v1/invoice-deletions",
          headers: {
            "content-type": "application/json",
            "idempotency-key": `delivery_${delivery}`,
            "x-organization-id": organization
          },
          body: Client.json({
            invoices: Array.makeBy(50, (index) => ({ invoice_id: `invoices_${delivery * 50 + index + 1}` }))
          })
        })
      const deleted = sql<{ left: number }>`
        select count(*)::integer as left from invoice_lines
        where organization_id = ${organization} and invoice like 'invoices_%' and not is_deleted`
      const writers = Effect.gen(function* () {
        const answers = yield* Effect.forEach(
          Array.makeBy(20, (index) => index),
          deliver,
          { concurrency: 4 }
        )
        assert.deepStrictEqual([...new Set(answers.map(({ status }) => status))], [202])
        yield* eventually(
          "everything is deleted",
          Effect.map(deleted, ([row]) => row?.left === 0)
        )
      })
      const clients = [...clientsOf(ask, "invoices"), ...clientsOf(ask, "invoice-lines")]
      yield* inStep(clients, writers)
      for (const [, { records }] of clients) {
        assert.isAtLeast([...records().values()].filter(({ is_deleted }) => is_deleted).length, 1000)
      }
    })
  )

  it.effect("where a writer leaves updated_at alone", () =>
    Effect.gen(function* () {
      const { ask, sql } = yield* Copied
      yield* insert("payment-plans", 20, year)
      const clients = clientsOf(ask, "payment-plans")
      yield* areWhole(clients)
      yield* sql`update payment_plans set status = 'changed' where organization_id = ${organization}`
      yield* areWhole(clients)
    })
  )

  it.effect("by changes, whatever writers do", () =>
    Effect.gen(function* () {
      const { ask, sql } = yield* Copied
      yield* insert("charge-payments", 30)
      const clients = clientsOf(ask, "charge-payments", 7).slice(0, 1)
      const mine = sql`organization_id = ${organization}`
      const writes = [
        sql`update charge_payments set status = 'backdated', updated_at = '2001-01-01' where ${mine} and id like '%1'`,
        sql`update charge_payments set status = 'ahead', updated_at = '2999-01-01' where ${mine} and id like '%2'`,
        sql`delete from charge_payments where ${mine} and id like '%3'`,
        sql`insert into charge_payments (organization_id, id, updated_at)
          values (${organization}, 'charge-payments_3', '2001-01-01')`,
        sql`update charge_payments set id = 'moved_' || id where ${mine} and id like '%4'`,
        sql.withTransaction(
          Effect.andThen(
            sql`delete from charge_payments where ${mine}`,
            sql`insert into charge_payments (organization_id, id) select ${organization}, n from generate_series(1, 9) n`
          )
        ),
        sql.withTransaction(
          Effect.andThen(
            sql`set local session_replication_role = replica`,
            sql`update charge_payments set status = 'replicated', updated_at = '2001-01-01' where ${mine} and id > '5'`
          )
        ),
        sql`delete from charge_payments where ${mine} and id < '3'`
      ]
      yield* areWhole(clients)
      for (const write of writes) {
        yield* write
        yield* areWhole(clients)
      }
      yield* inStep(
        clients,
        Effect.forEach(writes.slice(0, 4).concat(writes.slice(5)), (write) => Effect.ignore(write))
      )
    })
  )

  it.effect("by changes, after the order began anew", () =>
    Effect.gen(function* () {
      const { ask, sql } = yield* Copied
      yield* insert("charge-refunds", 20)
      const clients = clientsOf(ask, "charge-refunds", 7).slice(0, 1)
      yield* areWhole(clients)
      yield* sql`truncate charge_refunds`
      yield* insert("charge-refunds", 3)
      yield* areWhole(clients)
    })
  )

  it.effect("by changes, once the transaction has ended that held the last ones back", () =>
    Effect.gen(function* () {
      const { ask, sql } = yield* Copied
      const copy: Copy = { records: new Map() }
      const sync = Effect.promise(() => syncByChanges(ask, "charge-adjustments", copy, () => Promise.resolve()))
      const isOpen = yield* Deferred.make<void>()
      const mayEnd = yield* Deferred.make<void>()
      const holder = yield* insert("charge-adjustments", 3).pipe(
        Effect.andThen(Deferred.succeed(isOpen, undefined)),
        Effect.andThen(Deferred.await(mayEnd)),
        sql.withTransaction,
        Effect.forkScoped
      )
      yield* Deferred.await(isOpen)
      yield* sql`insert into charge_adjustments (organization_id, id) values (${organization}, 'after')`
      assert.isAbove(yield* sync, 0)
      assert.isFalse(copy.records.has("after"))
      yield* Deferred.succeed(mayEnd, undefined)
      yield* Fiber.join(holder)
      yield* eventually(
        "nothing is held back",
        Effect.map(sync, (lag) => lag === 0)
      )
      assert.containsAllKeys(Object.fromEntries(copy.records), [
        "after",
        "charge-adjustments_1",
        "charge-adjustments_3"
      ])
    })
  )
})
