/** The places that a copy in a file accepts, and a full disk. */
import * as fs from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as SqliteTarget from "../../../../src/cli/sync/SqliteTarget.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import { opening } from "./fixture.ts"
import * as Readers from "./readers.ts"

const open = (file: string) => Effect.scoped(SqliteTarget.make(file, `sqlite:${file}`, false).open(opening))

it.effect("a link makes nothing new, and an impossible place fails", () =>
  Effect.gen(function* () {
    const impossible = "/proc/practice-data/copy"
    assert.include((yield* Effect.flip(open(impossible))).message, `Cannot use sqlite:${impossible}`)
    const folder = yield* temporaryFolder
    const [link, elsewhere] = [join(folder, "link"), join(folder, "elsewhere")]
    fs.symlinkSync(elsewhere, link)
    const error = yield* Effect.flip(open(link))
    assert.strictEqual(error._tag, "Refused")
    assert.include(error.message, `${link} is a broken symbolic link`)
    assert.isFalse(fs.existsSync(elsewhere))
    fs.writeFileSync(elsewhere, "")
    yield* open(link)
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
    const database = yield* SqliteTarget.openFile("sqlite:copy.db", join(yield* temporaryFolder, "copy.db"))
    database.exec("create table copy (text); pragma max_page_count = 4")
    const inSqlite = () => database.exec(`insert into copy values ('${"x".repeat(100_000)}')`)
    for (const writing of [inSqlite, () => fs.writeFileSync("/dev/full", "x")]) {
      const error = yield* Effect.flip(SqliteTarget.attempt("a copy", writing))
      assert.strictEqual(error._tag, "Unavailable", error.message)
      assert.include(error.message, "Cannot use a copy: the disk is full. Free some space")
    }
  })
)
