/** The targets by the texts that name them. */
import { resolve } from "node:path"
import { Config, Effect, Option, Redacted, Result } from "effect"
import * as ConnectionUrl from "../../database/ConnectionUrl.ts"
import { misused } from "../Usage.ts"
import * as NdjsonTarget from "./NdjsonTarget.ts"
import * as ParquetTarget from "./ParquetTarget.ts"
import * as PostgresTarget from "./PostgresTarget.ts"
import * as SqliteTarget from "./SqliteTarget.ts"

export interface Options {
  readonly schema: Option.Option<string>
  readonly compact: boolean
  readonly softDelete: boolean
}

const refuse = (message: string) => misused(["sync"], message)

/** A path as the user meant it: npm runs `npm run cli` in the folder of the package. */
const fromFolderOfUser = (path: string) =>
  Effect.orElseSucceed(
    Effect.map(Config.all([Config.String("INIT_CWD"), Config.String("npm_lifecycle_event")]), ([folder, script]) =>
      script === "cli" ? resolve(folder, path) : path
    ),
    () => path
  )

/** The target of `postgres://...`, `sqlite:FILE`, `parquet:FOLDER`, `ndjson:FOLDER` or the path of a folder. */
export const targetOf = Effect.fnUntraced(function* (text: string, { compact, schema, softDelete }: Options) {
  const isPostgres = /^postgres(ql)?:/i.test(text)
  const [prefix = "", kind = ""] = /^(sqlite|parquet|ndjson):/.exec(text) ?? []
  const given = text.slice(prefix.length)
  if (Option.isSome(schema) && !isPostgres) return yield* refuse("--schema is for a postgres:// target.")
  if (compact && (isPostgres || /sqlite|parquet/.test(kind)))
    return yield* refuse("--compact is for a folder of NDJSON.")
  if (softDelete && !isPostgres && kind !== "sqlite") return yield* refuse("--soft-delete is for Postgres and SQLite.")
  if (isPostgres) {
    const parsed = ConnectionUrl.parse(text)
    if (Result.isFailure(parsed)) {
      return yield* refuse(`The target is not a URL such as postgres://user@host:5432/database: ${parsed.failure}.`)
    }
    const inUrl = new URLSearchParams(text.split("?")[1]).get("schema") ?? "public"
    return PostgresTarget.make({
      url: Redacted.make(text),
      database: ConnectionUrl.format({ ...parsed.success, user: undefined }),
      schema: Option.getOrElse(schema, () => inUrl),
      softDelete
    })
  }
  if (given === "") return yield* refuse("The target has no path.")
  const path = yield* fromFolderOfUser(given)
  if (kind === "parquet") return yield* ParquetTarget.make(path)
  if (kind === "sqlite") return SqliteTarget.make(path, { name: text, elsewhere: "another file" }, softDelete)
  if (kind === "" && /\.(db|sqlite3?)$/i.test(text)) {
    return yield* refuse(`For a SQLite file write sqlite:${text}, for a folder ndjson:${text}.`)
  }
  if (kind === "" && /^[a-z][a-z\d+.-]+:/i.test(text)) {
    return yield* refuse("The target must be postgres://..., sqlite:FILE, ndjson:FOLDER or parquet:FOLDER.")
  }
  return yield* NdjsonTarget.make(path, compact)
})
