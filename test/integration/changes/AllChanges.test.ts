/** The feed of the changes of all resources, readers that wait for changes, and histories of writers and readers. */
import { assert, layer } from "@effect/vitest"
import { Array, Duration, Effect, Fiber, Schema } from "effect"
import { searchable } from "../../../src/api/records/index.ts"
import { databaseFeed } from "../../../src/changes/FeedStores.ts"
import { Connections } from "../../../src/changes/ChangeClock.ts"
import { toText } from "../../../src/database/RecordJson.ts"
import { combinedFeed } from "../../../src/changes/FeedDefinition.ts"
import * as Records from "../../../src/records/Repository.ts"
import { pets } from "../../../src/api/records/Pets.ts"
import { clockOf } from "../../support/Follower.ts"
import { settled } from "../../support/settled.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"
import { asKnown } from "../records/stores.ts"
import { eventually } from "../../support/eventually.ts"
import { long } from "../../support/tries.ts"
import * as InProcessStand from "../../../scripts/faults/sync/InProcessStand.ts"
import * as PostgresStand from "../../../scripts/faults/sync/PostgresStand.ts"
import * as Histories from "../../../scripts/faults/sync/run.ts"

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
  let waits = 0
  const clock = yield* clockOf(sql)
  const wait: typeof clock.wait = (...seen) => {
    waits += 1
    return clock.wait(...seen)
  }
  const changes = databaseFeed(sql, combinedFeed(searchable), { ...clock, wait })
  const organization = `org_${++organizations}`
  let cursor: string | undefined
  const read = Effect.fnUntraced(function* (limit = 1000, within = Duration.zero) {
    const { json, lag } = yield* asKnown(organization)(changes({ cursor, limit, wait: within }))
    const page = yield* decodePage(toText(json))
    cursor = page.cursor
    const seen = page.body.map(({ record, removed, reset, resource }) => {
      const change = record?.id ?? (removed === undefined ? "" : `-${removed}`)
      return `${resource} ${reset === true ? "reset" : change}`
    })
    return { seen, hasMore: page.has_more, isConsistent: page.is_consistent, lag }
  })
  /** Starts to read, and returns once it waits for a change. */
  const readLater = Effect.gen(function* () {
    const before = waits
    const reading = yield* Effect.forkScoped(read(1000, Duration.seconds(20)))
    yield* eventually("a reader that waits", () => waits > before)
    return reading
  })
  const statements = (text: string) => text.replaceAll("$", `'${organization}'`).split("; ")
  /** Runs statements in one transaction. */
  const run = (text: string) =>
    sql.withTransaction(Effect.forEach(statements(text), (statement) => sql.unsafe(statement)))
  const session = Effect.gen(function* () {
    const connection = yield* (yield* clientOf(url)).reserve
    return (text: string) =>
      Effect.forEach(statements(text), (statement) => connection.executeUnprepared(statement, [], undefined))
  })
  return { clock, read, readLater, run, session, sql }
})

const invoice = (id: string) => `insert into invoices (organization_id, id) values ($, '${id}')`
const line = (id: string) => `insert into invoice_lines (organization_id, id) values ($, '${id}')`

const refundRemoved = "trigger removed after delete on charge_refunds for each row execute function record_removed()"
const disabled = "alter table charge_refunds disable trigger removed"
const enabled = "alter table charge_refunds enable always trigger removed"
const isValid = (is: boolean) =>
  `update pg_index set indisvalid = ${is} where indexrelid = 'charge_refunds_changes'::regclass`

layer(TestDatabase.layer, { excludeTestServices: true })("the changes of all resources", (it) => {
  it.effect(
    "are every record first, then what is written, removed and written again, in the order of transactions",
    () =>
      Effect.gen(function* () {
        const { read, run, sql } = yield* reader
        yield* run(`${invoice("a")}; ${line("a1")}; ${line("a2")}`)
        yield* run("insert into pets (organization_id, id) values ($, 'old')")
        yield* run("delete from pets where organization_id = $")
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

  it.effect.each<readonly [what: string, broken: string, mended: string]>([
    ["a trigger is dropped", "drop trigger removed on charge_refunds", `create ${refundRemoved}`],
    [
      "a trigger fires never",
      `create or replace ${refundRemoved.replace("row", "row when (false)")}`,
      `create or replace ${refundRemoved}`
    ],
    [
      "a trigger does something else",
      `create or replace ${refundRemoved.replace("record_removed", "change_kept")}`,
      `create or replace ${refundRemoved}`
    ],
    [
      "an index is dropped",
      "drop index charge_refunds_changes",
      "create index charge_refunds_changes on charge_refunds (organization_id, change_position, id)"
    ],
    ["an index is invalid", isValid(false), isValid(true)]
  ])("of a table are refused while %s, and restart with a reset once it is whole again", ([, broken, mended]) =>
    Effect.gen(function* () {
      const { clock, read, run } = yield* reader
      yield* run(`${invoice("a")}; insert into charge_refunds (organization_id, id) values ($, 'r')`)
      yield* read()
      yield* run(broken)
      yield* run("delete from charge_refunds where organization_id = $")
      yield* clock.keep
      assert.strictEqual((yield* Effect.flip(read()))._tag, "RecordStoreDown")
      yield* run(`${mended}; ${invoice("b")}`)
      yield* clock.keep
      assert.deepStrictEqual((yield* read()).seen, ["charge-refunds reset", "invoices b"])
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
      `drop trigger removed on charge_refunds; DELETE; create ${refundRemoved}; ${enabled}`
    ]
  ])("of a table restart where a trigger %s", ([, statements]) =>
    Effect.gen(function* () {
      const { clock, read, run } = yield* reader
      yield* run("insert into charge_refunds (organization_id, id) values ($, 'r')")
      yield* read()
      yield* run(statements.replace("DELETE", "delete from charge_refunds where organization_id = $"))
      yield* clock.keep
      assert.deepStrictEqual((yield* read()).seen, ["charge-refunds reset"])
    })
  )

  it.effect("come to a reader who waits as soon as a transaction with one has ended, or a table is truncated", () =>
    Effect.gen(function* () {
      const { clock, read, readLater, run, session } = yield* reader
      yield* Effect.forkScoped(clock.watch)
      yield* read()
      const open = yield* session
      yield* open(`begin; ${invoice("open")}`)
      yield* run(line("seen"))
      yield* read()
      const waiting = yield* readLater
      yield* open("commit")
      assert.deepStrictEqual((yield* Fiber.join(waiting)).seen, ["invoices open"])
      const another = yield* readLater
      yield* run("truncate charge_refunds")
      assert.deepStrictEqual((yield* Fiber.join(another)).seen, ["charge-refunds reset"])
    })
  )
})

const wait = Duration.seconds(20)

/** A feed that its clock watches, and how often its database and its clock are used. */
const feedOf = Effect.fnUntraced(function* (connections = Infinity, times = 20) {
  const { sql } = yield* TestDatabase
  const organization = `org_${++organizations}`
  // The clock runs its statements alone, readers theirs on a shared connection.
  const counts = { run: 0, runShort: 0, wait: 0 }
  const counting = <A extends object>(of: A): A =>
    new Proxy(of, {
      get: (target, name) => {
        if (name === "run" || name === "runShort" || name === "wait") counts[name]++
        return Reflect.get(target, name)
      }
    })
  const counted = counting(sql)
  const clock = counting(yield* Effect.provideService(clockOf(counted), Connections, connections))
  const repository = Records.make(counted, pets, clock)
  const changes = (request: Parameters<typeof repository.changes>[0], owner = organization) =>
    asKnown(owner)(
      // So many at once may wait too long for a connection on a busy machine.
      Effect.retry(repository.changes(request), { while: (error) => error._tag === "RecordStoreDown", times })
    )
  const insert = (owner = organization) =>
    sql`insert into pets (organization_id, id, name) values (${owner}, gen_random_uuid()::text, 'new')`
  yield* insert()
  yield* settled(sql)
  yield* Effect.forkScoped(clock.watch)
  /** Starts readers of an organization that have seen all, and wait. */
  const waiting = Effect.fnUntraced(function* (count: number, owner = organization, limit = 10) {
    const expected = counts.wait + count
    let page = yield* changes({ limit }, owner)
    while (!page.isComplete) page = yield* changes({ cursor: page.cursor, limit }, owner)
    const read = changes({ cursor: page.cursor, limit, wait }, owner)
    const readers = yield* Effect.replicateEffect(Effect.forkScoped(read, { startImmediately: true }), count)
    yield* eventually("all wait", () => counts.wait === expected)
    return { read, readers }
  })
  return { changes, clock, counts, insert, waiting }
})

const atOnce = Effect.timeout("10 seconds")

const isPending = (fiber: Fiber.Fiber<unknown, unknown>) => fiber.pollUnsafe() === undefined

layer(TestDatabase.layer, { excludeTestServices: true })("a reader that waits", (it) => {
  it.effect("gets a change of its organization as soon as it is committed; until then, waiting costs no read", () =>
    Effect.gen(function* () {
      const { changes, counts, insert, waiting } = yield* feedOf()
      const { readers } = yield* waiting(30)
      yield* insert("org_of_others")
      const before = { ...counts }
      // The second one begins after the insert.
      yield* eventually("two ticks of the clock", () => counts.run >= before.run + 2)
      assert.strictEqual(counts.runShort, before.runShort)
      assert.isTrue(readers.every(isPending))
      yield* insert()
      for (const { json } of yield* atOnce(Fiber.joinAll(readers))) assert.include(toText(json), '"name":"new"')
      assert.isTrue((yield* changes({ limit: 10, wait: Duration.millis(50) }, "org_of_nobody")).isEmpty, "a timeout")
    })
  )

  it.effect(
    "gets a change beside 499 others of its organization, and none gets a busy store",
    () =>
      Effect.gen(function* () {
        const { insert, waiting } = yield* feedOf(undefined, 0)
        const readers = yield* Effect.forEach(Array.range(1, 20), () => waiting(25, undefined, 1000))
        yield* insert()
        const pages = yield* Fiber.joinAll(readers.flatMap((each) => each.readers))
        assert.isTrue(pages.every(({ rows }) => rows === 1))
      }),
    long
  )

  it.effect("gets its answer at once if too many wait, of its organization or in all, and once the service stops", () =>
    Effect.gen(function* () {
      const { changes, clock, waiting } = yield* feedOf(10)
      const { read, readers } = yield* waiting(2)
      assert.isTrue((yield* atOnce(read)).isEmpty)
      for (const [owner, count] of Object.entries({ org_of_others_1: 2, org_of_others_2: 1 }))
        readers.push(...(yield* waiting(count, owner)).readers)
      assert.isTrue((yield* atOnce(changes({ limit: 10, wait }, "org_of_others_3"))).isEmpty)
      assert.isTrue(readers.every(isPending))
      yield* clock.stopWaiting
      assert.isTrue((yield* atOnce(Fiber.joinAll(readers))).every(({ isEmpty }) => isEmpty))
      assert.isTrue((yield* atOnce(read)).isEmpty)
    })
  )
})

const histories = { seed: 1, events: 0.2, isReduced: false }

layer(TestDatabase.layer, { excludeTestServices: true })("histories", (it) => {
  it.effect("lose nothing on Postgres", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      const stand = yield* InProcessStand.over(url, sql)
      const { failed } = yield* Histories.run({ ...histories, numbers: [1, 2], stands: [stand], embedded: stand })
      assert.deepStrictEqual(failed, [])
    })
  )

  it.effect(
    "lose nothing over HTTP, on Postgres that crashes and fails over, a replica of it, and the embedded database",
    () =>
      Effect.gen(function* () {
        const stands = [yield* PostgresStand.make(undefined)]
        const embedded = yield* InProcessStand.embedded
        const { failed } = yield* Histories.run({ ...histories, numbers: Array.range(1, 12), stands, embedded })
        assert.deepStrictEqual(failed, [])
      }),
    { ...long, timeout: 120_000 }
  )
})
