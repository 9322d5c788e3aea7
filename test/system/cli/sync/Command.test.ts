/**
 * The command as users run it, against the running service: its exit codes, its words, and nothing secret in them.
 *
 * @module-tag long
 */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { connect } from "../../../../src/database/Database.ts"
import { resources } from "../../../support/contract/Contract.ts"
import { eventually } from "../../../support/eventually.ts"
import * as Process from "../../../support/Process.ts"
import { everything } from "../../../support/contract/Contract.ts"
import { options, Service } from "../../../support/Service.ts"
import { emptyDatabase, TestDatabase } from "../../../support/TestDatabase.ts"
import * as Command from "./command.ts"
import * as Readers from "../../../integration/cli/sync/readers.ts"

const key = "pda_demo_oakridge"

const environment = Effect.gen(function* () {
  const { process } = yield* Service
  return { PRACTICE_DATA_URL: yield* process.address, PRACTICE_DATA_API_KEY: key }
})

const jsonById = (text: string): Readonly<Record<string, string>> => {
  const found = JSON.parse(text)
  const records: ReadonlyArray<{ readonly id: string }> = found.body ?? [found]
  return Object.fromEntries(records.map((record) => [record.id, JSON.stringify(record)]))
}

/** The records as `/search` has them: the JSON of each, by its id. */
const searched = Effect.fnUntraced(function* (name: string) {
  const { ask } = yield* Service
  const resource = resources.find((one) => one.name === name) ?? assert.fail(name)
  const { text } = yield* resource.search === undefined
    ? ask(`/${name}/get`, {})
    : ask(`/${name}/search`, everything(resource))
  return jsonById(text)
})

const password = "s3cret of the warehouse"

/** A database of a Postgres, a client of it, and a user who has no more rights there than to make a schema. */
const warehouse = Effect.gen(function* () {
  const admin = new URL(yield* emptyDatabase)
  const sql = yield* connect({
    url: Redacted.make(admin.href),
    applicationName: "practice-data-test",
    maxConnections: 1,
    statementTimeout: "1 minute"
  })
  const [database, user] = [admin.pathname.slice(1), `${admin.pathname.slice(1)}_user`]
  yield* sql.unsafe(`create role ${user} login password '${password}'`)
  yield* sql.unsafe(`grant connect, create on database ${database} to ${user}`)
  return { target: `postgres://${user}@${admin.host}/${database}?schema=practice`, sql }
}).pipe(Effect.provide(Reactivity.layer))

const unanswering = "postgres://someone:s3cret@127.0.0.1:1/nothing"

layer(Layer.merge(Service.layerEmbedded, TestDatabase.layer), options)("sync", (it) => {
  it.effect("copies what /search has, record by record, and tells the second time that there is nothing new", () =>
    Effect.gen(function* () {
      const folder = yield* Process.temporaryFolder
      const { sql, target: schema } = yield* warehouse
      const file = join(folder, "copy.db")
      const copy = join(folder, "copy")
      const parquet = join(folder, "parquet")
      const copies = [
        { target: schema, read: (name: string) => Readers.inPostgres(sql, "practice", name) },
        { target: `sqlite:${file}`, read: (name: string) => Effect.sync(() => Readers.inSqlite(file, name)) },
        { target: copy, read: (name: string) => Effect.sync(() => Readers.inFolder(copy, name)) },
        { target: `parquet:${parquet}`, read: (name: string) => Effect.promise(() => Readers.inParquet(parquet, name)) }
      ]
      const variables = { ...(yield* environment), PGPASSWORD: password }
      for (const { read, target } of copies) {
        const first = yield* Command.run(variables, [target])
        assert.strictEqual(first.code, 0, first.stderr)
        for (const { name } of resources) {
          const records = yield* searched(name)
          assert.isNotEmpty(Object.keys(records))
          assert.deepStrictEqual(Object.fromEntries(yield* read(name)), records, `${name} in ${target}`)
        }
        const second = yield* Command.run(variables, [target, "--progress", "text"])
        assert.match(second.stdout, /\nIn step: nothing new, after [\d.]+ s\.\n$/)
        for (const { code, stderr, stdout } of [first, second]) {
          assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" })
          for (const secret of [key, password]) assert.notInclude(stdout, secret)
        }
      }
      for (const kept of [file, join(copy, "_practice_data_sync.json")]) {
        assert.notInclude(readFileSync(kept).toString("latin1"), key)
      }
    })
  )

  it.effect.each(["sqlite:", "ndjson:", "parquet:"])("%s files and folders are their user's alone", (kind) =>
    Effect.gen(function* () {
      const folder = yield* Process.temporaryFolder
      // The files beside a SQLite file are gone when the command ends.
      const command = yield* Command.start(yield* environment, [`${kind}${join(folder, "copy")}`, "--watch", "60"])
      yield* eventually(
        "the copy",
        Effect.sync(() => command.stdout().includes('"done"'))
      )
      const made = readdirSync(folder, { recursive: true, withFileTypes: true })
      assert.isAbove(made.length, 3)
      for (const entry of made) {
        const path = join(entry.parentPath, entry.name)
        assert.strictEqual(statSync(path).mode & 0o777, entry.isDirectory() ? 0o700 : 0o600, path)
      }
    })
  )

  it.effect("says by its exit code whether to try again", () =>
    Effect.gen(function* () {
      const folder = yield* Process.temporaryFolder
      const foreign = join(folder, "notes.txt")
      writeFileSync(foreign, "mine")
      const target = `sqlite:${join(folder, "copy.db")}`
      const variables = yield* environment
      const cases = [
        { variables: { ...variables, PRACTICE_DATA_API_KEY: "pda_wrong" }, args: [target], code: 1, says: "401" },
        { variables, args: [folder], code: 1, says: "notes.txt" },
        {
          variables: { ...variables, PRACTICE_DATA_API_KEY: "" },
          args: [target],
          code: 2,
          says: "PRACTICE_DATA_API_KEY"
        },
        { variables, args: ["copy.db"], code: 2, says: "sqlite:copy.db" },
        { variables, args: [target, "--resource", "clowns"], code: 2, says: "clowns" },
        { variables, args: [unanswering], code: 75, says: "127.0.0.1:1" },
        {
          variables: { ...variables, PRACTICE_DATA_URL: "http://127.0.0.1:1" },
          args: [target],
          code: 75,
          says: "127.0.0.1:1"
        }
      ]
      yield* Effect.forEach(
        cases,
        Effect.fnUntraced(function* (one) {
          const { code, stderr, stdout } = yield* Command.run(one.variables, one.args)
          assert.deepStrictEqual({ code, stdout }, { code: one.code, stdout: "" }, stderr)
          assert.include(stderr, one.says)
          for (const secret of [key, "pda_wrong", "s3cret"]) assert.notInclude(stderr, secret)
        }),
        { concurrency: 2 }
      )
      assert.strictEqual(readFileSync(foreign, "utf8"), "mine")
    })
  )

  it.effect("copies the resources that were asked for, and the others later", () =>
    Effect.gen(function* () {
      const file = join(yield* Process.temporaryFolder, "copy.db")
      const variables = yield* environment
      const some = yield* Command.run(variables, [`sqlite:${file}`, "--resource", "pets", "--resource", "charges"])
      assert.sameMembers(
        Command.eventsOf(some.stdout).flatMap(({ event, resource }) => (event === "in_step" ? [resource] : [])),
        ["pets", "charges"]
      )
      assert.throws(() => Readers.inSqlite(file, "clinics"), /no such table/)
      yield* Command.run(variables, [`sqlite:${file}`])
      assert.deepStrictEqual(Object.fromEntries(Readers.inSqlite(file, "clinics")), yield* searched("clinics"))
    })
  )

  it.effect.each([
    ["SIGINT", 130],
    ["SIGTERM", 143]
  ] as const)("ends at %s, with code %i", ([signal, code]) =>
    Effect.gen(function* () {
      const file = join(yield* Process.temporaryFolder, "copy.db")
      const command = yield* Command.start(yield* environment, [`sqlite:${file}`, "--watch", "60"])
      yield* command.opened
      yield* command.kill(signal)
      assert.strictEqual((yield* command.ended).code, code)
      assert.strictEqual((yield* Command.run(yield* environment, [`sqlite:${file}`])).code, 0)
    })
  )
})
