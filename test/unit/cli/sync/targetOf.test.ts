/** The targets that texts name, and the secrets that no message shows. */
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect, Option } from "effect"
import { targetOf } from "../../../../src/cli/Sync.ts"

/** The name of a target, or the error of a text. */
const named = (text: string, schema?: string, compact = false) =>
  targetOf(text, { schema: Option.fromNullishOr(schema), compact, softDelete: false }).pipe(
    Effect.map(({ name }) => name),
    Effect.catch(({ errors }) => Effect.succeed(errors.map(({ message }) => message).join()))
  )

it.effect.each([
  ["postgres://me:s3cret@db:5433/x?sslmode=require", undefined, "postgres://db:5433/x, schema public"],
  ["postgresql://me@db/x?schema=practice", undefined, "postgres://db:5432/x, schema practice"],
  ["postgres://me@db/x?schema=practice", "flag", "postgres://db:5432/x, schema flag"],
  ["sqlite:copies/practice.db", undefined, "sqlite:copies/practice.db"],
  ["parquet:copies", undefined, "parquet:copies"],
  ["ndjson:copies/practice.db", undefined, "ndjson:copies/practice.db"],
  ["./copies/practice", undefined, "ndjson:./copies/practice"]
] as const)("%s with the schema %s is %s", ([text, schema, name]) =>
  Effect.map(named(text, schema), (found) => assert.strictEqual(found, name))
)

it.effect.each([
  ["cli", "copies", "ndjson:/home/me/copies"],
  ["cli", "parquet:../copies", "parquet:/home/copies"],
  ["cli", "ndjson:/srv/copies", "ndjson:/srv/copies"],
  ["sync", "ndjson:copies", "ndjson:copies"]
] as const)("`npm run %s` has %s at %s", ([script, text, name]) =>
  named(text).pipe(
    Effect.map((found) => assert.strictEqual(found, name)),
    Effect.provideService(
      ConfigProvider.ConfigProvider,
      ConfigProvider.fromEnv({ env: { INIT_CWD: "/home/me", npm_lifecycle_event: script } })
    )
  )
)

it.effect.each([
  ["copy.sqlite3", undefined, false, "must be postgres://"],
  ["mysql://me:s3cret@db/x", undefined, false, "must be postgres://"],
  ["postgres://me:s3cret@:x/warehouse", undefined, false, "is not a URL"],
  ["sqlite:", undefined, false, "no path"],
  ["sqlite:copy.db", undefined, true, "--compact is for a folder"],
  ["postgres://me:s3cret@db/x", undefined, true, "--compact is for a folder"],
  ["copy", "practice", false, "--schema is for a postgres:// target"]
] as const)("%s with the schema %s and compact %s is refused: %s", ([text, schema, compact, reason]) =>
  Effect.map(named(text, schema, compact), (message) => {
    assert.include(message, reason)
    assert.notInclude(message, "s3cret")
  })
)
