/** The targets that texts name, and the secrets that no message shows. */
import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { type Options, targetOf } from "../../../../src/cli/sync/targetOf.ts"

const given = (over: Partial<Options> = {}): Options => ({
  schema: Option.none(),
  compact: false,
  concurrency: 4,
  ...over
})

const named = (text: string, over: Partial<Options> = {}) =>
  targetOf(text, given(over)).pipe(
    Effect.map(({ name }) => name),
    Effect.provide(NodeServices.layer)
  )

const targets = [
  [
    "postgres://me:s3cret@db.example:5433/warehouse?sslmode=require",
    "postgres://db.example:5433/warehouse, schema public"
  ],
  ["postgresql://me@db.example/warehouse?schema=practice", "postgres://db.example:5432/warehouse, schema practice"],
  ["sqlite:copies/practice.db", "sqlite:copies/practice.db"],
  ["ndjson:copies/practice.db", "ndjson:copies/practice.db"],
  ["./copies/practice", "ndjson:./copies/practice"],
  ["copies", "ndjson:copies"]
] as const

it.effect.each(targets)("%s is %s", ([text, name]) =>
  Effect.gen(function* () {
    assert.strictEqual(yield* named(text), name)
  })
)

it.effect("takes the schema of the flag first", () =>
  Effect.gen(function* () {
    const name = yield* named("postgres://me@db/warehouse?schema=a", { schema: Option.some("b") })
    assert.strictEqual(name, "postgres://db:5432/warehouse, schema b")
  })
)

const wrong = [
  ["copy.sqlite3", {}, "sqlite:copy.sqlite3"],
  ["mysql://me:s3cret@db/warehouse", {}, "must be postgres://"],
  ["postgres://me:s3cret@:x/warehouse", {}, "is not a URL"],
  ["sqlite:", {}, "no path"],
  ["sqlite:copy.db", { compact: true }, "--compact is for a folder"],
  ["copy", { schema: Option.some("practice") }, "--schema is for a postgres:// target"]
] as const

it.effect.each(wrong)("refuses %s", ([text, over, why]) =>
  Effect.gen(function* () {
    const { message } = yield* Effect.flip(named(text, over))
    assert.include(message, why)
    assert.notInclude(message, "s3cret")
  })
)
