/** The promise of every kind of target: the copy keeps each applied page with its cursor, however a process ends. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { tables } from "../../../../src/cli/sync/Table.ts"
import type { OpenOptions } from "../../../../src/cli/sync/Target.ts"
import { resources as contract } from "../../../support/contract/Contract.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { long } from "../../../support/tries.ts"
import { beginning, charge, charges, exactly, opening, origin, page } from "./fixture.ts"
import { stands } from "./stands.ts"

const messageOf = <A, E extends { readonly message: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), ({ message }) => message)

layer(TestDatabase.layer, { excludeTestServices: true })("tables", (it) => {
  it.effect("have a column for each field of the contract's records, by its name and in its order", () =>
    Effect.sync(() => {
      assert.deepStrictEqual(
        Object.fromEntries(tables.map(({ columns, resource }) => [resource, columns.map(({ name }) => name)])),
        Object.fromEntries(contract.map(({ fields, name }) => [name, Object.keys(fields)]))
      )
    })
  )

  for (const { kind, make } of stands) {
    // Its connections and schemas take longer than all that the others do.
    const tier = kind === "Postgres" ? long : {}

    const opened = Effect.fnUntraced(function* (over: Partial<OpenOptions> = {}) {
      const stand = yield* make
      const open = stand.target.open(opening(over))
      const statuses = Effect.map(stand.rowsOf("charges"), (rows) =>
        Object.fromEntries([...rows].map(([id, json]) => [id, JSON.parse(json).status]))
      )
      return { ...stand, open, statuses }
    })

    exactly(kind, it, make)

    it.effect(`${kind} applies changes and removals, and keeps them with the cursor`, () =>
      Effect.gen(function* () {
        const { open, statuses } = yield* opened()
        const [first, second] = [
          page([charge("a", "1"), charge("b", "1"), charge("c", "1")], { has_more: true }),
          page([charge("b", "2"), charge("d", "2")], { removed: ["a", "never"] })
        ]
        yield* Effect.scoped(
          Effect.gen(function* () {
            const copy = yield* open
            assert.deepStrictEqual(yield* copy.stateOf(charges), beginning)
            yield* copy.apply(charges, beginning, first)
          })
        )
        const copy = yield* open
        const state = yield* copy.stateOf(charges)
        assert.deepStrictEqual(state, { cursor: first.cursor, load: "first" })
        const next = yield* copy.apply(charges, state, second)
        assert.deepStrictEqual(next, { cursor: second.cursor, load: "done" })
        assert.deepStrictEqual(yield* copy.stateOf(charges), next)
        yield* copy.finish
        assert.deepStrictEqual(yield* statuses, { b: "2", c: "1", d: "2" })
      }).pipe(Effect.scoped)
    )

    it.effect(`${kind} keeps what it has while all is read anew, and then removes what did not come again`, () =>
      Effect.gen(function* () {
        const { inStepAt, open, statuses } = yield* opened()
        const reload = yield* Effect.scoped(
          Effect.gen(function* () {
            const copy = yield* open
            let state = yield* copy.apply(
              charges,
              beginning,
              page([charge("a", "1"), charge("b", "1"), charge("c", "1"), charge("d", "1")])
            )
            state = yield* copy.restart(charges, state)
            state = yield* copy.apply(charges, state, page([charge("a", "2")], { has_more: true }))
            // The order began anew once more: what has come again counts no longer.
            state = yield* copy.restart(charges, state)
            assert.deepStrictEqual(state, { cursor: undefined, load: "again" })
            return yield* copy.apply(charges, state, page([charge("b", "3")], { has_more: true, removed: ["d"] }))
          })
        )
        assert.deepStrictEqual(yield* statuses, { a: "2", b: "3", c: "1" })
        const before = yield* inStepAt
        assert.isString(before)

        const copy = yield* open
        assert.deepStrictEqual(yield* copy.stateOf(charges), reload)
        // An open transaction may hold records back.
        let state = yield* copy.apply(charges, reload, page([], { complete: false }))
        assert.strictEqual(state.load, "again")
        yield* copy.finish
        assert.deepStrictEqual(yield* statuses, { a: "2", b: "3", c: "1" })
        assert.strictEqual(yield* inStepAt, before)
        // Another one is always open on a busy server.
        state = yield* copy.apply(charges, state, page([charge("e", "4")], { lag: 9 }))
        assert.strictEqual(state.load, "done")
        assert.deepStrictEqual(yield* copy.stateOf(charges), state)
        assert.deepStrictEqual(yield* statuses, { b: "3", e: "4" })
        assert.notStrictEqual(yield* inStepAt, before)
        yield* copy.finish
        yield* copy.apply(charges, state, page([charge("f", "5")]))
        assert.deepStrictEqual(yield* statuses, { b: "3", e: "4", f: "5" })
      }).pipe(Effect.scoped)
    )

    it.effect(
      `${kind} is in step once its first load is complete`,
      () =>
        Effect.gen(function* () {
          const { inStepAt, open } = yield* opened()
          const copy = yield* open
          let state = yield* copy.apply(charges, beginning, page([charge("a", "1")], { complete: false }))
          assert.strictEqual(state.load, "first")
          assert.deepStrictEqual(yield* copy.stateOf(charges), state)
          assert.isNull(yield* inStepAt)
          state = yield* copy.apply(charges, state, page([]))
          assert.strictEqual(state.load, "done")
          assert.isString(yield* inStepAt)
          state = yield* copy.apply(charges, state, page([], { complete: false }))
          assert.strictEqual(state.load, "done")
        }).pipe(Effect.scoped),
      tier
    )

    it.effect(
      `${kind} takes the last of several states of a record on a page`,
      () =>
        Effect.gen(function* () {
          const { open, statuses } = yield* opened()
          yield* (yield* open).apply(charges, beginning, page([charge("a", "1"), charge("a", "2")]))
          assert.deepStrictEqual(yield* statuses, { a: "2" })
        }).pipe(Effect.scoped),
      tier
    )

    it.effect(
      `${kind} refuses what it did not make, and a copy of something else`,
      () =>
        Effect.gen(function* () {
          const { occupy, target } = yield* make
          yield* occupy
          assert.include(yield* messageOf(target.open(opening())), "that practice-data did not create")

          const { open, target: copied } = yield* opened()
          yield* Effect.scoped(open)
          const others = (over: Partial<OpenOptions>) => messageOf(Effect.scoped(copied.open(opening(over))))
          const of = (over: Partial<typeof origin>) => others({ origin: { ...origin, ...over } })
          assert.match(
            yield* of({ organization: "org_b" }),
            /is of the organization org_a, and the API key is of org_b/
          )
          assert.match(yield* of({ url: "http://elsewhere" }), /--allow-new-url/)
          const moved = { origin: { ...origin, url: "http://elsewhere" } }
          yield* Effect.scoped(copied.open(opening({ ...moved, allowNewUrl: true })))
          yield* Effect.scoped(copied.open(opening(moved)))
        }).pipe(Effect.scoped),
      tier
    )

    it.effect(
      `${kind} serves one process at a time`,
      () =>
        Effect.gen(function* () {
          const { open } = yield* opened()
          const copy = yield* open
          assert.include(yield* messageOf(Effect.scoped(open)), "Another process keeps the copy")
          yield* copy.apply(charges, beginning, page([charge("a", "1")]))
        }).pipe(Effect.scoped),
      tier
    )

    it.effect(
      `${kind} refuses a page for a state that the copy has left`,
      () =>
        Effect.gen(function* () {
          const { forget, open, statuses } = yield* opened()
          if (forget === undefined) return
          const copy = yield* open
          yield* copy.apply(charges, beginning, page([charge("a", "1")]))
          const late = copy.apply(charges, beginning, page([charge("a", "2")]))
          assert.include(yield* messageOf(late), "Another process has changed the copy of charges")
          assert.include(yield* messageOf(copy.restart(charges, beginning)), "Another process has changed")
          assert.deepStrictEqual(yield* statuses, { a: "1" })
        }).pipe(Effect.scoped),
      tier
    )

    it.effect(
      `${kind} begins again with a resource whose copy was removed`,
      () =>
        Effect.gen(function* () {
          const { drop, open, statuses } = yield* opened()
          yield* Effect.scoped(
            Effect.gen(function* () {
              const copy = yield* open
              const state = yield* copy.apply(charges, beginning, page([charge("a", "1"), charge("b", "1")]))
              yield* drop
              // The target is to be opened again, whether there are changes or not.
              const nothing = Effect.andThen(copy.stateOf(charges), copy.apply(charges, state, page([])))
              for (const round of [nothing, copy.apply(charges, state, page([charge("a", "2")]))]) {
                const error = yield* Effect.flip(round)
                assert.strictEqual(error._tag, "Unavailable", error.message)
              }
            })
          )
          const copy = yield* open
          assert.deepStrictEqual(yield* copy.stateOf(charges), beginning)
          yield* copy.apply(charges, beginning, page([charge("b", "2")]))
          assert.deepStrictEqual(yield* statuses, { b: "2" })
        }).pipe(Effect.scoped),
      tier
    )

    it.effect(
      `${kind} adds a column that the copy lacks, and has the resource read anew`,
      () =>
        Effect.gen(function* () {
          const { forget, open, statuses } = yield* opened()
          if (forget === undefined) return
          yield* Effect.scoped(
            Effect.flatMap(open, (copy) => copy.apply(charges, beginning, page([charge("a", "1"), charge("b", "1")])))
          )
          yield* forget("status")
          const copy = yield* open
          const state = yield* copy.stateOf(charges)
          assert.deepStrictEqual(state, { cursor: undefined, load: "again" })
          yield* copy.apply(charges, state, page([charge("b", "2")]))
          assert.deepStrictEqual(yield* statuses, { b: "2" })
        }).pipe(Effect.scoped),
      tier
    )
  }
})
