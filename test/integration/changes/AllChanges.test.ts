/** The feed of the changes of all resources, and histories of writers and readers. */
import { assert, layer } from "@effect/vitest"
import { Array, Duration, Effect } from "effect"
import { searchable } from "../../../src/api/records/index.ts"
import { databaseFeed } from "../../../src/changes/FeedStores.ts"
import * as OrganizationReads from "../../../src/database/OrganizationReads.ts"
import { LongPolls } from "../../../src/changes/Feed.ts"
import { clockOf, readerOf, settled } from "../../support/changes.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"
import { long } from "../../support/tries.ts"
import * as InProcessStand from "../../../scripts/faults/sync/InProcessStand.ts"
import * as PostgresStand from "../../../scripts/faults/sync/PostgresStand.ts"
import * as Histories from "../../../scripts/faults/sync/run.ts"

let organizations = 0

/** A reader without a cursor, of an organization of its own. */
const reader = Effect.gen(function* () {
  const { sql, url } = yield* TestDatabase
  yield* sql`select change_begin()`
  yield* sql`select change_mark()`
  let beside: Effect.Effect<unknown> = Effect.void
  const polls = yield* LongPolls.make
  const poll: typeof polls.poll = (...given) =>
    Effect.andThen(
      Effect.suspend(() => beside),
      polls.poll(...given)
    )
  const clock = yield* clockOf(sql)
  const changes = databaseFeed(sql, OrganizationReads.make(sql), searchable, { poll })
  const organization = `org_${++organizations}`
  const { read: readPage } = readerOf(changes, organization)
  const read = Effect.fnUntraced(function* (limit = 1000, within = Duration.zero) {
    const { has_more: hasMore, is_consistent: isConsistent, items } = yield* readPage(limit, within)
    const seen = items.map((item) => {
      const change = "record" in item ? item.record.id : "removed" in item ? `-${item.removed}` : "reset"
      return `${item.resource} ${change}`
    })
    return { seen, hasMore, isConsistent }
  })
  /** Reads, and makes a change once it waits for one. */
  const readBeside = <E>(change: Effect.Effect<unknown, E>) => {
    beside = Effect.orDie(change)
    return read(1000, Duration.seconds(20))
  }
  const statements = (text: string) => text.replaceAll("$", `'${organization}'`).split("; ")
  /** Runs statements in one transaction. */
  const run = (text: string) =>
    sql.withTransaction(Effect.forEach(statements(text), (statement) => sql.unsafe(statement)))
  const session = Effect.gen(function* () {
    const connection = yield* (yield* clientOf(url)).reserve
    return (text: string) =>
      Effect.forEach(statements(text), (statement) => connection.executeUnprepared(statement, [], undefined))
  })
  return { clock, read, readBeside, run, session, sql }
})

const invoice = (id: string) => `insert into invoices (organization_id, id) values ($, '${id}')`
const line = (id: string) => `insert into invoice_lines (organization_id, id) values ($, '${id}')`

const removedTrigger = (table: string, call = "record_removed") =>
  `trigger removed after delete on ${table} for each row execute function ${call}()`
const disabled = "alter table charge_refunds disable trigger removed"
const enabled = "alter table charge_refunds enable always trigger removed"
const isValid = (is: boolean) =>
  `update pg_index set indisvalid = ${is} where indexrelid = 'charge_adjustments_changes'::regclass`

layer(TestDatabase.layer, { excludeTestServices: true })("the changes of all resources", (it) => {
  it.effect("are every record first, then each write and removal in the order of transactions", () =>
    Effect.gen(function* () {
      const { read, run, sql } = yield* reader
      yield* run(`${invoice("a")}; ${line("a1")}; ${line("a2")}`)
      yield* run("insert into pets (organization_id, id) values ($, 'old')")
      yield* run("delete from pets where organization_id = $")
      yield* settled(sql)
      assert.deepStrictEqual(yield* read(), {
        seen: ["invoices a", "invoice-lines a1", "invoice-lines a2"],
        hasMore: false,
        isConsistent: true
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
      assert.deepStrictEqual(yield* read(), { seen: ["invoices a"], hasMore: false, isConsistent: true })
      yield* run(invoice("b"))
      yield* open(line("open1"))
      assert.deepInclude(yield* read(), { seen: ["invoices b"], isConsistent: true })
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

  it.effect("of a table that is truncated restart with a reset, and the others continue", () =>
    Effect.gen(function* () {
      const { read, run } = yield* reader
      yield* run(`${invoice("a")}; insert into charge_refunds (organization_id, id) values ($, 'r')`)
      yield* read()
      // As a worker of logical replication does.
      yield* run("set local session_replication_role = replica; truncate charge_refunds")
      yield* run(`insert into charge_refunds (organization_id, id) values ($, 's'); ${invoice("b")}`)
      assert.deepStrictEqual((yield* read()).seen, ["charge-refunds reset", "invoices b", "charge-refunds s"])
      assert.deepInclude(yield* read(), { seen: [], isConsistent: true })
    })
  )

  it.effect("of a table whose TRUNCATE is rolled back, to a savepoint or as a whole, continue", () =>
    Effect.gen(function* () {
      const { read, run, session } = yield* reader
      yield* run(invoice("a"))
      yield* read()
      const other = yield* session
      yield* other("begin; truncate invoices; rollback")
      yield* other(`begin; savepoint s; truncate invoices; rollback to s; ${invoice("b")}; commit`)
      assert.deepStrictEqual(yield* read(), { seen: ["invoices b"], hasMore: false, isConsistent: true })
    })
  )

  it.effect.each([false, true])(
    "of TRUNCATE and COPY (freeze %s) in one transaction come beside an older one",
    (freeze) =>
      Effect.gen(function* () {
        const { read, run, session } = yield* reader
        yield* run("insert into pets (organization_id, id) values ($, 'old')")
        yield* read()
        const open = yield* session
        yield* open(`begin; ${invoice("late")}`)
        yield* run(
          `truncate pets; copy pets (organization_id, id) from program 'echo '$',copied' (format csv, freeze ${freeze})`
        )
        yield* run("insert into pets (organization_id, id) values ($, 'new')")
        assert.sameMembers((yield* read()).seen, ["pets reset", "pets copied", "pets new"])
        yield* open("commit")
        assert.deepInclude(yield* read(), { seen: ["invoices late"], isConsistent: true })
      })
  )

  it.effect("of tables without a trigger or an index are refused, and restart once they are whole", () =>
    Effect.gen(function* () {
      const { clock, read, run } = yield* reader
      const tables = ["charge_refunds", "charge_payments", "charge_adjustments"]
      yield* run(invoice("a"))
      for (const table of tables) yield* run(`insert into ${table} (organization_id, id) values ($, 'r')`)
      yield* read()
      yield* run("drop trigger removed on charge_refunds")
      yield* run(`create or replace ${removedTrigger("charge_payments", "change_kept")}`)
      yield* run(isValid(false))
      for (const table of tables) yield* run(`delete from ${table} where organization_id = $`)
      yield* clock.tick
      assert.strictEqual((yield* Effect.flip(read()))._tag, "RecordStoreDown")
      yield* run(
        `create ${removedTrigger("charge_refunds")}; create or replace ${removedTrigger("charge_payments")}; ${isValid(true)}`
      )
      yield* run(invoice("b"))
      yield* clock.tick
      const resets = ["charge-payments reset", "charge-refunds reset", "charge-adjustments reset"]
      assert.sameMembers((yield* read()).seen, [...resets, "invoices b"])
      assert.deepInclude(yield* read(), { seen: [], isConsistent: true })
    })
  )

  it.effect.each<readonly [string, string]>([
    ["is disabled", `${disabled}; DELETE`],
    [
      "is disabled, and those of the order were enabled as for any table",
      `alter table change_feeds disable trigger all; alter table change_feeds enable trigger all; ${disabled}; DELETE`
    ],
    ["was disabled, and is enabled again", `${disabled}; DELETE; ${enabled}`],
    [
      "was dropped, and is made again",
      `drop trigger removed on charge_refunds; DELETE; create ${removedTrigger("charge_refunds")}; ${enabled}`
    ]
  ])("of a table restart where a trigger %s", ([, statements]) =>
    Effect.gen(function* () {
      const { clock, read, run } = yield* reader
      yield* run("insert into charge_refunds (organization_id, id) values ($, 'r')")
      yield* read()
      yield* run(statements.replace("DELETE", "delete from charge_refunds where organization_id = $"))
      yield* clock.tick
      assert.deepStrictEqual((yield* read()).seen, ["charge-refunds reset"])
    })
  )

  it.effect("come to a reader who waits within a second, once a transaction with one has ended", () =>
    Effect.gen(function* () {
      const { read, readBeside, run, session } = yield* reader
      yield* read()
      const open = yield* session
      yield* open(`begin; ${invoice("open")}`)
      yield* run(line("seen"))
      yield* read()
      assert.deepStrictEqual((yield* readBeside(open("commit"))).seen, ["invoices open"])
      assert.deepStrictEqual((yield* readBeside(run("truncate charge_refunds"))).seen, ["charge-refunds reset"])
    })
  )
})

const histories = { seed: 1, events: 0.2, isReduced: false }

layer(TestDatabase.layer, { excludeTestServices: true })("histories", (it) => {
  it.effect("lose nothing on Postgres", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      const stand = yield* InProcessStand.over(url, sql)
      const { failed } = yield* Histories.run({ ...histories, numbers: [1], stands: [stand], embedded: stand })
      assert.deepStrictEqual(failed, [])
    })
  )

  it.effect(
    "lose nothing over HTTP, on a Postgres that crashes, a replica, and the embedded database",
    () =>
      Effect.gen(function* () {
        const stands = [yield* PostgresStand.make]
        const embedded = yield* InProcessStand.embedded
        const { failed } = yield* Histories.run({ ...histories, numbers: Array.range(1, 6), stands, embedded })
        assert.deepStrictEqual(failed, [])
      }),
    long
  )
})
