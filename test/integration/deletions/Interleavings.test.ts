/** Deletions among the transactions of loaders that are open meanwhile, in any order of their steps. */
import { assert, layer } from "@effect/vitest"
import { Arbitrary, Effect, Layer, Record, Schema } from "effect"
import { TestClock } from "effect/testing"
import * as Sweep from "../../../src/deletions/Sweep.ts"
import * as Loaders from "./loaders.ts"
import * as Task from "../../support/deletions/tasks.ts"
import { isDistributed, TestDatabase } from "../../support/TestDatabase.ts"
import { tries } from "../../support/tries.ts"

// Citus merges no rows of records, and prepares no transaction that was on several servers.
const hasAll = !isDistributed()

const Loader = Schema.Struct({
  way: Schema.Literals(Record.keys(Loaders.ways).filter((way) => hasAll || !way.startsWith("merge"))),
  isolation: Schema.Literals(["read committed", "repeatable read"]),
  end: Schema.Literals(hasAll ? ["commit", "prepare", "rollback"] : ["commit", "rollback"])
})

/** What happens next: a step of a loader, of the worker, or of one of two sweeps. */
const Move = Schema.Literals([
  "invoices",
  "invoice_lines",
  "invoices again",
  "invoice_lines again",
  "run",
  "sweep 1",
  "sweep 2"
])

const payloads = {
  invoice: { invoices: [{ invoice_id: "x" }] },
  "invoice that fits": { invoices: [{ invoice_id: "x", client_id: "k" }] },
  "invoice of another client": { invoices: [{ invoice_id: "x", client_id: "nobody" }] },
  line: { invoice_lines: [{ invoice_line_id: "x1" }] },
  "line that fits": { invoice_lines: [{ invoice_line_id: "x1", invoice_id: "x" }] },
  both: { invoices: [{ invoice_id: "x", client_id: "k" }], invoice_lines: [{ invoice_line_id: "x1" }] }
}

const Schedule = Schema.Struct({
  invoices: Loader,
  invoice_lines: Loader,
  items: Schema.Literals(Record.keys(payloads)),
  moves: Schema.Array(Move).check(Schema.isMinLength(8), Schema.isMaxLength(30))
})

/** A loader that takes a step at a time, and begins again where it has to. The last step returns true. */
const loader = Effect.fnUntraced(function* (table: Loaders.Table, given: typeof Loader.Type) {
  const { url } = yield* TestDatabase
  const write = yield* Loaders.session
  const gid = `${new URL(url).pathname.slice(1)}_${table}`
  const { end, isolation, way } = given
  const steps = [
    `begin isolation level ${isolation}`,
    "select 1 from invoices",
    ...Loaders.ways[way].statements(table, "new"),
    ...(end === "prepare" ? [`prepare transaction '${gid}'`, `commit prepared '${gid}'`] : [end])
  ]
  let taken = 0
  const step = Effect.gen(function* () {
    const next = steps[taken]
    if (next === undefined) return true
    yield* write(next).pipe(
      Effect.map(() => void taken++),
      Effect.catchIf(Loaders.isStale, () => Effect.map(write("rollback"), () => void (taken = 0)))
    )
    return taken === steps.length
  })
  return { step }
})

const play = Effect.fnUntraced(function* ({ items, moves, ...loaders }: typeof Schedule.Type) {
  const sql = yield* Loaders.begin({
    invoices: Loaders.ways[loaders.invoices.way].from("invoices"),
    invoice_lines: Loaders.ways[loaders.invoice_lines.way].from("invoice_lines")
  })
  yield* Task.scheduled(Task.delivery("deletion", payloads[items]))
  yield* TestClock.adjust(Task.delay)
  const claim = yield* Task.claimOne()
  const sweeps = { "sweep 1": yield* Sweep.make, "sweep 2": yield* Sweep.make }
  const load = {
    invoices: yield* loader("invoices", loaders.invoices),
    invoice_lines: yield* loader("invoice_lines", loaders.invoice_lines)
  }
  let isCompleted = false
  for (const move of moves) {
    switch (move) {
      case "run":
        if (!isCompleted) isCompleted = !Task.isPostponed(yield* Task.runOne(claim))
        break
      case "sweep 1":
      case "sweep 2":
        yield* sweeps[move].step
        break
      default:
        yield* load[move.startsWith("invoices") ? "invoices" : "invoice_lines"].step
    }
  }
  for (const { step } of Object.values(load)) yield* Effect.repeat(step, { until: (isLast) => isLast })
  if (!isCompleted) assert.isFalse(Task.isPostponed(yield* Task.runOne(claim)), "nobody holds rows")
  for (let steps = 0; steps < 8; steps++) yield* sweeps["sweep 1"].step
  assert.isEmpty(yield* sql`select 1 from deletions_unsettled union all select 1 from deletion_work`)
  const rows = yield* Loaders.rows
  const [x, x1] = [rows.get("x"), rows.get("x1")]
  const isDeleted = items === "invoice" || ((items === "invoice that fits" || items === "both") && x !== undefined)
  if (x !== undefined) assert.strictEqual(x.is_deleted, isDeleted, "x")
  if (x1 !== undefined)
    assert.strictEqual(x1.is_deleted, isDeleted || items.startsWith("line") || items === "both", "x1")
  for (const [id, row] of rows) {
    assert.isTrue(row.agrees)
    if (id !== "x" && id !== "x1" && id !== "n" && id !== "z") assert.isFalse(row.is_deleted, id)
  }
  const late = yield* sql`
    select d.id from deletions d where verdict = 'not_found' and (
      (kind = 'invoice' and exists (select from invoices i where i.organization_id = d.organization_id and i.id = d.id))
      or (kind = 'line' and exists (select from invoice_lines l where l.organization_id = d.organization_id and l.id = d.id))
    )`
  assert.isEmpty(late, "each item is judged")
})

const thrice = (move: typeof Move.Type) => [move, move, move]

layer(TestDatabase.layerDatabases, Task.onDatabase)("in the end", (it) => {
  for (const { often, options } of tries({ few: 5, many: 20, size: 40, maxShrinks: 60 }))
    it.effect.prop(
      `what a deletion names is deleted, and nothing else, whatever happens meanwhile${often}`,
      { schedule: Arbitrary.schema(Schedule) },
      ({ schedule }) =>
        play(schedule).pipe(Effect.provide(Layer.fresh(Task.layerPostgres)), Effect.scoped, Task.inItsOwnTime),
      options
    )

  it.effect("a line that came while its invoice was judged is deleted", () =>
    play({
      invoices: { way: "insert", isolation: "read committed", end: "commit" },
      invoice_lines: { way: "insert", isolation: "read committed", end: "commit" },
      items: "invoice that fits",
      // The sweep notes the loader of the invoice. That of the line begins later, and ends last.
      moves: [...thrice("invoices"), "run", "sweep 1", ...thrice("invoice_lines"), "invoices", "sweep 1", "sweep 1"]
    }).pipe(Effect.provide(Layer.fresh(Task.layerPostgres)), Effect.scoped, Task.inItsOwnTime)
  )
})
