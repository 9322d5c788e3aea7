/**
 * `sync` as users run it, over the running service.
 *
 * @module-tag long
 */
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import * as Readers from "../../integration/cli/sync/readers.ts"
import { processWith, start } from "../../support/cli.ts"
import { everything, resources } from "../../contract/Contract.ts"
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

const sync = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(environment, (variables) => processWith({ environment: variables }, ["sync", ...args]))

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

layer(Layer.merge(Service.layerEmbedded, TestDatabase.layer), options)("A command", (it) => {
  it.effect("`sync` copies what /search has", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const { sql, target: schema } = yield* warehouse
      const file = join(folder, "copy.db")
      const copies = [
        { target: schema, read: (name: string) => Readers.inPostgres(sql, "practice", name) },
        { target: `sqlite:${file}`, read: (name: string) => Effect.sync(() => Readers.inSqlite(file, name)) }
      ]
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
      const second = yield* sync(schema)
      assert.match(second.stdout, /"event":"in_step","seconds":[\d.]+,"records":0,"removed":0,"reset":0\}\n$/)
      isQuiet(second)
      assert.notInclude(readFileSync(file).toString("latin1"), key)
    })
  )

  it.effect.each([
    ["SIGINT", 130],
    ["SIGTERM", 143]
  ] as const)("a SQLite file is its user's alone, and %s ends a sync with %i", ([signal, code]) =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const target = `sqlite:${join(folder, "copy.db")}`
      // The files beside a SQLite file are gone when the command ends.
      const command = yield* start(yield* environment, ["sync", target, "--watch", "60"])
      yield* eventually("the copy", () => command.stdout().includes('"in_step"'))
      const made = readdirSync(folder)
      assert.isAbove(made.length, 3)
      for (const name of made) assert.strictEqual(statSync(join(folder, name)).mode & 0o777, 0o600, name)
      yield* command.kill(signal)
      assert.strictEqual((yield* command.ended).code, code)
      assert.strictEqual((yield* sync(target)).code, 0)
    })
  )
})
