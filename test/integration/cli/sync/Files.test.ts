/** The places that a copy in a file accepts, and a full disk. */
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { sqliteFailure } from "../../../../src/cli/sync/Targets.ts"
import { temporaryFolder } from "../../../support/Process.ts"

it.effect("a full disk is waited out", () =>
  Effect.gen(function* () {
    const database = new DatabaseSync(join(yield* temporaryFolder, "copy.db"))
    database.exec("create table copy (text); pragma max_page_count = 4")
    const error = yield* Effect.try({
      try: () => database.exec(`insert into copy values ('${"x".repeat(100_000)}')`),
      catch: sqliteFailure("a copy")
    }).pipe(Effect.flip)
    database.close()
    assert.strictEqual(error._tag, "Unavailable", error.message)
    assert.include(error.message, "Cannot use a copy: the disk is full. Free some space")
  })
)
