/** The targets that texts name, and the secrets that no message shows. */
import { assert, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { targetOf } from "../../../../src/cli/Sync.ts"

interface Options {
  readonly schema?: string
  readonly compact?: boolean
  readonly softDelete?: boolean
}

/** The name of a target, or the error of a text. */
const named = (text: string, { compact = false, schema, softDelete = false }: Options = {}) =>
  targetOf(text, { schema: Option.fromNullishOr(schema), compact, softDelete }).pipe(
    Effect.map(({ name }) => name),
    Effect.catch(({ errors }) => Effect.succeed(errors.map(({ message }) => message).join()))
  )

it.effect.each([
  ["postgres://me:s3cret@db:5433/x?sslmode=require", {}, "postgres://db:5433/x, schema public"],
  ["postgresql://me@db/x?schema=practice", {}, "postgres://db:5432/x, schema practice"],
  ["postgres://me@db/x?schema=practice", { schema: "flag" }, "postgres://db:5432/x, schema flag"],
  ["sqlite:copies/practice.db", {}, "sqlite:copies/practice.db"],
  ["parquet:copies", {}, "parquet:copies"],
  ["ndjson:copies/practice.db", {}, "ndjson:copies/practice.db"]
] as const)("%s with %j is %s", ([text, options, name]) =>
  Effect.map(named(text, options), (found) => assert.strictEqual(found, name))
)

it.effect.each([
  ["copies", {}, "must be postgres://"],
  ["mysql://me:s3cret@db/x", {}, "must be postgres://"],
  ["sqlite:", {}, "must be postgres://"],
  ["postgres://me:s3cret@:x/warehouse", {}, "is not a URL"],
  ["sqlite:copy.db", { compact: true }, "--compact is for a folder"],
  ["ndjson:copy", { schema: "practice" }, "--schema is for a postgres:// target"],
  ["ndjson:copy", { softDelete: true }, "--soft-delete is for Postgres and SQLite"]
] as const)("%s with %j is refused: %s", ([text, options, reason]) =>
  Effect.map(named(text, options), (message) => {
    assert.include(message, reason)
    assert.notInclude(message, "s3cret")
  })
)
