/** The scripts of the runbook: the end of an organization, and the erasure of a client; and the statements of the guide for feeders. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { searchable } from "../../../src/api/records/index.ts"
import { decodeTexts } from "../../../src/database/Columns.ts"
import { IntakeSecrets } from "../../../src/intake/Signatures.ts"
import * as ApiKeys from "../../../src/keys/ApiKeys.ts"
import * as SigningSecrets from "../../../src/keys/SigningSecrets.ts"
import { feedOf, readerOf } from "../../support/changes.ts"
import { json } from "../../support/Client.ts"
import { addTasks } from "../../support/deletions/invoiceFixture.ts"
import { snippetsOf } from "../../support/snippets.ts"
import { asPsql, emptyDatabase, newLogin, TestDatabase } from "../../support/TestDatabase.ts"
import { live } from "../../support/tries.ts"

const begun = Layer.tap(
  TestDatabase.layerDemo,
  (context) => Context.get(context, TestDatabase).sql`select change_begin(), change_mark()`
)
const services = IntakeSecrets.layer.pipe(Layer.provideMerge(TestDatabase.shared), Layer.provideMerge(begun))

/** A reader of all changes of an organization. Each read returns the numbers of records and of removed ones. */
const reader = Effect.fnUntraced(function* (organization: string) {
  const { sql } = yield* TestDatabase
  const { read } = readerOf(yield* feedOf(sql), organization)
  return () => Effect.map(read(), ({ records, removed }) => ({ records: records.length, removed: removed.length }))
})

/** The tables that have rows of an organization. */
const tablesOf = Effect.fnUntraced(function* (organization: string) {
  const { sql } = yield* TestDatabase
  const tables = yield* sql<{ name: string }>`
    select table_name as name from information_schema.columns natural join information_schema.tables
    where table_type = 'BASE TABLE' and table_schema = 'public' and column_name = 'organization_id' order by 1`
  const has = ({ name }: { readonly name: string }) =>
    Effect.map(
      sql`select from ${sql(name)} where organization_id = ${organization} limit 1`,
      ({ length }) => length > 0
    )
  return (yield* Effect.filter(tables, has)).map(({ name }) => name)
})

/** The entries of the audit log about an organization. */
const resultsOf = Effect.fnUntraced(function* (organization: string) {
  const { sql } = yield* TestDatabase
  return yield* decodeTexts(sql`
    select concat_ws(' ', action, target, result) as text from audit_log
    where organization_id = ${organization} order by at, id`)
})

/** What hangs on a client, in the order of the erasure: each row by its table and the columns that lead to the client. */
const rows: ReadonlyArray<readonly [table: string, columns: Readonly<Record<string, string>>]> = [
  ["consumption_logs", { id: "1", invoice_line: "l" }],
  ["invoice_lines", { id: "l", invoice: "i" }],
  ["charge_payments", { id: "1", charge: "c" }],
  ["charge_adjustments", { id: "1", charge: "c" }],
  ["charge_refunds", { id: "1", charge: "c" }],
  ["charges", { id: "c", invoice: "i" }],
  ["invoices", { id: "i", client_id: "client_7", pet: "p" }],
  ["invoices", { id: "of the pet alone", pet: "p" }],
  ["charges", { id: "of the pet", pet: "p" }],
  ["consumption_logs", { id: "of the plan", subscription: "s" }],
  ["payment_plans", { id: "1", subscription: "s", pet: "p" }],
  ["payment_intents", { id: "1", subscription: "s" }],
  ["cancellation_payment_intents", { id: "1", pet: "p" }],
  ["pet_benefits", { id: "1", subscription: "s" }],
  ["subscriptions", { id: "s", pet: "p" }],
  ["pets", { id: "p", client_id: "client_7" }]
]

/** The same of a client who stays, and records of theirs on the pet of the one who goes. */
const kept: typeof rows = [
  ...rows.map(([table, columns]) => {
    const named = Object.entries(columns).map(([column, value]) => [column, `${value} kept`])
    return [table, Object.fromEntries(named)] as const
  }),
  ["invoices", { id: "before", client_id: "client_7 kept", pet: "p" }],
  ["invoice_lines", { id: "before", invoice: "before", pet: "p" }],
  ["consumption_logs", { id: "before", invoice_line: "before", pet: "p" }],
  ["charges", { id: "before", invoice: "before", pet: "p" }]
]

const load = Effect.fnUntraced(function* (organization: string) {
  const { sql } = yield* TestDatabase
  yield* sql.withTransaction(
    Effect.forEach([...rows, ...kept], ([table, columns]) => {
      return sql`insert into ${sql(table)} ${sql.insert({ organization_id: organization, ...columns })}`
    })
  )
})

/** The facts of a task about items, of which each has an id and maybe more. */
const addFacts = Effect.fnUntraced(function* (
  organization_id: string,
  items: ReadonlyArray<Readonly<Record<string, string>>>
) {
  const { sql } = yield* TestDatabase
  const task = { organization_id, task_id: "00000000-0000-5000-8000-000000000000" }
  const fact = { ...task, deleted_at: "2026-01-31T09:30:00Z", verdict: "deleted" }
  for (const [item, each] of items.entries())
    yield* sql`insert into deletions ${sql.insert({ ...fact, item, ...each })}`
  yield* sql`insert into deletions_unsettled ${sql.insert(task)}`
})

const idsOf = Effect.fnUntraced(function* (organization: string) {
  const { sql } = yield* TestDatabase
  const found = yield* Effect.forEach(searchable, ({ table }) =>
    decodeTexts(sql`select ${`${table} `} || id as text from ${sql(table)} where organization_id = ${organization}`)
  )
  return found.flat()
})

/** Runs a script of the runbook as psql does, for an organization. */
const runScript = Effect.fnUntraced(function* (name: string, organization: string) {
  const script = readFileSync(join(import.meta.dirname, "../../../scripts/operations", `${name}.sql`), "utf8")
  const { url } = yield* TestDatabase
  const statements = script
    .replace("\\set ON_ERROR_STOP on", "")
    .replaceAll(":'organization'", `'${organization}'`)
    .replaceAll(":'client'", "'client_7'")
  yield* asPsql(url, statements)
})

layer(services, live)("the scripts of the runbook", (it) => {
  it.effect("offboards an organization: no deliveries, removals for readers, keys last", () =>
    Effect.gen(function* () {
      const [{ of }, owner] = [yield* IntakeSecrets, "org_harbor"]
      yield* addFacts(owner, [{ kind: "line", id: "line_1" }])
      const [read, late] = [yield* reader(owner), yield* reader(owner)]
      const { records } = yield* read()
      yield* late()
      assert.strictEqual(yield* of(owner), "unsigned")

      // Again: each step is idempotent.
      for (let time = 0; time < 2; time++) yield* runScript("close-organization", owner)
      assert.deepStrictEqual(yield* of(owner), [])
      assert.isEmpty(yield* idsOf(owner))
      assert.deepStrictEqual(yield* read(), { records: 0, removed: records })
      assert.isNull((yield* ApiKeys.list(owner))[0]?.revoked_at)
      yield* runScript("delete-organization", owner)
      assert.isNotNull((yield* ApiKeys.list(owner))[0]?.revoked_at)
      assert.deepStrictEqual(yield* tablesOf(owner), ["api_keys", "audit_log", "intake_secrets", "removals"])
      assert.deepStrictEqual(yield* resultsOf(owner), ["organization.delete org_harbor deleted"])
      assert.lengthOf(yield* idsOf("org_oakridge"), records)
      // A reader that was not in step gets the removals once the organization is created again.
      assert.deepStrictEqual(yield* late(), { records: 0, removed: records })
      yield* SigningSecrets.allowUnsigned(owner)
      assert.strictEqual(yield* of(owner), "unsigned")
    })
  )

  it.effect("erases a client with all that hangs on its pets and invoices, and nobody else", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* load("org_erased")
      yield* load("org_1")
      for (let time = 0; time < 2; time++) yield* runScript("erase-client", "org_erased")
      const keptIds = kept.map(([table, { id }]) => `${table} ${id}`)
      assert.sameMembers(yield* idsOf("org_erased"), keptIds)
      assert.lengthOf(yield* idsOf("org_1"), rows.length + kept.length)
      assert.lengthOf(yield* sql`select from removals where organization_id = 'org_erased'`, rows.length)
      const erased = "client.erase client_7 erased"
      assert.deepStrictEqual(yield* resultsOf("org_erased"), [erased, erased])
    })
  )

  it.effect("erases a client from stored deliveries and facts that name it, its invoices or its lines", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* load("org_named")
      const deliveries = {
        own: { invoices: [{ invoice_id: "x", client_id: "client_7" }] },
        "own invoice": { invoices: [{ invoice_id: "i", client_id: null }] },
        "own line": { invoice_lines: [{ invoice_line_id: "l" }] },
        "line of own": { invoice_lines: [{ invoice_line_id: "y", invoice_id: "i" }] },
        other: { invoices: [{ invoice_id: "i kept", client_id: null }], invoice_lines: [{ invoice_line_id: "1" }] }
      }
      const owned = { organization_id: "'org_named'", state: "'completed'" }
      for (const [key, payload] of Object.entries(deliveries))
        yield* addTasks(1, { ...owned, idempotency_key: `'${key}'`, payload: `'${json(payload)}'` })
      yield* addFacts("org_named", [
        { kind: "invoice", id: "i" },
        { kind: "line", id: "l" },
        { kind: "line", id: "z", invoice_id: "i" },
        { kind: "invoice", id: "x", client_id: "client_7" },
        { kind: "invoice", id: "l" },
        { kind: "line", id: "i" },
        { kind: "invoice", id: "i kept", client_id: "client_7 kept" }
      ])
      yield* runScript("erase-client", "org_named")
      const facts = yield* sql`select item from deletions where organization_id = 'org_named' order by item`
      assert.deepStrictEqual<unknown>(facts, [{ item: 4 }, { item: 5 }, { item: 6 }])
      const left = yield* sql`
        select idempotency_key as key from deletion_tasks where organization_id = 'org_named' and payload is not null`
      assert.deepStrictEqual<unknown>(left, [{ key: "other" }])
    })
  )
})

const statements = snippetsOf("src/operations/FEEDING.md").filter(({ language }) => language === "sql")
const [foreign = "", view = "", firstLoad = "", upsert = ""] = statements.map(({ code }) => code)

const source = `
  create table clinics (no int, zone text);
  insert into clinics values (1, 'America/Denver');
  create table invoices (number int, clinic_no int, customer_no int, issued_local timestamp, state text, total_cents int,
    removed_utc timestamptz, created_utc timestamptz, changed_utc timestamptz);
  insert into invoices select n, 1, n, '2024-07-01 09:30', 'paid', 100 * n, case when n = 3 then timestamptz '2024-08-01Z' end,
    '2024-07-01Z', '2024-08-01Z' from generate_series(1, 3) n;`

layer(TestDatabase.layer, live)("the statements for feeders", (it) => {
  it.effect("load a source in another database once, and then what has changed in it", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      const legacy = new URL(yield* emptyDatabase)
      yield* asPsql(legacy.href, source)
      const { name, url: loader } = yield* newLogin("writer")
      yield* sql`insert into organizations (organization_id, id) values ('org_1', 'org_1')`
      const own = foreign
        .replace("old.example", legacy.hostname)
        .replace("5432", legacy.port)
        .replace("'clinics'", `'${legacy.pathname.slice(1)}'`)
        .replace("'reader'", `'${legacy.username}'`)
        .replace("'...'", `'${legacy.password}'`)
      yield* asPsql(url, own + view.replaceAll("to loader", `to ${name}`))
      const records = Effect.map(
        sql`
          select concat_ws(' ', id, status, trim_scale(total), is_deleted) as row, created_at < '2025-01-01' as is_old,
            updated_at = '2024-08-01Z' as is_kept, invoice_date = '2024-07-01T15:30Z' as is_local
          from invoices order by id`,
        (all) => all.map((each) => Object.values(each).join(" "))
      )
      yield* asPsql(loader, firstLoad)
      const loaded = ["inv-1 paid 1 f", "inv-2 paid 2 f", "inv-3 paid 3 t"].map((row) => `${row} true true true`)
      assert.deepStrictEqual(yield* records, loaded)
      yield* asPsql(legacy.href, "update invoices set state = 'void', changed_utc = now() where number = 2")
      yield* asPsql(loader, upsert)
      yield* asPsql(loader, `update source.watermarks set until = '-infinity'; ${upsert}`)
      assert.deepStrictEqual(yield* records, loaded.with(1, "inv-2 void 2 f true false true"))
    })
  )
})
