/** The places that a copy in a file accepts, and a full disk. */
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as SqliteTarget from "../../../../src/cli/sync/SqliteTarget.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import { opening } from "./fixture.ts"
import * as Readers from "./readers.ts"

const open = (file: string) => Effect.scoped(SqliteTarget.make(file, `sqlite:${file}`, false).open(opening))

it.effect("a place where no file can be made is refused", () =>
  Effect.gen(function* () {
    const impossible = "/proc/practice-data/copy"
    const error = yield* Effect.flip(open(impossible))
    assert.strictEqual(error._tag, "Refused")
    assert.include(error.message, `Cannot use sqlite:${impossible}`)
  })
)

it.effect("amounts are decimals", () =>
  Effect.gen(function* () {
    const file = join(yield* temporaryFolder, "copy.db")
    yield* open(file)
    const statement = "select type from pragma_table_info('_practice_data_sync_staged_charges') where name = 'net_paid'"
    assert.deepStrictEqual(Readers.query(file, statement), [{ type: "decimal" }])
  })
)

it.effect("a full disk is waited out", () =>
  Effect.gen(function* () {
    const database = new DatabaseSync(join(yield* temporaryFolder, "copy.db"))
    database.exec("create table copy (text); pragma max_page_count = 4")
    const error = yield* Effect.try({
      try: () => database.exec(`insert into copy values ('${"x".repeat(100_000)}')`),
      catch: SqliteTarget.failureOf("a copy")
    }).pipe(Effect.flip)
    database.close()
    assert.strictEqual(error._tag, "Unavailable", error.message)
    assert.include(error.message, "Cannot use a copy: the disk is full. Free some space")
  })
)
