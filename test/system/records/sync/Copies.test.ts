/**
 * Clients that keep a copy as the documentation says, over HTTP, against the program on a Postgres that others write at
 * the same time. They are killed now and then, and resume from what they saved. Nothing may be lost.
 */
import { assert, layer } from "@effect/vitest"
import { Array, Data, Effect, Random } from "effect"
import * as Http from "../../../support/Client.ts"
import { eventually } from "../../../support/eventually.ts"
import { options } from "../../../support/Service.ts"
import { documented } from "./documented.ts"
import { areWhole, clientsOf, Copied, inStep, organization } from "./service.ts"

const resourceOf = (name: string) => documented.find((resource) => resource.name === name) ?? assert.fail(name)

class RolledBack extends Data.TaggedError("RolledBack") {}

const upTo = (most: number) => Random.nextIntBetween(1, most)

const year = "now() - interval '1 year'"

/** Inserts records of a name and a number, changed at a time, which may name the number: `n`. */
const insert = Effect.fnUntraced(function* (name: string, count: number, at = year, prefix = name) {
  const { sql } = yield* Copied
  const { time = "created_at" } = resourceOf(name)
  yield* sql`insert into ${sql(name.replaceAll("-", "_"))} (organization_id, id, ${sql(time)})
    select ${organization}, ${prefix} || '_' || n, ${sql.literal(at)} from generate_series(1, ${count}::integer) n`
})

layer(Copied.layer, options)("a copy is whole", (it) => {
  it.effect("of each resource, after each of two changes", () =>
    Effect.gen(function* () {
      const { ask, sql } = yield* Copied
      for (const resource of documented) {
        const clients = clientsOf(ask, resource, 2)
        yield* insert(resource.name, 3, year, "few")
        yield* areWhole(clients)
        yield* sql`insert into ${sql(resource.name.replaceAll("-", "_"))} (organization_id, id) values (${organization}, 'new')`
        yield* areWhole(clients)
      }
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
      yield* inStep(clientsOf(ask, resourceOf("charges")), writers)
    })
  )

  it.effect("of 1,500 records whose microseconds are within one millisecond, after TRUNCATE as well by changes", () =>
    Effect.gen(function* () {
      const { ask, sql } = yield* Copied
      yield* insert("pets", 1500, `date_trunc('milliseconds', ${year}) + (n % 1000) * interval '1 microsecond'`)
      const clients = clientsOf(ask, resourceOf("pets"))
      yield* areWhole(clients)
      yield* sql`truncate pets`
      yield* insert("pets", 3)
      yield* areWhole(clients.slice(0, 1))
    })
  )

  it.effect("while the worker deletes invoices and their lines", () =>
    Effect.gen(function* () {
      const { address, ask, sql } = yield* Copied
      yield* insert("invoices", 500)
      yield* sql`insert into invoice_lines (organization_id, id, invoice, updated_at)
        select organization_id, id || '_' || line, id, updated_at from invoices, generate_series(1, 2) line
        where organization_id = ${organization} and id like 'invoices_%'`
      const client = yield* Http.make(address)
      const deliver = (delivery: number) =>
        client.call({
          path: "/api/v1/invoice-deletions",
          headers: {
            "content-type": "application/json",
            "idempotency-key": `delivery_${delivery}`,
            "x-organization-id": organization
          },
          body: Http.json({
            invoices: Array.makeBy(50, (index) => ({ invoice_id: `invoices_${delivery * 50 + index + 1}` }))
          })
        })
      const left = sql`select 1 from invoice_lines
        where organization_id = ${organization} and invoice like 'invoices_%' and not is_deleted limit 1`
      const writers = Effect.gen(function* () {
        const answers = yield* Effect.forEach(Array.range(0, 9), deliver, { concurrency: 4 })
        assert.deepStrictEqual([...new Set(answers.map(({ status }) => status))], [202])
        yield* eventually(
          "everything is deleted",
          Effect.map(left, (rows) => rows.length === 0)
        )
      })
      const clients = ["invoices", "invoice-lines"].flatMap((name) => clientsOf(ask, resourceOf(name)))
      yield* inStep(clients, writers)
      for (const { records } of clients) {
        assert.isAtLeast([...records().values()].filter(({ is_deleted }) => is_deleted).length, 500)
      }
    })
  )
})
