/** The feed of the changes of all resources. */
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Fiber, Schema } from "effect"
import { searchable } from "../../../src/api/records/index.ts"
import * as ChangeClock from "../../../src/records/ChangeClock.ts"
import { ofAll } from "../../../src/records/FeedPages.ts"
import * as Pages from "../../../src/records/Pages.ts"
import * as Postgres from "../../../src/records/Postgres.ts"
import { settled } from "../../support/settled.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"
import { asKnown } from "./stores.ts"

const Page = Schema.Struct({
  body: Schema.Array(
    Schema.Struct({
      resource: Schema.String,
      record: Schema.optional(Schema.Struct({ id: Schema.String })),
      removed: Schema.optional(Schema.String),
      reset: Schema.optional(Schema.Literal(true))
    })
  ),
  cursor: Schema.String,
  has_more: Schema.Boolean,
  is_consistent: Schema.Boolean,
  schema: Schema.String
})
const decodePage = Schema.decodeEffect(Schema.fromJsonString(Page))

let organizations = 0

/** A reader without a cursor, of an organization of its own. */
const reader = Effect.gen(function* () {
  const { sql, url } = yield* TestDatabase
  yield* sql`select change_begin()`
  yield* sql`select change_mark()`
  const clock = ChangeClock.make(sql, sql)
  const changes = Postgres.makeChanges(sql, ofAll(searchable), clock)
  const organization = `org_${++organizations}`
  let cursor: string | undefined
  const read = Effect.fnUntraced(function* (limit = 1000, resources?: ReadonlyArray<string>, wait = Duration.zero) {
    const { json, lag } = yield* asKnown(organization)(changes({ cursor, limit, wait }, resources))
    const page = yield* decodePage(Pages.toText(json))
    cursor = page.cursor
    const seen = page.body.map(({ record, removed, reset, resource }) => {
      const change = record?.id ?? (removed === undefined ? "" : `-${removed}`)
      return `${resource} ${reset === true ? "reset" : change}`
    })
    return { seen, hasMore: page.has_more, isConsistent: page.is_consistent, lag }
  })
  const statements = (text: string) => text.replaceAll("$", `'${organization}'`).split("; ")
  /** Runs statements in one transaction. */
  const run = (text: string) =>
    sql.withTransaction(Effect.forEach(statements(text), (statement) => sql.unsafe(statement), { discard: true }))
  const session = Effect.gen(function* () {
    const connection = yield* (yield* clientOf(url)).reserve
    return (text: string) =>
      Effect.forEach(statements(text), (statement) => connection.executeUnprepared(statement, [], undefined), {
        discard: true
      })
  })
  return { clock, read, run, session, sql }
})

const invoice = (id: string) => `insert into invoices (organization_id, id) values ($, '${id}')`
const line = (id: string) => `insert into invoice_lines (organization_id, id) values ($, '${id}')`

layer(TestDatabase.layer, { excludeTestServices: true })("the changes of all resources", (it) => {
  it.effect(
    "are every record first, then what is written, removed and written again, in the order of transactions",
    () =>
      Effect.gen(function* () {
        const { read, run, sql } = yield* reader
        yield* run(`${invoice("a")}; ${line("a1")}; ${line("a2")}`)
        yield* run(
          "insert into pets (organization_id, id) values ($, 'old'); delete from pets where organization_id = $"
        )
        yield* settled(sql)
        assert.deepStrictEqual(yield* read(), {
          seen: ["invoices a", "invoice-lines a1", "invoice-lines a2"],
          hasMore: false,
          isConsistent: true,
          lag: 0
        })
        yield* run(line("a3"))
        yield* run("delete from invoice_lines where organization_id = $ and id in ('a1', 'a2')")
        yield* run(line("a2"))
        yield* run("update invoices set status = 'paid' where organization_id = $")
        const { seen } = yield* read()
        assert.deepStrictEqual(seen, ["invoice-lines a3", "invoice-lines -a1", "invoice-lines a2", "invoices a"])
        assert.deepInclude(yield* read(), { seen: [], hasMore: false, isConsistent: true })
      })
  )

  it.effect("are not held back by an open transaction, whose own come once it ends", () =>
    Effect.gen(function* () {
      const { read, run, session } = yield* reader
      const open = yield* session
      yield* open(`begin; ${invoice("open")}`)
      yield* run(invoice("a"))
      assert.deepStrictEqual(yield* read(), { seen: ["invoices a"], hasMore: false, isConsistent: true, lag: 0 })
      yield* run(invoice("b"))
      yield* open(line("open1"))
      assert.deepInclude(yield* read(), { seen: ["invoices b"], isConsistent: true, lag: 0 })
      yield* open("commit")
      assert.deepInclude(yield* read(1), { seen: ["invoices open"], hasMore: true, isConsistent: false })
      yield* run(invoice("c"))
      assert.deepInclude(yield* read(1), { seen: ["invoice-lines open1"], hasMore: true })
      assert.deepInclude(yield* read(1), { seen: ["invoices c"], hasMore: false, isConsistent: true })
    })
  )

  it.effect("of a prepared transaction come once it is committed, while an older one is still running", () =>
    Effect.gen(function* () {
      const { read, run, session } = yield* reader
      const [older, open] = [yield* session, yield* session]
      yield* older(`begin; ${invoice("older")}`)
      yield* open(`begin; savepoint s; ${invoice("prepared")}; release s`)
      yield* open("prepare transaction 'changes'")
      yield* run(invoice("a"))
      assert.deepInclude(yield* read(), { seen: ["invoices a"], isConsistent: true })
      yield* open("commit prepared 'changes'")
      assert.deepInclude(yield* read(), { seen: ["invoices prepared"], isConsistent: true })
      yield* older("commit")
      assert.deepInclude(yield* read(), { seen: ["invoices older"], isConsistent: true })
    })
  )

  it.effect("of a table that is truncated begin anew with a reset, and the others go on", () =>
    Effect.gen(function* () {
      const { read, run } = yield* reader
      yield* run(`${invoice("a")}; insert into charge_refunds (organization_id, id) values ($, 'r')`)
      yield* read()
      yield* run("truncate charge_refunds")
      yield* run(`insert into charge_refunds (organization_id, id) values ($, 's'); ${invoice("b")}`)
      assert.deepStrictEqual((yield* read()).seen, ["charge-refunds reset", "invoices b", "charge-refunds s"])
      assert.deepInclude(yield* read(), { seen: [], isConsistent: true })
    })
  )

  it.effect("of a resource that joins begin with a reset; one that leaves is not waited for", () =>
    Effect.gen(function* () {
      const { read, run } = yield* reader
      yield* run(`${invoice("a")}; ${line("a1")}`)
      yield* run(line("a2"))
      assert.deepStrictEqual((yield* read(1000, ["invoices"])).seen, ["invoices a"])
      yield* run(invoice("b"))
      const both = ["invoices", "invoice-lines"]
      assert.deepInclude(yield* read(2, both), {
        seen: ["invoice-lines reset", "invoices b", "invoice-lines a1"],
        hasMore: true,
        isConsistent: false
      })
      yield* run(`${invoice("c")}; delete from invoice_lines where organization_id = $ and id = 'a1'`)
      assert.deepInclude(yield* read(9, both), {
        seen: ["invoices c", "invoice-lines a2", "invoice-lines -a1"],
        isConsistent: true
      })
      yield* run(line("a4"))
      assert.deepStrictEqual((yield* read(9, ["invoices"])).seen, [])
      assert.deepStrictEqual((yield* read(9, both)).seen, [
        "invoice-lines reset",
        "invoice-lines a2",
        "invoice-lines a4"
      ])
    })
  )

  it.effect("come to a reader who waits as soon as a transaction with one has ended, or a table is truncated", () =>
    Effect.gen(function* () {
      const { clock, read, run, session } = yield* reader
      yield* Effect.forkScoped(clock.watch)
      yield* read()
      const open = yield* session
      yield* open(`begin; ${invoice("open")}`)
      yield* run(line("seen"))
      yield* read()
      const waiting = yield* Effect.forkScoped(read(1000, undefined, Duration.seconds(20)))
      yield* open("commit")
      assert.deepStrictEqual((yield* Fiber.join(waiting)).seen, ["invoices open"])
      const another = yield* Effect.forkScoped(read(1000, undefined, Duration.seconds(20)))
      yield* run("truncate charge_refunds")
      assert.deepStrictEqual((yield* Fiber.join(another)).seen, ["charge-refunds reset"])
    })
  )
})
