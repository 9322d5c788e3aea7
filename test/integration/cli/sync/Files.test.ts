/** The places that a copy in files accepts, and a full disk. */
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, FileSystem, Option } from "effect"
import * as Files from "../../../../src/cli/sync/Files.ts"
import * as Sqlite from "../../../../src/cli/sync/SqliteTarget.ts"
import { targetOf } from "../../../../src/cli/sync/targetOf.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import { opening } from "./fixture.ts"

const open = (text: string) =>
  targetOf(text, { schema: Option.none(), compact: false, concurrency: 1 }).pipe(
    Effect.flatMap((target) => target.open(opening())),
    Effect.scoped,
    Effect.provide(NodeServices.layer)
  )

const make = {
  sqlite: (path: string) => writeFileSync(path, ""),
  ndjson: (path: string) => mkdirSync(path),
  parquet: (path: string) => mkdirSync(path)
}

it.effect.each(["sqlite", "ndjson", "parquet"] as const)(
  "%s: a symbolic link is followed to what exists, and never makes anything elsewhere",
  (kind) =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const [link, elsewhere] = [join(folder, "link"), join(folder, "elsewhere")]
      symlinkSync(elsewhere, link)
      const error = yield* Effect.flip(open(`${kind}:${link}`))
      assert.strictEqual(error._tag, "TargetRefused")
      assert.include(error.message, `${link} is a symbolic link`)
      assert.isFalse(existsSync(elsewhere))
      make[kind](elsewhere)
      yield* open(`${kind}:${link}`)
    }).pipe(Effect.scoped)
)

it.effect("a file that is written in a folder takes the place of a link", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const copy = join(folder, "copy")
    yield* open(`ndjson:${copy}`)
    symlinkSync(join(folder, "elsewhere"), join(copy, "_practice_data_sync.json.next"))
    yield* open(`ndjson:${copy}`)
    assert.deepStrictEqual(readdirSync(folder), ["copy"])
  }).pipe(Effect.scoped)
)

it.effect("a full disk is waited out", () =>
  Effect.gen(function* () {
    const database = yield* Sqlite.open("sqlite:copy.db", join(yield* temporaryFolder, "copy.db"))
    database.exec("create table copy (text); pragma max_page_count = 4")
    const inSqlite = Sqlite.attempt("sqlite:copy.db", () =>
      database.exec(`insert into copy values ('${"x".repeat(100_000)}')`)
    )
    const writing = Effect.flatMap(FileSystem.FileSystem, (fs) => fs.writeFileString("/dev/full", "x"))
    for (const written of [inSqlite, Effect.mapError(writing, Files.failureOf("ndjson:copy"))]) {
      const error = yield* Effect.flip(written)
      assert.strictEqual(error._tag, "TargetUnavailable", error.message)
    }
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)
