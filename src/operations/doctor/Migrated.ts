/** The catalog of a database that has all migrations: `migrated.json`, which `npm run generate` writes. */
import { Effect, Schema } from "effect"
import type { Catalog } from "../../database/Catalog.ts"
import migrated from "./migrated.json" with { type: "json" }

const Kind = Schema.Literals(["domain", "function", "column", "default", "not null", "constraint", "index", "trigger"])

const File = Schema.Struct({
  parts: Schema.Array(Schema.Tuple([Kind, Schema.String, Schema.String, Schema.String, Schema.String])),
  privileges: Schema.Array(
    Schema.Tuple([Schema.String, Schema.String, Schema.String, Schema.NullOr(Schema.Array(Schema.String))])
  )
})

/** The catalog, as if it had been made in this schema. */
export const inSchema = Effect.fnUntraced(function* (schema: string) {
  const { parts, privileges } = yield* Effect.orDie(Schema.decodeUnknownEffect(File)(migrated))
  const there = (text: string) =>
    text
      .replace(/^schema public$/, `schema ${schema}`)
      .replaceAll("public.", `${schema}.`)
      .replaceAll("'public'", `'${schema}'`)
  return {
    schema,
    isClosed: false,
    isReplica: false,
    parts: parts.map(([kind, of, name, definition, state]) => ({
      kind,
      of,
      name: there(name),
      definition: there(definition),
      state
    })),
    privileges: privileges.map(([grantee, privilege, object, columns]) => ({
      grantee,
      privilege,
      object: there(object),
      columns
    }))
  } satisfies Catalog
})
