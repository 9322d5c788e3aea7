/** The targets by the texts that name them. */
import { Effect, Option, Redacted, Result, Schema } from "effect"
import * as ConnectionUrl from "../../database/ConnectionUrl.ts"
import * as NdjsonTarget from "./NdjsonTarget.ts"
import * as ParquetTarget from "./ParquetTarget.ts"
import * as PostgresTarget from "./PostgresTarget.ts"
import * as SqliteTarget from "./SqliteTarget.ts"

export interface Options {
  readonly schema: Option.Option<string>
  readonly compact: boolean
  readonly concurrency: number
}

/** The text names no target, or one that an option is not for. */
export class NotATarget extends Schema.TaggedError<NotATarget>()("NotATarget", { message: Schema.String }) {}

const refuse = (message: string) => Effect.fail(new NotATarget({ message }))

const postgres = (text: string, { concurrency, schema }: Options) =>
  Result.match(ConnectionUrl.parse(text), {
    onFailure: (reason) => refuse(`The target is not a URL such as postgres://user@host:5432/database: ${reason}.`),
    onSuccess: () => {
      const given = new URLSearchParams(text.split("?")[1]).get("schema")
      const named = Option.getOrElse(schema, () => given ?? "public")
      return Effect.succeed(PostgresTarget.make({ url: Redacted.make(text), schema: named, concurrency }))
    }
  })

const looksLikeFile = /\.(db|sqlite3?)$/i
const scheme = /^[a-z][a-z\d+.-]+:/i

/** The target of `postgres://...`, `sqlite:FILE`, `parquet:FOLDER`, `ndjson:FOLDER` or the path of a folder. */
export const targetOf = Effect.fnUntraced(function* (text: string, options: Options) {
  const isPostgres = /^postgres(ql)?:/i.test(text)
  const isFolder = !isPostgres && !/^(sqlite|parquet):/.test(text)
  if (Option.isSome(options.schema) && !isPostgres) return yield* refuse("--schema is for a postgres:// target.")
  if (options.compact && !isFolder) return yield* refuse("--compact is for a folder of NDJSON.")
  if (isPostgres) return yield* postgres(text, options)
  const path = text.replace(/^(sqlite|ndjson|parquet):/, "")
  if (path === "") return yield* refuse("The target has no path.")
  if (text.startsWith("parquet:")) return yield* ParquetTarget.make(path)
  if (!isFolder) return SqliteTarget.make(path, { name: text, elsewhere: "another file" })
  if (!text.startsWith("ndjson:")) {
    if (looksLikeFile.test(text))
      return yield* refuse(`For a SQLite file write sqlite:${text}, for a folder ndjson:${text}.`)
    if (scheme.test(text)) {
      return yield* refuse(`The target must be postgres://..., sqlite:FILE, ndjson:FOLDER or parquet:FOLDER.`)
    }
  }
  return yield* NdjsonTarget.make({ folder: path, compact: options.compact })
})
