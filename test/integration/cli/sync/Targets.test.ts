/** The rules of every kind of target, by runs of the sync over scripts of the service's feed. */
import { assert, it as test, layer } from "@effect/vitest"
import { DateTime, Effect, Schema } from "effect"
import { paymentIntents } from "../../../../src/api/records/Payments.ts"
import { pets } from "../../../../src/api/records/Pets.ts"
import { CursorExpired } from "../../../../src/cli/sync/Source.ts"
import { tables } from "../../../../src/cli/sync/Target.ts"
import { Refused } from "../../../../src/cli/Usage.ts"
import { toText } from "../../../../src/records/Pages.ts"
import { rowsOf as renderedRows } from "../../../../src/records/Rows.ts"
import * as Arbitraries from "../../../support/arbitraries.ts"
import { resources as contract } from "../../../support/contract/Contract.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { tries } from "../../../support/tries.ts"
import { resources as stored } from "../../records/stores.ts"
import { charge, type Given, gone, more, page, refund, reset, type Script, syncWith } from "./fixture.ts"
import { stands } from "./stands.ts"

const decode = Schema.decodeEffect(Schema.Array(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))))

const expired = Effect.fail(new CursorExpired())
const refused = new Refused({ message: "The service refuses" })
const all = ["charges", "charge-refunds"]
const timeOf = (text: unknown) => DateTime.makeUnsafe(String(text)).epochMilliseconds
const nothing: Script = (at) => page(at)

test("tables have a column for each field of the contract's records, by its name and in its order", () => {
  assert.deepStrictEqual(
    Object.fromEntries(tables.map(({ columns, resource }) => [resource, columns.map(({ name }) => name)])),
    Object.fromEntries(contract.map(({ fields, name }) => [name, Object.keys(fields)]))
  )
})

for (const { kind, make } of stands) {
  const stand = Effect.map(make, (made) => ({
    ...made,
    run: (script: Script, given?: Given) => syncWith(made.target, script, given),
    ids: Effect.map(made.rowsOf("charge-refunds"), (rows) => [...rows.keys()].toSorted()),
    statuses: Effect.map(made.rowsOf("charges"), (rows) =>
      Object.fromEntries([...rows].map(([id, json]) => [id, JSON.parse(json).status]))
    )
  }))

  layer(TestDatabase.layer, { excludeTestServices: true })(`a copy in ${kind}`, (it) => {
    for (const { often, options } of tries({ few: 1, many: 3, size: 24, maxShrinks: 100 })) {
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
              for (const each of [before, came]) {
                yield* run((at) => page(at + 1, changes(each)), { resources: [name] })
              }
              assert.deepStrictEqual(
                Object.fromEntries(yield* rowsOf(name)),
                Object.fromEntries(came.map((record) => [record["id"], JSON.stringify(record)]))
              )
            }).pipe(Effect.scoped),
          options
        )
      }
    }

    it.effect("applies changes and removals, keeps them with the cursor, and reads on from there", () =>
      Effect.gen(function* () {
        const { ids, run, statuses } = yield* stand
        const asked: Array<number> = []
        const script: Script = (at) => {
          asked.push(at)
          if (at === 0) return page(1, [charge("a", "1"), charge("b", "1"), charge("c", "1"), refund("r")], more)
          if (at === 1) return page(2, [charge("b", "2"), charge("b", "3"), gone("a"), gone("never"), charge("d", "1")])
          return page(3, [gone("d"), charge("d", "4"), gone("r", "charge-refunds"), charge("e", "1"), gone("e")])
        }
        yield* run(script)
        assert.deepStrictEqual(yield* statuses, { b: "3", c: "1", d: "1" })
        assert.deepStrictEqual(yield* ids, ["r"])
        yield* run(script)
        assert.deepStrictEqual(yield* statuses, { b: "3", c: "1", d: "4" })
        assert.deepStrictEqual(yield* ids, [])
        assert.deepStrictEqual(asked, [0, 1, 2])
      }).pipe(Effect.scoped)
    )

    it.effect("shows a round of many pages at its end, and resumes one that was cut off", () =>
      Effect.gen(function* () {
        const { ids, run, statuses } = yield* stand
        yield* run(() => page(1, [charge("a", "1"), charge("b", "1"), gone("never"), refund("r")]))
        assert.deepStrictEqual(yield* statuses, { a: "1", b: "1" })
        const before = { statuses: yield* statuses, ids: yield* ids }
        const seen: Array<unknown> = []
        const look = Effect.map(Effect.all({ statuses, ids }), (found) => void seen.push(found))
        const asked: Array<number> = []
        let isCut = true
        const script: Script = Effect.fnUntraced(function* (at) {
          asked.push(at)
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
        assert.deepStrictEqual(yield* statuses, { a: "2", c: "2" })
        assert.deepStrictEqual(yield* ids, [])
        assert.deepStrictEqual(asked, [1, 2, 3, 3])
        for (const found of seen) assert.deepStrictEqual(found, before)
      }).pipe(Effect.scoped)
    )

    it.effect("removes what does not come after a reset, of that resource alone", () =>
      Effect.gen(function* () {
        const { ids, run, statuses } = yield* stand
        yield* run(() => page(1, [charge("a", "1"), charge("b", "1"), charge("c", "1"), refund("r")]))
        yield* run((at) => {
          if (at === 1) return page(2, [charge("c", "2"), reset(), charge("a", "2")], more)
          return page(3, at === 2 ? [charge("d", "2"), charge("e", "2"), gone("e")] : [])
        })
        assert.deepStrictEqual(yield* statuses, { a: "2", d: "2" })
        assert.deepStrictEqual(yield* ids, ["r"])
      }).pipe(Effect.scoped)
    )

    it.effect("keeps its rows while everything is read again, and then removes what did not come", () =>
      Effect.gen(function* () {
        const { ids, inStepAt, run, statuses } = yield* stand
        yield* run(() => page(7, [charge("a", "1"), charge("b", "1"), charge("c", "1"), refund("r")]))
        const before = yield* inStepAt("charges")
        // The order ends once more: what came after the first end counts no longer.
        const twice: Script = (at) => (at === 7 ? expired : at === 0 ? page(1, [charge("c", "2")], more) : refused)
        assert.strictEqual(yield* Effect.flip(run(twice)), refused)
        let ends = 0
        const script: Script = (at) => {
          if (at === 1 && ++ends <= 3) return expired
          return at === 0 ? page(1, [charge("a", "2")], more) : page(2, [charge("d", "2")])
        }
        const cut: Script = (at) => (at === 1 && ends === 1 ? refused : script(at, all))
        assert.strictEqual(yield* Effect.flip(run(cut)), refused)
        assert.deepStrictEqual(Object.keys(yield* statuses), ["a", "b", "c"])
        assert.deepStrictEqual(yield* ids, ["r"])
        assert.strictEqual(yield* inStepAt("charges"), before)
        yield* run(script)
        assert.deepStrictEqual(yield* statuses, { a: "2", d: "2" })
        assert.deepStrictEqual(yield* ids, [])
        assert.notStrictEqual(yield* inStepAt("charges"), before)
      }).pipe(Effect.scoped)
    )

    it.effect("ends a load with the last page of its round while a transaction holds changes back", () =>
      Effect.gen(function* () {
        const { inStepAt, run, statuses } = yield* stand
        yield* run(() => page(7, [charge("a", "1"), charge("b", "1")]))
        const before = timeOf(yield* inStepAt("charges"))
        const held = { is_consistent: false, lag: 60 }
        yield* run((at) => (at === 7 ? expired : page(1, [charge("a", "2")], held)))
        assert.deepStrictEqual(yield* statuses, { a: "2" })
        assert.isBelow(timeOf(yield* inStepAt("charges")), before)
      }).pipe(Effect.scoped)
    )

    it.effect("loads a resource that joins, and one that comes back, alone", () =>
      Effect.gen(function* () {
        const { ids, inStepAt, run, statuses } = yield* stand
        yield* run(() => page(1, [charge("a", "1")]), { resources: ["charges"] })
        const asked: Array<ReadonlyArray<string>> = []
        const script: Script = (at, resources) => {
          asked.push(resources)
          const isJoining = resources.length === 2 && at < 3
          return page(at + 1, isJoining ? [reset("charge-refunds"), refund(`${at}`)] : [])
        }
        yield* run(script)
        assert.deepStrictEqual(asked, [["charges"], all])
        assert.deepStrictEqual(yield* ids, ["2"])
        yield* run(script, { resources: ["charges"] })
        assert.isString(yield* inStepAt("charge-refunds"))
        yield* run(script)
        assert.deepStrictEqual(asked.slice(2), [["charges"], ["charges"], all])
        assert.deepStrictEqual(yield* statuses, { a: "1" })
      }).pipe(Effect.scoped)
    )

    it.effect("loads a resource whose copy was removed again, and no other", () =>
      Effect.gen(function* () {
        const { drop, ids, run, statuses } = yield* stand
        yield* run(() => page(1, [charge("a", "1"), refund("r")]))
        yield* drop
        const asked: Array<ReadonlyArray<string>> = []
        yield* run((at, resources) => {
          asked.push(resources)
          return page(at + 1, at === 1 ? [gone("r", "charge-refunds"), refund("s")] : [reset(), charge("b", "2")])
        })
        assert.deepStrictEqual(asked, [["charge-refunds"], all])
        assert.deepStrictEqual(yield* statuses, { b: "2" })
        assert.deepStrictEqual(yield* ids, ["s"])
      }).pipe(Effect.scoped)
    )

    it.effect("refuses what it did not make, the copy of something else, and a second process", () =>
      Effect.gen(function* () {
        const other = yield* stand
        yield* other.occupy
        assert.include((yield* Effect.flip(other.run(nothing))).message, "that practice-data did not create")

        const { run } = yield* stand
        yield* run(nothing)
        const org = { organization: Effect.succeed("org_b") }
        assert.match(
          (yield* Effect.flip(run(nothing, { source: org }))).message,
          /is of the organization org_a, and the API key is of org_b/
        )
        const source = { url: "http://elsewhere" }
        assert.match((yield* Effect.flip(run(nothing, { source }))).message, /--allow-new-url/)
        yield* run(nothing, { source, allowNewUrl: true })
        let second: string | undefined
        yield* run(
          Effect.fnUntraced(function* (at) {
            second = (yield* Effect.result(run(nothing, { source }))).toString()
            return page(at)
          }),
          { source }
        )
        assert.include(second, "Another process keeps the copy")
      }).pipe(Effect.scoped)
    )

    it.effect("has a time for each row, marks removed rows if it is to, and adds a column that it lacks", () =>
      Effect.gen(function* () {
        const { run, statuses, tables: copied } = yield* stand
        if (copied === undefined) return
        const idsOf = (where: string) =>
          Effect.map(copied.run(`select id from @charges where ${where} order by id`), (rows) =>
            rows.map(({ id }) => id)
          )
        const written = idsOf("_synced_at = (select max(_synced_at) from @charges)")
        const marked = idsOf("_removed_at is not null")
        yield* run(() => page(1, [charge("a", "1"), charge("b", "1"), charge("c", "1")]))
        yield* run(() => page(2, [charge("b", "2"), gone("c")]))
        assert.deepStrictEqual(yield* written, ["b"])

        const soft = (script: Script) => syncWith(copied.softDeleting, script)
        yield* soft(() => page(3, [gone("a"), charge("d", "3"), gone("never")]))
        assert.deepStrictEqual(yield* marked, ["a"])
        yield* soft(() => page(4, [reset(), charge("a", "4")]))
        assert.deepStrictEqual(yield* marked, ["b", "d"])
        assert.deepStrictEqual(yield* statuses, { a: "4", b: "2", d: "3" })
        yield* run(() => page(5, [charge("b", "5"), gone("a")]))
        assert.deepStrictEqual(yield* marked, ["d"])
        assert.deepStrictEqual(yield* statuses, { b: "5", d: "3" })

        yield* copied.run("alter table @charges drop column status")
        const asked: Array<ReadonlyArray<string>> = []
        yield* run((at, resources) => {
          asked.push(resources)
          return page(at + 1, at === 5 ? [] : [reset(), charge("b", "6")])
        })
        assert.deepStrictEqual(asked, [["charge-refunds"], all])
        assert.deepStrictEqual(yield* statuses, { b: "6" })
      }).pipe(Effect.scoped)
    )
  })
}
