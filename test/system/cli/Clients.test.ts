/**
 * The commands of clients as users run them, over the running service: `get`, `search`, `send` and `sync`.
 *
 * @module-tag long
 */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import * as Readers from "../../integration/cli/sync/readers.ts"
import { runWith, start } from "../../support/cli.ts"
import { everything, resources } from "../../support/contract/Contract.ts"
import { parse } from "../../support/deletions/taskFixture.ts"
import { eventually } from "../../support/eventually.ts"
import { temporaryFolder } from "../../support/Process.ts"
import { options, Service } from "../../support/Service.ts"
import { clientOf, emptyDatabase, TestDatabase } from "../../support/TestDatabase.ts"

const key = "pda_demo_oakridge"
const password = "s3cret of the warehouse"

const environment = Effect.map(Service, ({ address }) => ({
  PRACTICE_DATA_URL: address,
  PRACTICE_DATA_API_KEY: key,
  PGPASSWORD: password
}))

const run = (...command: ReadonlyArray<string>) =>
  Effect.flatMap(environment, (variables) => runWith(variables, command))

const sync = (...args: ReadonlyArray<string>) => run("sync", ...args)

/** The output, and the note that there is more, which a limit may have. */
const printed = (...command: ReadonlyArray<string>) =>
  Effect.map(run(...command), ({ code, stdout, stderr }) => {
    assert.strictEqual(code, 0, stderr)
    if (!command.includes("--limit")) assert.strictEqual(stderr, "")
    return stdout
  })

const records = (...command: ReadonlyArray<string>) =>
  Effect.flatMap(printed(...command, "--json"), (text) => Effect.forEach(text.trim().split("\n"), parse))

const decodeRecords = Schema.decodeUnknownEffect(Schema.Array(Schema.Record(Schema.String, Schema.Unknown)))

/** The records as `/search` has them: the JSON of each, by its id. */
const searched = Effect.fnUntraced(function* (name: string) {
  const { ask } = yield* Service
  const resource = resources.find((one) => one.name === name) ?? assert.fail(name)
  const path = resource.search === undefined ? "get" : "search"
  const { text } = yield* ask(`/${name}/${path}`, path === "get" ? {} : everything(resource))
  const found = yield* parse(text)
  const all = yield* decodeRecords(found["body"] ?? [found])
  return Object.fromEntries(all.map((record) => [record["id"], JSON.stringify(record)]))
})

/** A database of a Postgres, a client of it, and a user who has no more rights there than to make a schema. */
const warehouse = Effect.gen(function* () {
  const admin = new URL(yield* emptyDatabase)
  const sql = yield* clientOf(admin.href)
  const [database, user] = [admin.pathname.slice(1), `user_of_${admin.pathname.slice(1)}`]
  yield* sql.unsafe(`create role ${user} login password '${password}'`)
  yield* sql.unsafe(`grant connect, create on database ${database} to ${user}`)
  return { target: `postgres://${user}@${admin.host}/${database}?schema=practice`, sql }
})

layer(Layer.merge(Service.layerEmbedded, TestDatabase.layer), options)("A command of a client", (it) => {
  it.effect("`get` prints one record, and `search` those that satisfy the filters, up to a limit, or all", () =>
    Effect.gen(function* () {
      const { ask } = yield* Service
      const charge = yield* printed("get", "charges", "charge_oakridge_0001")
      assert.match(charge, /^id +charge_oakridge_0001\n/)
      const [organization] = yield* records("get", "organization")
      assert.strictEqual(organization?.["id"], "org_oakridge")
      const filters = ["--all", "--filter", "include_deleted=true"]
      const body = yield* records("search", "consumption-logs", ...filters)
      const page = yield* ask("/consumption-logs/search", { include_deleted: true, limit: 1000 })
      assert.deepStrictEqual<unknown>({ body }, yield* parse(page.text))
      assert.lengthOf(yield* records("search", "psp-charges", "-f", "clinic=clinic_oakridge_01", "--limit", "105"), 105)
    })
  )

  it.effect("`sync` copies what /search has, record by record: first the resources that it is given, then all", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const { sql, target: schema } = yield* warehouse
      const [file, copy, parquet] = [join(folder, "copy.db"), join(folder, "copy"), join(folder, "parquet")]
      const copies = [
        { target: schema, read: (name: string) => Readers.inPostgres(sql, "practice", name) },
        { target: `sqlite:${file}`, read: (name: string) => Effect.sync(() => Readers.inSqlite(file, name)) },
        { target: `ndjson:${copy}`, read: (name: string) => Effect.sync(() => Readers.inFolder(copy, name)) },
        { target: `parquet:${parquet}`, read: (name: string) => Effect.promise(() => Readers.inParquet(parquet, name)) }
      ]
      yield* sync(`sqlite:${file}`, "--resource", "pets", "--resource", "charges")
      assert.throws(() => Readers.inSqlite(file, "clinics"), /no such table/)
      const expected = yield* Effect.forEach(resources, ({ name }) =>
        Effect.map(searched(name), (wanted) => [name, wanted] as const)
      )
      const isQuiet = ({ stderr, stdout }: Effect.Success<ReturnType<typeof sync>>) => {
        assert.strictEqual(stderr, "")
        for (const secret of [key, password]) assert.notInclude(stdout, secret)
      }
      for (const { read, target } of copies) {
        const first = yield* sync(target)
        assert.strictEqual(first.code, 0, first.stderr)
        isQuiet(first)
        for (const [name, wanted] of expected) {
          assert.isNotEmpty(Object.keys(wanted))
          assert.deepStrictEqual(Object.fromEntries(yield* read(name)), wanted, `${name} in ${target}`)
        }
      }
      const second = yield* sync(schema, "--progress", "text")
      assert.match(second.stdout, /\nIn step: nothing new, after [\d.]+ s\.\n$/)
      isQuiet(second)
      for (const kept of [file, join(copy, "_practice_data_sync.json")]) {
        assert.notInclude(readFileSync(kept).toString("latin1"), key)
      }
    })
  )

  it.effect.each([
    ["sqlite", "SIGINT", 130],
    ["parquet", "SIGTERM", 143]
  ] as const)("%s files are their user's alone, and %s ends a sync with %i", ([kind, signal, code]) =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const target = `${kind}:${join(folder, "copy")}`
      // The files beside a SQLite file are gone when the command ends.
      const command = yield* start(yield* environment, ["sync", target, "--watch", "60"])
      yield* eventually("the copy", () => command.stdout().includes('"in_step"'))
      const made = readdirSync(folder, { recursive: true, withFileTypes: true })
      assert.isAbove(made.length, 3)
      for (const entry of made) {
        const path = join(entry.parentPath, entry.name)
        assert.strictEqual(statSync(path).mode & 0o777, entry.isDirectory() ? 0o700 : 0o600, path)
      }
      yield* command.kill(signal)
      assert.strictEqual((yield* command.ended).code, code)
      assert.strictEqual((yield* sync(target)).code, 0)
    })
  )

  // At the end, since its deletion is a change that a copy has later.
  it.effect("`send` delivers the items of flags and a file, and prints its receipt", () =>
    Effect.gen(function* () {
      const file = join(yield* temporaryFolder, "delivery.json")
      writeFileSync(file, `{"invoices":[{"invoice_id":"invoice_oakridge_0007","clinic_id":null}]}`)
      const items = ["--invoice-line", "line_oakridge_0008_1", "--file", file]
      const sending = ["send", "--organization", "org_oakridge", ...items]
      const [receipt] = yield* records(...sending, "--key", "by-command")
      const counts = { invoices_count: 1, invoice_lines_count: 1 }
      assert.deepInclude(receipt, { status: "scheduled", idempotency_key: "by-command", ...counts })
      assert.match(yield* printed(...sending, "--key", "by-command"), /^status +duplicate$/m)
      const task = yield* printed("get", "invoice-deletions", "--idempotency-key", "by-command")
      assert.match(task, /^state +scheduled$/m)
      writeFileSync(file, `{"invoices":[{"invoice":"1"}]}`)
      assert.include((yield* run(...sending)).stderr, 'at ["invoices"][0]["invoice_id"]')
    })
  )
})
