/** The scripts of the runbook: the end of an organization, and the erasure of a client. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { searchable } from "../../../src/api/records/index.ts"
import { CredentialDatabase, TaskDatabase } from "../../../src/database/Database.ts"
import { IntakeSecrets } from "../../../src/intake/Signatures.ts"
import * as ApiKeys from "../../../src/keys/ApiKeys.ts"
import * as SigningSecrets from "../../../src/keys/SigningSecrets.ts"
import * as Commands from "../../../src/operations/Commands.ts"
import { feedOf, readerOf } from "../../support/changes.ts"
import { asPsql, TestDatabase } from "../../support/TestDatabase.ts"

const databases = Layer.unwrap(
  Effect.map(TestDatabase, ({ sql }) =>
    Layer.merge(Layer.succeed(TaskDatabase, sql), Layer.succeed(CredentialDatabase, sql))
  )
)
const begun = Layer.tap(
  TestDatabase.layerDemo,
  (context) => Context.get(context, TestDatabase).sql`select change_begin(), change_mark()`
)
const services = IntakeSecrets.layer.pipe(Layer.provideMerge(databases), Layer.provideMerge(begun))

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

const resultsOf = (organization: string) =>
  Effect.gen(function* () {
    const entries = yield* Commands.auditLog(100)
    const own = entries.filter(({ organization_id }) => organization_id === organization)
    return own.map(({ action, result, target }) => [action, target, result].join(" ")).toReversed()
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
    Effect.map(sql<{ id: string }>`select id from ${sql(table)} where organization_id = ${organization}`, (ids) =>
      ids.map(({ id }) => `${table} ${id}`)
    )
  )
  return found.flat()
})

const keptIds = kept.map(([table, { id }]) => `${table} ${id}`)

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

layer(services, { excludeTestServices: true })("the scripts of the runbook", (it) => {
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
      for (const [key, payload] of Object.entries(deliveries)) {
        yield* sql`
          insert into deletion_tasks (organization_id, id, idempotency_key, fingerprint, payload, state, invoices_count,
            invoice_lines_count, received_at, scheduled_for)
          values ('org_named', gen_random_uuid(), ${key}, '', ${sql.json(payload)}::jsonb, 'completed', 1, 1, now(), now())`
      }
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
