/** Loads of files into a Postgres. */
import { readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Array, Effect, Fiber, Redacted, Schema, Struct } from "effect"
import { paymentIntents } from "../../../../src/api/records/Payments.ts"
import { petBenefits, pets } from "../../../../src/api/records/Pets.ts"
import * as Files from "../../../../src/cli/load/Files.ts"
import * as Load from "../../../../src/cli/load/Load.ts"
import * as PostgresSession from "../../../../src/cli/PostgresSession.ts"
import type { Report } from "../../../../src/cli/Output.ts"
import { toText } from "../../../../src/database/RecordJson.ts"
import { rowsOf } from "../../../../src/records/Rows.ts"
import * as Arbitraries from "../../../support/arbitraries.ts"
import { cli, programArgs, runWith } from "../../../support/cli.ts"
import { eventually } from "../../../support/eventually.ts"
import { root, temporaryFolder } from "../../../support/Process.ts"
import { run } from "../../../support/run.ts"
import * as TcpProxy from "../../../support/TcpProxy.ts"
import { newLogin, TestDatabase } from "../../../support/TestDatabase.ts"
import { tries } from "../../../support/tries.ts"

const decode = Schema.decodeUnknownEffect(Schema.Array(Schema.fromJsonString(Schema.JsonObject)))

let made = 0

/** Makes an organization of the test's own. */
const organization = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  const id = `org_load_${++made}`
  yield* sql`insert into organizations (organization_id, id) values (${id}, ${id})`
  return id
})

/** Writes a file, and returns its path. */
const fileOf = Effect.fnUntraced(function* (name: string, ...lines: ReadonlyArray<string>) {
  const path = join(yield* temporaryFolder, name)
  writeFileSync(path, lines.map((line) => `${line}\n`).join(""))
  return path
})

/** Loads, and returns what was told of each file. */
const loads = Effect.fnUntraced(function* (...command: ReadonlyArray<string>) {
  const { code, stderr, stdout } = yield* cli("load", ...command, "--progress", "json")
  const events = stdout === "" ? [] : yield* decode(stdout.trim().split("\n"))
  const loaded = events.filter(({ event }) => event === "loaded")
  const faults = events.filter(({ event }) => event === "fault")
  return { code, stderr, faults, counts: loaded.map((file) => Struct.pick(file, Struct.keys(none))) }
})

const none = { inserted: 0, updated: 0, unchanged: 0, deleted: 0, rejected: 0 }

layer(TestDatabase.layer, { excludeTestServices: true })("load", (it) => {
  /** The ids of an organization's pets, with their names. */
  const petsOf = Effect.fnUntraced(function* (owner: string) {
    const { sql } = yield* TestDatabase
    const rows =
      yield* sql`select concat_ws(' ', id, name) as pet from pets where organization_id = ${owner} order by id`
    return rows.map(({ pet }) => pet)
  })

  for (const { often, options } of tries({ few: 1, many: 3, size: 12, maxShrinks: 20 })) {
    for (const resource of [paymentIntents, petBenefits, pets]) {
      it.effect.prop(
        `makes ${resource.name} equal to the records in a file, and changes nothing again${often}`,
        { records: Arbitraries.recordsOf(resource, { minLength: 4, maxLength: 12 }) },
        ({ records }) =>
          Effect.gen(function* () {
            const { sql } = yield* TestDatabase
            const one = records.filter(({ organization_id }) => organization_id === records[0]?.organization_id)
            const expected = (yield* rowsOf(resource, one)).map(({ record }) => toText(record)).toSorted()
            const owner = yield* organization
            const command = [
              yield* fileOf(`${resource.table}.ndjson`, ...expected),
              "--organization",
              owner,
              "--keep-times"
            ]
            const counts = [{ ...none, inserted: one.length }]
            assert.deepStrictEqual(yield* loads(...command), { code: 0, stderr: "", faults: [], counts })
            const found = yield* sql.unsafe(`select record from ${resource.table} where organization_id = '${owner}'`)
            assert.deepStrictEqual(found.map((row) => String(Object.values(row)[0])).toSorted(), expected)
            assert.deepStrictEqual((yield* loads(...command)).counts, [{ ...none, unchanged: one.length }])
          }),
        options
      )
    }
  }

  it.effect("writes rows that differ, keeps columns that the file lacks, and parts of a name that is the same", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const owner = yield* organization
      const intents = (...lines: ReadonlyArray<string>) => fileOf("payment_intents.csv", ...lines)
      const first = yield* intents("id,plan_name,species,clinic_name", "a,Gold,Canine,One", "b,Gold,Feline,One")
      const header = "id,wellnes_plan_name,payment_amount,paid"
      const next = yield* intents(header, "a,Gold Canine,1.5,true", "b,Silver,2,false", "c,,3,false")
      const given = ["--organization", owner]
      assert.deepStrictEqual((yield* loads(first, ...given)).counts, [{ ...none, inserted: 2 }])
      assert.deepStrictEqual((yield* loads(next, ...given)).counts, [{ ...none, inserted: 1, updated: 2 }])
      const rows = sql`select id, plan_name, species, clinic_name, paid, xmin::text as xmin from payment_intents
        where organization_id = ${owner} order by id`
      const before = yield* rows
      assert.deepStrictEqual(
        before.map((row) => Object.values(row).slice(0, 5)),
        [
          ["a", "Gold", "Canine", "One", true],
          ["b", "Silver", null, "One", false],
          ["c", null, null, null, false]
        ]
      )
      assert.deepStrictEqual((yield* loads(next, ...given)).counts, [{ ...none, unchanged: 3 }])
      assert.deepStrictEqual(yield* rows, before)
    })
  )

  it.effect("applies nothing of a file with a fault, or with --rejects the good rows, and writes the others", () =>
    Effect.gen(function* () {
      const owner = yield* organization
      const rows = [`a,A,${owner}`, "b,B,org_unknown", `c,C,${owner}`, `c,D,${owner}`, ` ,E,${owner}`]
      const file = yield* fileOf("pets.csv", "id,name,tenant", ...rows)
      const given = [file, "--organization-column", "tenant"]
      const refused = yield* loads(...given)
      const faults = refused.faults.map(({ field, line, reason }) => [line, field, reason])
      const duplicates = [4, 5].map((line) => [line, "id", "is a duplicate"])
      const expected = [[6, "id", "is blank"], [3, "organization_id", "does not exist"], ...duplicates]
      assert.deepStrictEqual<unknown>(faults, expected)
      assert.deepStrictEqual([refused.code, refused.counts], [1, []])
      assert.strictEqual(refused.stderr, `4 faults. Nothing was loaded of: ${file}.\n`)
      assert.lengthOf(yield* petsOf(owner), 0)
      const rejects = join(yield* temporaryFolder, "rejects.ndjson")
      const rejected = yield* loads(...given, "--rejects", rejects)
      assert.deepStrictEqual([rejected.code, rejected.counts], [1, [{ ...none, inserted: 1, rejected: 4 }]])
      assert.lengthOf(yield* petsOf(owner), 1)
      const written = (yield* decode(readFileSync(rejects, "utf8").trim().split("\n"))).map(({ line }) => line)
      assert.deepStrictEqual<unknown>(written, [6, 3, 4, 5])
    })
  )

  it.effect("lists 100 faults, and counts the others", () =>
    Effect.gen(function* () {
      const lines = Array.makeBy(70, (index) => JSON.stringify({ id: `${index % 2}`, organization_id: "nobody" }))
      const file = yield* fileOf("pets.ndjson", ...lines, ...lines, ...lines)
      const { faults, stderr } = yield* loads(file)
      assert.lengthOf(faults, 100)
      assert.strictEqual(stderr, `210 faults. Nothing was loaded of: ${file}.\n`)
    })
  )

  it.effect("deletes what a full picture lacks, of the organizations in it, and what an operation removes", () =>
    Effect.gen(function* () {
      const [owner, other] = [yield* organization, yield* organization]
      const pairs = (...lines: ReadonlyArray<string>) => fileOf("pets.csv", "id,organization_id", ...lines)
      yield* loads(yield* pairs(...["a", "b", "c"].flatMap((id) => [`${id},${owner}`, `${id},${other}`])))
      const found = yield* loads(yield* pairs(`b,${owner}`, `d,${owner}`), "--missing", "delete")
      assert.deepStrictEqual(found.counts, [{ ...none, inserted: 1, unchanged: 1, deleted: 2 }])
      assert.deepStrictEqual(yield* petsOf(owner), ["b", "d"])
      assert.lengthOf(yield* petsOf(other), 3)
      const operations = [
        { op: "upsert", record: { id: "b", name: "1" } },
        { op: "upsert", record: { id: "b", name: "2" } },
        { op: "remove", id: "d" }
      ].map((operation) => JSON.stringify(operation))
      yield* loads(yield* fileOf("pets.ndjson", ...operations), "--organization", owner)
      assert.deepStrictEqual(yield* petsOf(owner), ["b 2"])
    })
  )

  it.effect("one file has all records of an organization where what it lacks is deleted", () =>
    Effect.gen(function* () {
      const [owner, other] = [yield* organization, yield* organization]
      const pairs = (...lines: ReadonlyArray<string>) => fileOf("pets.csv", "id,organization_id", ...lines)
      const files = [yield* pairs(`a,${owner}`), yield* pairs(`b,${other}`), yield* pairs(`c,${owner}`)]
      const { code, counts, stderr } = yield* loads(...files, "--missing", "delete")
      assert.deepStrictEqual(
        [code, counts],
        [
          1,
          [
            { ...none, inserted: 1 },
            { ...none, inserted: 1 }
          ]
        ]
      )
      assert.include(stderr, `A second file has pets of ${owner}: ${files[2]}.`)
      assert.deepStrictEqual([yield* petsOf(owner), yield* petsOf(other)], [["a"], ["b"]])
      const [mine, more] = [yield* fileOf("pets.csv", "id", "b"), yield* fileOf("pets.ndjson", '{"id":"a"}')]
      const refused = yield* loads(mine, more, "--organization", owner, "--missing", "delete")
      assert.include(refused.stderr, `A second file has pets of ${owner}: ${more}.`)
      assert.deepStrictEqual(yield* petsOf(owner), ["a"])
    })
  )

  it.effect("a pooler is refused, whose sessions would keep the settings of a load", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const [owner, file] = [yield* organization, yield* fileOf("pets.csv", "id", "a")]
      const pooled = yield* TcpProxy.poolerOf(url)
      const found = yield* runWith({ DATABASE_URL: pooled }, ["load", file, "--organization", owner])
      assert.deepStrictEqual([found.code, yield* petsOf(owner)], [1, []])
      assert.include(found.stderr, "leads to a connection pooler")
    })
  )

  it.effect("rejects overwrite no file of the load, by whatever name it is given", () =>
    Effect.gen(function* () {
      const owner = yield* organization
      const file = yield* fileOf("pets.csv", "id", "a")
      const link = join(yield* temporaryFolder, "rejects.ndjson")
      symlinkSync(file, link)
      for (const rejects of [file, relative("", file), link]) {
        const { code, stderr } = yield* loads(file, "--organization", owner, "--rejects", rejects)
        assert.deepStrictEqual([code, readFileSync(file, "utf8")], [2, "id\na\n"])
        assert.include(stderr, "--rejects would overwrite a file of the load.")
      }
    })
  )

  it.effect("loads nothing of a file whose rejects are written in part, as on a disk that is full", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const owner = yield* organization
      const file = yield* fileOf(
        "pets.csv",
        "id,name,created_at",
        "a,A,2026-01-31T09:30Z",
        `b,${"B".repeat(20_000)},never`
      )
      const rejects = join(yield* temporaryFolder, "rejects.ndjson")
      // At most 8 KiB a file, and 16 where a block is larger.
      const script = ["-c", 'ulimit -f 16; exec "$@"', "sh", ...programArgs, "load", file]
      const env = { ...process.env, DATABASE_URL: url }
      const given = [...script, "--organization", owner, "--rejects", rejects]
      const { code, stderr } = yield* run("sh", given, { cwd: root, env })
      assert.strictEqual(code, 1)
      assert.include(stderr, "Cannot write the rejects: ")
      assert.lengthOf(yield* petsOf(owner), 0)
    })
  )

  it.effect(
    "a writer without more privileges may load, and resumes what was cut; an owner then makes the indexes",
    () =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        const [owner, { url }] = [yield* organization, yield* newLogin("writer")]
        const lines = Array.makeBy(300, (index) => `p${index},Name`)
        const file = yield* fileOf("products.csv", "id,product_name", ...lines)
        const indexes = sql`select pg_get_indexdef(indexrelid) as definition from pg_index
        where indrelid = 'products'::regclass order by 1`
        const before = yield* indexes
        // As a load that was killed leaves the table.
        yield* sql`insert into products (organization_id, id, product_name)
        select ${owner}, 'p' || n, 'Name' from generate_series(0, 99) n`
        yield* sql`drop index products_search`
        const { code, stderr } = yield* runWith({ DATABASE_URL: url }, ["load", file, "--organization", owner])
        assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" })
        assert.lengthOf(yield* indexes, before.length - 1)
        assert.deepStrictEqual((yield* loads(file, "--organization", owner)).counts, [{ ...none, unchanged: 300 }])
        assert.deepStrictEqual(yield* indexes, before)
      })
  )

  it.effect("an interrupt ends a load that waits for a lock, and its session within seconds", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const [owner, file] = [yield* organization, yield* fileOf("products.csv", "id", "a")]
      yield* sql`insert into products (organization_id, id) values (${owner}, 'b')`
      const pids = Effect.map(
        sql`select pid from pg_locks where relation = 'products'::regclass and not granted`,
        Array.map(({ pid }) => pid)
      )
      let seen: unknown
      const interrupted = Effect.gen(function* () {
        const loading = yield* Effect.forkChild(cli("load", file, "--organization", owner))
        // The session of an interrupted load would have the next one refused.
        yield* eventually("the load waits", pids, ([pid]) => pid !== undefined && pid !== seen)
        seen = (yield* pids)[0]
        yield* Fiber.interrupt(loading)
      })
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`lock table products in share mode`
          yield* interrupted
          yield* interrupted
        })
      )
      assert.strictEqual((yield* loads(file, "--organization", owner)).code, 0)
    })
  )

  it.effect("an interrupted load of an empty table tells of the missing indexes, which the next one makes", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      const owner = yield* organization
      const path = yield* fileOf("charge_adjustments.csv", "id", "a")
      const said: Array<string> = []
      const report: Report = (_, sentence) => Effect.sync(() => said.push(sentence)).pipe(Effect.asVoid)
      const indexes = sql`select from pg_index where indrelid = 'charge_adjustments'::regclass`
      const before = (yield* indexes).length
      yield* sql`create function wait_for_test() returns trigger language plpgsql as
        'begin perform pg_advisory_xact_lock(1); return new; end'`
      yield* sql`create trigger wait_for_test before insert on charge_adjustments
        for each row execute function wait_for_test()`
      const loading = Effect.gen(function* () {
        const session = yield* PostgresSession.open(Redacted.make(url), url, "test")
        const given = { organization: owner, organizationColumn: undefined, timeZone: undefined, rejects: undefined }
        const files = yield* Files.find([path])
        yield* Load.run(files, { ...given, session, report, deletesMissing: false, keepsTimes: false })
      }).pipe(Effect.scoped)
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`select pg_advisory_xact_lock(1)`
          const fiber = yield* Effect.forkChild(loading)
          const waiting = sql`select from pg_locks where locktype = 'advisory' and not granted`
          yield* eventually("the load waits", waiting, ({ length }) => length > 0)
          yield* Fiber.interrupt(fiber)
        })
      )
      assert.deepStrictEqual(said, [
        "Indexes of charge_adjustments may be missing. Run the load again: it creates them."
      ])
      assert.isBelow((yield* indexes).length, before)
      yield* loads(path, "--organization", owner)
      assert.lengthOf(yield* indexes, before)
    })
  )

  it.effect("the indexes of an empty table are made after the rows", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const owner = yield* organization
      const indexes = sql<{ definition: string; oid: number }>`
        select pg_get_indexdef(indexrelid) as definition, indexrelid::int as oid
        from pg_index where indrelid = 'charge_refunds'::regclass order by 1`.pipe(
        Effect.map((found) => new Map(found.map(({ definition, oid }) => [definition, oid])))
      )
      const before = yield* indexes
      yield* loads(yield* fileOf("charge_refunds.csv", "id", "a"), "--organization", owner)
      const after = yield* indexes
      assert.deepStrictEqual([...after.keys()], [...before.keys()])
      // The key and the index of changes stay.
      assert.lengthOf(Array.intersection(before.values(), after.values()), 2)
    })
  )

  it.effect.each([
    [["pets.csv"], 1, "Cannot read pets.csv"],
    [["pets.csv", "--organization", "a", "--organization-column", "b"], 2, "Use either --organization"],
    [["pets.csv", "--rejects", "r", "--missing", "delete"], 2, "cannot be combined with --rejects"],
    [["pets.csv", "--time-zone", "Mars/Base"], 2, "not an IANA time zone"],
    [["package.json"], 1, "not named after a resource"]
  ] as const)("%j is refused", ([given, code, message]) =>
    Effect.gen(function* () {
      const found = yield* cli("load", ...given)
      assert.strictEqual(found.code, code)
      assert.include(found.stderr, message)
    })
  )
})
