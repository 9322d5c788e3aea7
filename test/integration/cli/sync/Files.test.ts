/** The places that a copy in files accepts, and a full disk. */
import * as fs from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as SqliteTarget from "../../../../src/cli/sync/SqliteTarget.ts"
import { targetOf } from "../../../../src/cli/sync/Sync.ts"
import type { Change } from "../../../../src/cli/sync/Target.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import * as Readers from "./readers.ts"
import { charge, type Given, gone, opening, page, syncWith } from "./fixture.ts"

const targetAt = (text: string, compact = false) => targetOf(text, { schema: undefined, compact, softDelete: false })

/** Syncs a page of changes. */
const syncTo =
  (text: string, compact = false) =>
  (at: number, changes: ReadonlyArray<Change>, given: Given = { resources: ["charges"] }) =>
    Effect.flatMap(targetAt(text, compact), (target) => syncWith(target, () => page(at, changes), given))

const open = (text: string) => Effect.scoped(Effect.flatMap(targetAt(text), (target) => target.open(opening)))

it.effect.each(["sqlite", "ndjson", "parquet"])("%s: a link makes nothing new, and an impossible place fails", (kind) =>
  Effect.gen(function* () {
    const impossible = `${kind}:/proc/practice-data/copy`
    assert.include((yield* Effect.flip(open(impossible))).message, `Cannot use ${impossible}`)
    const folder = yield* temporaryFolder
    const [link, elsewhere] = [join(folder, "link"), join(folder, "elsewhere")]
    fs.symlinkSync(elsewhere, link)
    const error = yield* Effect.flip(open(`${kind}:${link}`))
    assert.strictEqual(error._tag, "Refused")
    assert.include(error.message, `${link} is a broken symbolic link`)
    assert.isFalse(fs.existsSync(elsewhere))
    if (kind === "sqlite") fs.writeFileSync(elsewhere, "")
    else fs.mkdirSync(elsewhere)
    yield* open(`${kind}:${link}`)
  })
)

it.effect("a file that is written in a folder takes the place of a link", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const copy = join(folder, "copy")
    fs.mkdirSync(copy)
    for (const name of ["_practice_data_sync.json.next", "charges.ndjson.next"]) {
      fs.symlinkSync(join(folder, "elsewhere"), join(copy, name))
    }
    fs.writeFileSync(join(copy, "_practice_data_sync.db"), "")
    yield* syncTo(`ndjson:${copy}`)(1, [charge("a", "1")])
    assert.deepStrictEqual(fs.readdirSync(folder), ["copy"])
  })
)

it.effect("a folder keeps one kind of files: another kind would follow the changes of the first", () =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "copy")
    yield* syncTo(`parquet:${folder}`)(1, [charge("a", "1")])
    const { message } = yield* Effect.flip(open(`ndjson:${folder}`))
    assert.include(message, "charges.parquet")
    yield* open(`parquet:${folder}`)
  })
)

const textsOf = (changes: ReadonlyArray<string>) => changes.map((line) => JSON.parse(line).record?.status ?? line)

it.effect("a file of NDJSON gets a line for each change, and with --compact has one for each record", () =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "copy")
    const sync = (at: number, changes: ReadonlyArray<Change>, compact = false) =>
      Effect.map(syncTo(`ndjson:${folder}`, compact)(at, changes), () =>
        textsOf(fs.readFileSync(join(folder, "charges.ndjson"), "utf8").trimEnd().split("\n"))
      )
    assert.deepStrictEqual(yield* sync(1, [charge("a", "1"), charge("b", "1")]), ["1", "1"])
    const appended = ["1", "1", '{"op":"remove","id":"b"}', "2"]
    assert.deepStrictEqual(yield* sync(2, [charge("a", "2"), gone("b")]), appended)
    assert.deepStrictEqual(yield* sync(3, [charge("c", "3")]), [...appended, "3"])
    assert.deepStrictEqual(yield* sync(4, [], true), ["2", "3"])
    assert.deepStrictEqual(yield* sync(5, [charge("c", "5")], true), ["2", "5"])
  })
)

it.effect.each([
  ["has half a line of a run that was killed", (file: string) => fs.appendFileSync(file, "half a li")],
  ["lacks bytes", (file: string) => fs.truncateSync(file, 9)],
  ["was removed", (file: string) => fs.rmSync(file)],
  [
    "was being replaced when a run was killed",
    (file: string, database: DatabaseSync) => {
      fs.writeFileSync(file, "x".repeat(10_000))
      database.exec("update _practice_data_sync_files set cursor = null")
    }
  ]
] as const)("a file of NDJSON that %s has the whole copy after the next run", ([, damage]) =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "copy")
    const sync = syncTo(`ndjson:${folder}`)
    yield* sync(1, [charge("a", "1"), charge("b", "1")])
    for (const [at, changes, ids] of [
      [2, [], "a,b"],
      [3, [gone("a"), charge("c", "2")], "b,c"]
    ] as const) {
      const database = new DatabaseSync(join(folder, "_practice_data_sync.db"))
      damage(join(folder, "charges.ndjson"), database)
      database.close()
      yield* sync(at, changes)
      assert.strictEqual([...Readers.inFolder(folder, "charges").keys()].join(), ids)
      const { size } = fs.statSync(join(folder, "charges.ndjson"))
      assert.strictEqual(Readers.stateIn(folder).resources.charges.bytes, size)
    }
  })
)

it.effect("the size that is noted has all of a file that was replaced by a run that did not end", () =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "copy")
    const sync = syncTo(`ndjson:${folder}`, true)
    yield* sync(1, [charge("b", "1"), charge("c", "1")])
    fs.writeFileSync(join(folder, "charge_refunds.ndjson"), "")
    for (const [at, changes, ids] of [
      [2, [charge("a", "2")], "a,b,c"],
      [3, [gone("a"), gone("b")], "c"]
    ] as const) {
      assert.include((yield* Effect.flip(sync(at, changes, {}))).message, "charge_refunds.ndjson")
      assert.strictEqual([...Readers.inFolder(folder, "charges").keys()].join(), ids)
    }
    // What stands there cannot be replaced, and is longer than what would be.
    const file = join(folder, "charges.ndjson")
    fs.rmSync(file)
    for (let name = 0; name < 200; name++) fs.mkdirSync(join(file, `${name}`), { recursive: true })
    yield* Effect.flip(sync(4, [charge("c", "4")]))
    assert.strictEqual(Readers.stateIn(folder).resources.charges.bytes, fs.statSync(file).size)
  })
)

it.effect("amounts are decimals in SQLite and Parquet; a column of Parquet with finer ones has doubles", () =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "copy")
    const typeOf = (column: string) => Effect.promise(() => Readers.typeInParquet(folder, "charges", column))
    const copy = (at: number, net_paid: number) => syncTo(`parquet:${folder}`)(at, [charge("1", "1", { net_paid })])
    yield* copy(1, 99999999999.9999)
    assert.strictEqual(yield* typeOf("net_paid"), "DECIMAL(15, 4)")
    for (const [index, amount] of [1e11, 1.00001].entries()) {
      yield* copy(index + 2, amount)
      assert.strictEqual(yield* typeOf("net_paid"), "DOUBLE")
      assert.strictEqual(yield* typeOf("paid_amount"), "DECIMAL(15, 4)")
    }
    yield* open(`sqlite:${folder}.db`)
    const statement = "select type from pragma_table_info('_practice_data_sync_staged_charges') where name = 'net_paid'"
    assert.deepStrictEqual(Readers.query(`${folder}.db`, statement), [{ type: "decimal" }])
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
