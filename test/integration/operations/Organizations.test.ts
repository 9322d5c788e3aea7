/** The deletion of an organization and the erasure of a client: their order, their stops, and what is left. */
import { assert, layer } from "@effect/vitest"
import { Context, Duration, Effect, Exit, Layer, Schema } from "effect"
import { searchable } from "../../../src/api/records/index.ts"
import { databaseFeed } from "../../../src/changes/FeedStores.ts"
import { CredentialDatabase, TaskDatabase } from "../../../src/database/Database.ts"
import { IntakeSecrets } from "../../../src/intake/IntakeSecrets.ts"
import * as ApiKeys from "../../../src/keys/ApiKeys.ts"
import * as Commands from "../../../src/operations/Commands.ts"
import * as Erasure from "../../../src/operations/Erasure.ts"
import * as Organizations from "../../../src/operations/Organizations.ts"
import { toText } from "../../../src/database/RecordJson.ts"
import { combinedFeed } from "../../../src/changes/FeedDefinition.ts"
import { cli, runWith } from "../../support/cli.ts"
import { clockOf } from "../../support/Follower.ts"
import { openTransaction } from "../../support/deletions/sessions.ts"
import { clientOf, newLogin, TestDatabase } from "../../support/TestDatabase.ts"
import { asKnown } from "../records/stores.ts"

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

const actor = { name: "tester", source: "command line" }

const Page = Schema.fromJsonString(
  Schema.Struct({
    body: Schema.Array(Schema.Struct({ resource: Schema.String, removed: Schema.optional(Schema.String) })),
    cursor: Schema.String
  })
)

/** A reader of all changes of an organization. Each read returns the resources of records, and the removed ones. */
const reader = Effect.fnUntraced(function* (organization: string) {
  const { sql } = yield* TestDatabase
  const changes = databaseFeed(sql, combinedFeed(searchable), yield* clockOf(sql))
  let cursor: string | undefined
  const read = Effect.gen(function* () {
    const request = { cursor, limit: 1000, wait: Duration.zero }
    const page = yield* Schema.decodeEffect(Page)(toText((yield* asKnown(organization)(changes(request))).json))
    cursor = page.cursor
    const removed = page.body.filter((item) => item.removed !== undefined)
    return { records: page.body.length - removed.length, removed: removed.length }
  })
  return { read }
})

/** The tables that have rows of an organization. */
const tablesOf = Effect.fnUntraced(function* (organization: string) {
  const { sql } = yield* TestDatabase
  const tables = yield* sql<{ name: string }>`
    select table_name as name from information_schema.columns
    where table_schema = 'public' and column_name = 'organization_id' order by 1`
  const has = ({ name }: { readonly name: string }) =>
    Effect.map(
      sql`select from ${sql(name)} where organization_id = ${organization} limit 1`,
      ({ length }) => length > 0
    )
  return (yield* Effect.filter(tables, has)).map(({ name }) => name)
})

const resultsOf = (organization: string) =>
  Effect.gen(function* () {
    const entries = yield* Commands.entries(yield* TaskDatabase, { organization }, 100)
    return entries.map(({ action, result, target }) => [action, target, result].join(" ")).toReversed()
  })

/** Runs with deletes in a table that fail, as if the command was killed there. */
const cutAt = <A, E, R>(table: string, running: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { sql } = yield* TestDatabase
    yield* sql.unsafe(`create or replace function cut() returns trigger language plpgsql as 'begin raise ''cut''; end'`)
    yield* sql.unsafe(`create trigger cut before delete on ${table} for each row execute function cut()`)
    assert.isTrue(Exit.isFailure(yield* Effect.exit(running)), table)
    yield* sql.unsafe(`drop trigger cut on ${table}`)
  })

/** What hangs on a client, in the order of the erasure: each row by its table and the columns that lead to the client. */
const rows: ReadonlyArray<readonly [table: string, columns: Readonly<Record<string, string>>]> = [
  ["consumption_logs", { id: "1", invoice_line: "l" }],
  ["invoice_lines", { id: "l", invoice: "i" }],
  ["charge_payments", { id: "1", charge: "c" }],
  ["charge_adjustments", { id: "1", charge: "c" }],
  ["charge_refunds", { id: "1", charge: "c" }],
  ["charges", { id: "c", invoice: "i" }],
  ["invoices", { id: "i", client_id: "gone", pet: "p" }],
  ["invoices", { id: "of the pet alone", pet: "p" }],
  ["charges", { id: "of the pet", pet: "p" }],
  ["consumption_logs", { id: "of the plan", subscription: "s" }],
  ["payment_plans", { id: "1", subscription: "s", pet: "p" }],
  ["payment_intents", { id: "1", subscription: "s" }],
  ["cancellation_payment_intents", { id: "1", pet: "p" }],
  ["pet_benefits", { id: "1", subscription: "s" }],
  ["subscriptions", { id: "s", pet: "p" }],
  ["pets", { id: "p", client_id: "gone" }]
]

/** The same of a client who stays, and records of theirs on the pet of the one who goes. */
const kept: typeof rows = [
  ...rows.map(([table, columns]) => {
    const named = Object.entries(columns).map(([column, value]) => [column, `${value} kept`])
    return [table, Object.fromEntries(named)] as const
  }),
  ["invoices", { id: "before", client_id: "gone kept", pet: "p" }],
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
  items: ReadonlyArray<Readonly<Record<"id" | "kind", string>> & object>
) {
  const { sql } = yield* TestDatabase
  const task = { organization_id, task_id: "00000000-0000-5000-8000-000000000000" }
  const fact = { ...task, deleted_at: "2026-01-31T09:30:00Z", verdict: "deleted", holds: true, is_known: true }
  for (const [item, each] of items.entries())
    yield* sql`insert into deletions ${sql.insert({ ...fact, item, ...each })}`
  const arrival = { ...task, kind: "line", item: 0, verdict: "deleted" }
  yield* sql`insert into deletion_arrivals ${sql.insert(arrival)}`
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

layer(services, { excludeTestServices: true })("a deleted organization", (it) => {
  it.effect("is refused by the intake, then read as removals by valid keys, and loses its keys last", () =>
    Effect.gen(function* () {
      const { of } = yield* IntakeSecrets
      yield* addFacts("org_harbor", [{ kind: "line", id: "line_1" }])
      const { read } = yield* reader("org_harbor")
      const { records } = yield* read
      const late = yield* reader("org_harbor")
      yield* late.read
      assert.strictEqual(yield* of("org_harbor"), "unsigned")

      yield* cutAt("clinics", Organizations.deleteAll(actor, "org_harbor"))
      assert.strictEqual(yield* of("org_harbor"), "closed")
      assert.include(yield* idsOf("org_harbor"), "clinics clinic_harbor_01")
      const again = yield* Organizations.deleteAll(actor, "org_harbor")
      assert.deepStrictEqual(again, { clinics: 2 })
      assert.deepStrictEqual(yield* read, { records: 0, removed: records })
      assert.isNull((yield* ApiKeys.list("org_harbor"))[0]?.revoked_at)

      yield* cutAt("deletions", Organizations.finish(actor, "org_harbor"))
      assert.isNotNull((yield* ApiKeys.list("org_harbor"))[0]?.revoked_at)
      assert.include(yield* tablesOf("org_harbor"), "deletions")
      yield* Organizations.finish(actor, "org_harbor")
      const left = ["api_keys", "audit_log", "closed_organizations", "removals"]
      assert.deepStrictEqual(yield* tablesOf("org_harbor"), left)
      // Whoever was not in step is once the organization is there again.
      assert.deepStrictEqual(yield* late.read, { records: 0, removed: records })
      assert.deepStrictEqual(yield* resultsOf("org_harbor"), [
        "organization.delete org_harbor intake closed",
        "organization.delete org_harbor 2 records deleted",
        "key.revoke key_harbor_demo revoked",
        "organization.delete org_harbor finished"
      ])
      assert.lengthOf(yield* idsOf("org_oakridge"), records)
    })
  )

  it.effect("is finished by the command once its records are deleted, and opened again by `organizations create`", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const { of } = yield* IntakeSecrets
      yield* Organizations.create(actor, { id: "org_left", name: "Left" })
      yield* Commands.createKey(actor, { organization: "org_left", name: "reader" })
      yield* Commands.revokeSecret(actor, (yield* Commands.addSecret(actor, "org_left")).id)
      assert.deepStrictEqual(yield* of("org_left"), [])
      yield* sql`insert into pets (organization_id, id) values ('org_left', 'pet_1')`
      const remove = ["organizations", "delete", "org_left"] as const
      const early = yield* cli(...remove, "--finish", "--yes")
      assert.include(early.stderr, "org_left has records or an open intake. First run: ")
      const shown = yield* cli(...remove)
      assert.deepStrictEqual([shown.code, shown.stdout], [1, "table  records\npets   1\n"])
      assert.deepStrictEqual(yield* idsOf("org_left"), ["pets pet_1"])

      const deleted = yield* cli(...remove, "--yes")
      assert.deepStrictEqual([deleted.code, deleted.stdout], [0, "table  records\npets   1\n"])
      assert.include(deleted.stderr, "organizations delete org_left --finish --yes")
      assert.match((yield* cli("organizations", "list")).stdout, /^org_left +Left .* 1 +0 +\d{4}-/m)
      const asked = yield* cli(...remove, "--finish")
      assert.strictEqual(asked.stderr, "Nothing was changed. Add --yes to revoke 1 API key and delete the rest.\n")
      assert.include((yield* cli(...remove, "--finish", "--yes")).stdout, "Deleted org_left\n")
      assert.strictEqual(yield* of("org_left"), "closed")
      assert.strictEqual((yield* cli("organizations", "create", "org_left", "--name", "Back")).code, 0)
      assert.strictEqual(yield* of("org_left"), "unsigned")
      const unknown = yield* cli("organizations", "delete", "org_nobody", "--yes")
      assert.deepStrictEqual([unknown.code, unknown.stderr], [1, "No organization org_nobody.\n"])
    })
  )

  it.effect("is deleted by a later run if another transaction locks a row for longer than a second", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      yield* sql`insert into pets (organization_id, id) values ('org_locked', 'pet_1')`
      yield* sql`insert into clinics (organization_id, id) values ('org_locked', 'clinic_1')`
      const remove = cli("organizations", "delete", "org_locked", "--yes")
      const other = yield* clientOf(url)
      const lock = yield* openTransaction(other, other`select from clinics where id = 'clinic_1' for update`)
      const { code, stderr } = yield* remove
      assert.strictEqual(code, 75)
      assert.match(stderr, /^Rows are locked by another transaction\. Deleted rows stay deleted; run the command again/)
      assert.deepStrictEqual(yield* idsOf("org_locked"), ["clinics clinic_1"])
      yield* lock.commit
      assert.strictEqual((yield* remove).code, 0)
      assert.isEmpty(yield* idsOf("org_locked"))
    })
  )

  it.effect("is not touched by a command whose login lacks a privilege, which is named", () =>
    Effect.gen(function* () {
      const { name, url } = yield* newLogin("writer")
      for (const command of ["organizations delete org_oakridge --yes", "erase --organization o --client c --yes"]) {
        const { code, stderr } = yield* runWith({ DATABASE_URL: url }, command.split(" "))
        assert.strictEqual(code, 1)
        assert.match(stderr, new RegExp(`^The login ${name} may not \\w+ on \\w+\\. Use the role that migrated\\.\n$`))
      }
    })
  )
})

layer(services, { excludeTestServices: true })("an erased client", (it) => {
  it.effect(
    "loses all that hangs on its pets and invoices, wherever the command is cut short, and nobody else does",
    () =>
      Effect.gen(function* () {
        const tables = [...new Set(rows.map(([table]) => table))]
        for (const table of tables) {
          const client = { organization: `org_${table}`, client: "gone" }
          yield* load(client.organization)
          yield* cutAt(table, Erasure.eraseClient(actor, client))
          yield* Erasure.eraseClient(actor, client)
          assert.sameMembers(yield* idsOf(client.organization), keptIds, table)
        }
        const { sql } = yield* TestDatabase
        const removed = sql`select from removals where organization_id = ${`org_${tables[0]}`}`
        assert.lengthOf(yield* removed, rows.length)
      })
  )

  it.effect("is shown in numbers without --yes, then logged by its id alone, and is unknown after it", () =>
    Effect.gen(function* () {
      yield* load("org_erased")
      const erase = ["erase", "--organization", "org_erased", "--client", "gone"] as const
      const shown = yield* cli(...erase)
      const counts = Map.groupBy(rows, ([table]) => table)
      for (const [table, { length }] of counts) assert.match(shown.stdout, new RegExp(`^${table} +${length}$`, "m"))
      assert.strictEqual(shown.stderr, "Nothing was changed. Add --yes to erase these records.\n")
      assert.lengthOf(yield* idsOf("org_erased"), rows.length + kept.length)
      const erased = yield* cli(...erase, "--yes")
      assert.sameMembers(erased.stdout.split("\n"), shown.stdout.split("\n"))
      assert.include(erased.stderr, "Copies by search, exports and backups keep the records")
      assert.deepStrictEqual(yield* resultsOf("org_erased"), [
        "client.erase gone started",
        `client.erase gone erased ${rows.length}`
      ])
      assert.strictEqual((yield* cli(...erase)).stdout, "")
    })
  )

  it.effect("is taken out of stored deliveries and facts: what names it, its invoices or its lines", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* load("org_named")
      const others = {
        invoices: [{ invoice_id: "i kept", client_id: null }],
        invoice_lines: [{ invoice_line_id: "1" }]
      }
      const payload = {
        invoices: [{ invoice_id: "i", client_id: null }, ...others.invoices, { invoice_id: "x", client_id: "gone" }],
        invoice_lines: [...others.invoice_lines, { invoice_line_id: "l" }, { invoice_line_id: "y", invoice_id: "i" }]
      }
      yield* sql`
        insert into deletion_tasks (organization_id, id, idempotency_key, fingerprint, payload, invoices_count,
          invoice_lines_count, received_at, scheduled_for)
        values ('org_named', gen_random_uuid(), 'k', '', ${sql.json(payload)}::jsonb, 3, 3, now(), now())`
      const about = [
        { kind: "invoice", id: "i" },
        { kind: "line", id: "l" },
        { kind: "line", id: "z", invoice_id: "i" },
        { kind: "invoice", id: "x", client_id: "gone" },
        { kind: "invoice", id: "l" },
        { kind: "line", id: "i" },
        { kind: "invoice", id: "i kept", client_id: "gone kept" }
      ]
      yield* addFacts("org_named", about)
      const erased = yield* Erasure.eraseClient(actor, { organization: "org_named", client: "gone" })
      assert.deepInclude(erased, { deletion_tasks: 4, deletions: 4 })
      const facts = yield* sql`select item from deletions where organization_id = 'org_named' order by item`
      assert.deepStrictEqual<unknown>(facts, [{ item: 4 }, { item: 5 }, { item: 6 }])
      const tasks = yield* sql`select payload from deletion_tasks where organization_id = 'org_named'`
      const blank = { clinic_id: "", invoice_id: "" }
      const blankLine = { clinic_id: "", invoice_line_id: "" }
      const left = {
        invoices: [blank, ...others.invoices, blank],
        invoice_lines: [...others.invoice_lines, blankLine, blankLine]
      }
      assert.deepStrictEqual<unknown>(tasks, [{ payload: left }])
    })
  )
})
