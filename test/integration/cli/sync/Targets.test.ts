/** The rules of every kind of target, by runs of the sync over scripts of the service's feed. */
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, it as test, layer } from "@effect/vitest"
import { Effect, Result, Schema, type Scope } from "effect"
import { CursorExpired } from "../../../../src/api/Errors.ts"
import { paymentIntents } from "../../../../src/api/records/Payments.ts"
import { pets } from "../../../../src/api/records/Pets.ts"
import * as Targets from "../../../../src/cli/sync/Targets.ts"
import { tables } from "../../../../src/cli/sync/Tables.ts"
import { Refused } from "../../../../src/cli/Usage.ts"
import { connectionOptions } from "../../../../src/database/ConnectionUrl.ts"
import { toText } from "../../../../src/database/Columns.ts"
import { toRows as renderedRows } from "../../../../src/records/Rows.ts"
import * as Arbitraries from "../../../support/arbitraries.ts"
import { resources as contract } from "../../../contract/Contract.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { live, tries } from "../../../support/tries.ts"
import { resources as stored } from "../../records/stores.ts"
import { charge, type Given, gone, more, page, refund, reset, type Script, syncWith } from "./fixture.ts"
import * as Readers from "./readers.ts"

let schemas = 0

/** A target of one kind, empty and of the test's own, and the same one that marks removed rows, with readers of the copy. */
const postgres = Effect.gen(function* () {
  const { sql, url } = yield* TestDatabase
  const schema = `Copy "${++schemas}`
  const escaped = schema.replaceAll('"', '""')
  const make = (softDelete: boolean) => Targets.postgres(Result.getOrThrow(connectionOptions(url)), schema, softDelete)
  return {
    target: make(false),
    softDeleting: make(true),
    rowsOf: (name: string) => Effect.orDie(Readers.inPostgres(sql, escaped, name)),
    /** Runs a statement in which `@` stands before the name of a table. */
    query: (statement: string) => {
      const text = statement.replaceAll(/@(?=\w)/g, `"${escaped}".`).replaceAll("@", `"${escaped}"`)
      return Effect.orDie(sql.unsafe<Record<string, unknown>>(text))
    }
  }
})

const sqlite = Effect.map(temporaryFolder, (folder) => {
  const file = join(folder, "copy.db")
  const make = (softDelete: boolean) => Targets.sqlite(file, "sqlite:copy.db", softDelete)
  return {
    target: make(false),
    softDeleting: make(true),
    rowsOf: (name: string) => Effect.sync(() => Readers.inSqlite(file, name)),
    query: (statement: string) =>
      Effect.sync(() => {
        const database = new DatabaseSync(file)
        const rows = database.prepare(statement.replaceAll("@", "")).all()
        database.close()
        return rows
      })
  }
})

const decode = Schema.decodeEffect(Schema.Array(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))))

const expired = Effect.fail(new CursorExpired())
const refused = new Refused({ message: "The service refuses" })
const nothing: Script = (at) => page(at)

/** A first load of two pages, then one page. */
const loading: Script = (at) => {
  if (at === 0) return page(1, [charge("a", "1"), charge("b", "1"), charge("c", "1"), refund("r")], more)
  if (at === 1) return page(2, [charge("b", "2"), charge("b", "3"), gone("a"), gone("never"), charge("d", "1")])
  return page(3, [gone("d"), charge("d", "4"), gone("r", "charge-refunds"), charge("e", "1"), gone("e")])
}

test("tables have a column for each field of the contract's records, in its order", () => {
  const found = Object.fromEntries(tables.map(({ columns, resource }) => [resource, columns.map(({ name }) => name)]))
  assert.deepStrictEqual(found, Object.fromEntries(contract.map(({ fields, name }) => [name, Object.keys(fields)])))
})

type Making = Effect.Effect<Effect.Success<typeof postgres>, never, TestDatabase | Scope.Scope>
const kinds: Readonly<Record<string, Making>> = { Postgres: postgres, SQLite: sqlite }

for (const [kind, make] of Object.entries(kinds)) {
  const stand = Effect.map(make, (made) => {
    const cursors = new Array<number>()
    return {
      ...made,
      /** The cursors that the runs asked for. */
      cursors,
      run: (script: Script, given?: Given) => syncWith(made.target, (at) => (cursors.push(at), script(at)), given),
      /** The status of each charge, and the ids of the refunds. */
      rows: Effect.gen(function* () {
        const charges = [...(yield* made.rowsOf("charges"))].map(([id, json]) => [id, JSON.parse(json).status])
        const refunds = [...(yield* made.rowsOf("charge-refunds")).keys()].toSorted()
        return { charges: Object.fromEntries(charges), refunds }
      })
    }
  })

  layer(TestDatabase.layer, { ...live, concurrent: true })(`a copy in ${kind}`, (it) => {
    for (const { often, options } of tries({ few: 1, many: 2, size: 24, maxShrinks: 100 })) {
      // They have a field of every type.
      for (const resource of options.tags.length > 0 ? stored : [paymentIntents, pets]) {
        const { name } = resource
        it.effect.prop(
          `has ${name} exactly as they came${often}`,
          { records: Arbitraries.recordsOf(resource, { minLength: 4, maxLength: 24 }) },
          ({ records }) =>
            Effect.gen(function* () {
              const { rowsOf, run } = yield* stand
              const came = yield* decode((yield* renderedRows(resource, records)).map(({ record }) => toText(record)))
              // Each record replaces one of its id with the values of the next.
              const before = came.map(({ id }, index) => ({ ...came[(index + 1) % came.length], id }))
              const changes = (from: typeof came) => from.map((record) => ({ resource: name, record }))
              for (const each of [before, came]) yield* run((at) => page(at + 1, changes(each)), { resources: [name] })
              const expected = Object.fromEntries(came.map((record) => [record["id"], JSON.stringify(record)]))
              assert.deepStrictEqual(Object.fromEntries(yield* rowsOf(name)), expected)
            }),
          options
        )
      }
    }

    it.effect("applies changes and removals, keeps them with the cursor, and reads on from there", () =>
      Effect.gen(function* () {
        const { cursors, rows, run } = yield* stand
        yield* run(loading)
        assert.deepStrictEqual(yield* rows, { charges: { b: "3", c: "1", d: "1" }, refunds: ["r"] })
        yield* run(loading)
        assert.deepStrictEqual(yield* rows, { charges: { b: "3", c: "1", d: "4" }, refunds: [] })
        assert.deepStrictEqual(cursors, [0, 1, 2])
      })
    )

    it.effect("shows a round of many pages at its end, and resumes one that was cut off", () =>
      Effect.gen(function* () {
        const { cursors, rows, run } = yield* stand
        yield* run(() => page(1, [charge("a", "1"), charge("b", "1"), gone("never"), refund("r")]))
        const before = { charges: { a: "1", b: "1" }, refunds: ["r"] }
        assert.deepStrictEqual(yield* rows, before)
        const seen: Array<unknown> = []
        const look = Effect.map(rows, (found) => void seen.push(found))
        let isCut = true
        const script: Script = Effect.fnUntraced(function* (at) {
          yield* look
          if (at === 1) return page(2, [charge("a", "2"), gone("b")], more)
          if (at === 2) return page(3, [charge("c", "2")], more)
          if (isCut) return yield* refused
          return page(4, [gone("r", "charge-refunds")])
        })
        assert.strictEqual(yield* Effect.flip(run(script)), refused)
        isCut = false
        yield* look
        yield* run(script)
        assert.deepStrictEqual(yield* rows, { charges: { a: "2", c: "2" }, refunds: [] })
        assert.deepStrictEqual(cursors, [0, 1, 2, 3, 3])
        for (const found of seen) assert.deepStrictEqual(found, before)
      })
    )

    it.effect("removes what does not come after a reset, of that resource alone", () =>
      Effect.gen(function* () {
        const { rows, run } = yield* stand
        yield* run(() => page(1, [charge("a", "1"), charge("b", "1"), charge("c", "1"), refund("r")]))
        yield* run((at) => {
          if (at === 1) return page(2, [charge("c", "2"), reset(), charge("a", "2")], more)
          return page(3, at === 2 ? [charge("d", "2"), charge("e", "2"), gone("e")] : [])
        })
        assert.deepStrictEqual(yield* rows, { charges: { a: "2", d: "2" }, refunds: ["r"] })
      })
    )

    it.effect("keeps its rows while everything is read again, and then removes what did not come", () =>
      Effect.gen(function* () {
        const { query, rows, run } = yield* stand
        const inStepAt = query("select cast(in_step_at as text) as at from @_practice_data_sync")
        yield* run(() => page(7, [charge("a", "1"), charge("b", "1"), charge("c", "1"), refund("r")]))
        const before = yield* inStepAt
        // The order ends once more: what came after the first end counts no longer.
        const twice: Script = (at) => (at === 7 ? expired : at === 0 ? page(1, [charge("c", "2")], more) : refused)
        assert.strictEqual(yield* Effect.flip(run(twice)), refused)
        let ends = 0
        const script: Script = (at) => {
          if (at === 1 && ++ends <= 3) return expired
          return at === 0 ? page(1, [charge("a", "2")], more) : page(2, [charge("d", "2")])
        }
        const cut: Script = (at) => (at === 1 && ends === 1 ? refused : script(at))
        assert.strictEqual(yield* Effect.flip(run(cut)), refused)
        assert.deepStrictEqual(yield* rows, { charges: { a: "1", b: "1", c: "1" }, refunds: ["r"] })
        assert.deepStrictEqual(yield* inStepAt, before)
        yield* run(script)
        assert.deepStrictEqual(yield* rows, { charges: { a: "2", d: "2" }, refunds: [] })
        assert.notDeepEqual(yield* inStepAt, before)
      })
    )

    it.effect("is loaded again where one of its tables was removed", () =>
      Effect.gen(function* () {
        const { cursors, query, rows, run } = yield* stand
        yield* run(() => page(1, [charge("a", "1"), refund("r")]))
        yield* query("drop table @charges")
        yield* run(() => page(2, [charge("b", "2"), refund("s")]))
        assert.deepStrictEqual(cursors, [0, 0])
        assert.deepStrictEqual(yield* rows, { charges: { b: "2" }, refunds: ["s"] })
      })
    )

    it.effect("refuses what it did not make, and the copy of something else", () =>
      Effect.gen(function* () {
        const other = yield* stand
        if (kind === "Postgres") yield* other.query("create schema @")
        yield* other.query("create table @charges (id text)")
        assert.include((yield* Effect.flip(other.run(nothing))).message, "practice-data did not create it")

        const { run } = yield* stand
        yield* run(nothing)
        const organization = Effect.succeed("org_b")
        const ofAnother = yield* Effect.flip(run(nothing, { source: { organization } }))
        assert.match(ofAnother.message, /belongs to the organization org_a, but the API key to org_b/)
      })
    )

    it.effect("is written by one of two processes: the other one is refused", () =>
      Effect.gen(function* () {
        const { rows, run } = yield* stand
        yield* run(() => page(1, [charge("a", "1")]))
        const outcomes: Array<unknown> = []
        const second = Effect.exit(run((at) => page(at + 1, [charge("a", "second")])))
        const first = run((at) =>
          Effect.map(second, (exit) => {
            outcomes.push(exit._tag)
            return page(at + 1, [charge("a", "first")])
          })
        )
        outcomes.push((yield* Effect.exit(first))._tag)
        assert.sameMembers(outcomes, ["Success", "Failure"])
        const winner = outcomes[0] === "Success" ? "second" : "first"
        assert.deepStrictEqual(yield* rows, { charges: { a: winner }, refunds: [] })
      })
    )

    it.effect("is refused to a package that knows other fields", () =>
      Effect.gen(function* () {
        const { rows, run } = yield* stand
        yield* run(() => page(1, [charge("a", "1"), refund("r")]))
        const next = run(() => page(2, [reset(), charge("a", "2")]), { without: "status" })
        const { message } = yield* Effect.flip(next)
        assert.match(
          message,
          /has other columns, as another version made it. Drop its tables, and sync again, or choose/
        )
        assert.deepStrictEqual(yield* rows, { charges: { a: "1" }, refunds: ["r"] })
      })
    )

    it.effect("has a time for each row, and marks removed rows if it is to", () =>
      Effect.gen(function* () {
        const { query, rows, run, softDeleting } = yield* stand
        const idsOf = (where: string) =>
          Effect.map(query(`select id from @charges where ${where} order by id`), (found) => found.map(({ id }) => id))
        const written = idsOf("_synced_at = (select max(_synced_at) from @charges)")
        const marked = idsOf("_removed_at is not null")
        yield* run(() => page(1, [charge("a", "1"), charge("b", "1"), charge("c", "1")]))
        yield* run(() => page(2, [charge("b", "2"), gone("c")]))
        assert.deepStrictEqual(yield* written, ["b"])

        const soft = (script: Script) => syncWith(softDeleting, script)
        yield* soft(() => page(3, [gone("a"), charge("d", "3"), gone("never")]))
        assert.deepStrictEqual(yield* marked, ["a"])
        yield* soft(() => page(4, [reset(), charge("a", "4")]))
        assert.deepStrictEqual(yield* marked, ["b", "d"])
        assert.deepStrictEqual(yield* rows, { charges: { a: "4", b: "2", d: "3" }, refunds: [] })
        yield* run(() => page(5, [charge("b", "5"), gone("a")]))
        assert.deepStrictEqual(yield* marked, ["d"])
        assert.deepStrictEqual(yield* rows, { charges: { b: "5", d: "3" }, refunds: [] })
      })
    )
  })
}
