/** Reports of a running sync; the targets that texts name, and the secrets that no message shows. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock, TestConsole } from "effect/testing"
import type { Change } from "../../../src/cli/sync/Tables.ts"
import { parseTarget } from "../../../src/cli/sync/Targets.ts"
import { type Report, reporting, reports } from "../../../src/cli/sync/Sync.ts"

const changes = (records: number, removed = 0): ReadonlyArray<Change> => [
  ...Array.from({ length: records }, (_, id) => ({ resource: "charges", record: { id } })),
  ...Array.from({ length: removed }, (_, id) => ({ resource: "charges", removed: `${id}` }))
]

const warning = "The service says \u001b[2J\u202e\n, and is tried again."

/** Reports a first load and three later rounds, half a second after each other. Returns the printed lines. */
const linesOf = Effect.fnUntraced(function* (report: Report) {
  const { applied, inStep } = yield* reporting(report)
  for (const steps of [
    [() => applied(changes(1000))],
    [() => report({ event: "note", message: warning }, warning)],
    [() => applied(changes(234, 1))],
    [() => applied(changes(500))],
    [() => inStep(3)],
    [() => applied(changes(0)), () => inStep(0)],
    [() => applied(changes(2, 1)), () => inStep(1)],
    [() => applied([{ resource: "pets", reset: true }])],
    [() => inStep(1)]
  ]) {
    for (const step of steps) yield* step()
    yield* TestClock.adjust("500 millis")
  }
  return (yield* TestConsole.logLines).join("\n").split("\n")
})

it.effect("a report for a person is a sentence for each event that matters", () =>
  Effect.gen(function* () {
    assert.deepStrictEqual(yield* linesOf(reports.text), [
      String.raw`The service says \u001b[2J\u202e\n, and is tried again.`,
      "1,234 records, 1 removed so far",
      "In step: 1,734 records, 1 removed, after 3.0 s.",
      "In step: 2 records, 1 removed, after 1.0 s.",
      "In step: 0 records, 1 resource reloaded, after 1.0 s."
    ])
  })
)

it.effect("a report for a program is a line of JSON for each event that matters", () =>
  Effect.gen(function* () {
    const lines = (yield* linesOf(reports.json)).map((line) => {
      const { at, ...event } = JSON.parse(line)
      assert.match(at, /^1970-01-01T00:00:0\d\.\d{3}Z$/)
      return event
    })
    assert.deepStrictEqual(lines, [
      { event: "note", message: warning },
      { event: "applied", records: 1234, removed: 1, reset: 0 },
      { event: "in_step", records: 1734, removed: 1, reset: 0, seconds: 3 },
      { event: "in_step", records: 2, removed: 1, reset: 0, seconds: 1 },
      { event: "in_step", records: 0, removed: 0, reset: 1, seconds: 1 }
    ])
  })
)

it.effect.each<readonly [target: string, schema: string | undefined, name: string]>([
  ["postgres://me:s3cret@db:5433/x?sslmode=require", undefined, "postgres://db:5433/x, schema public"],
  ["postgresql://me@db/x?schema=practice", undefined, "postgres://db:5432/x, schema practice"],
  ["postgres://me@db/x?schema=practice", "flag", "postgres://db:5432/x, schema flag"],
  ["sqlite:copies/practice.db", undefined, "sqlite:copies/practice.db"],
  ["copies", undefined, "must be postgres://"],
  ["mysql://me:s3cret@db/x", undefined, "must be postgres://"],
  ["sqlite:", undefined, "must be postgres://"],
  ["postgres://me:s3cret@:x/warehouse", undefined, "is not a URL"],
  ["postgres://me@db/x?schema=", undefined, "The schema name is empty"],
  ["sqlite:copy.db", "practice", "--schema is for a postgres:// target"]
])("the name of the target %s with the schema %s, or its error, is %s", ([text, schema, expected]) =>
  parseTarget(text, { schema, softDelete: false }).pipe(
    Effect.match({
      onSuccess: ({ name }) => name,
      onFailure: ({ errors }) => errors.map(({ message }) => message).join()
    }),
    Effect.map((found) => {
      assert.include(found, expected)
      assert.notInclude(found, "s3cret")
    })
  )
)
