/** The places that a copy in files accepts, and a full disk. */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import * as SqliteTarget from "../../../../src/cli/sync/SqliteTarget.ts"
import { targetOf } from "../../../../src/cli/Sync.ts"
import type { Change } from "../../../../src/cli/sync/Target.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import * as Readers from "./readers.ts"
import { charge, gone, origin, page, syncWith, tableOf } from "./fixture.ts"

const charges = { resources: ["charges"] }

const opening = { origin, allowNewUrl: false, tables: [tableOf("charges")] }

const targetAt = (text: string) => targetOf(text, { schema: Option.none(), compact: false, softDelete: false })

const open = (text: string) => Effect.scoped(Effect.flatMap(targetAt(text), (target) => target.open(opening)))

it.effect.each(["sqlite", "ndjson", "parquet"])(
  "%s: a symbolic link is followed to what exists, and never makes anything elsewhere",
  (kind) =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const [link, elsewhere] = [join(folder, "link"), join(folder, "elsewhere")]
      symlinkSync(elsewhere, link)
      const error = yield* Effect.flip(open(`${kind}:${link}`))
      assert.strictEqual(error._tag, "Refused")
      assert.include(error.message, `${link} is a symbolic link`)
      assert.isFalse(existsSync(elsewhere))
      if (kind === "sqlite") writeFileSync(elsewhere, "")
      else mkdirSync(elsewhere)
      yield* open(`${kind}:${link}`)
    }).pipe(Effect.scoped)
)

it.effect("a file that is written in a folder takes the place of a link", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const copy = join(folder, "copy")
    mkdirSync(copy)
    for (const name of ["_practice_data_sync.json.next", "charges.ndjson.next"]) {
      symlinkSync(join(folder, "elsewhere"), join(copy, name))
    }
    writeFileSync(join(copy, "_practice_data_sync.db"), "")
    yield* syncWith(yield* targetAt(`ndjson:${copy}`), () => page(1, [charge("a", "1")]), charges)
    assert.deepStrictEqual(readdirSync(folder), ["copy"])
  }).pipe(Effect.scoped)
)

it.effect.each(["ndjson", "parquet", "sqlite"])("%s: a place below which nothing can be made is an error", (kind) =>
  Effect.gen(function* () {
    const { message } = yield* Effect.flip(open(`${kind}:/proc/practice-data/copy`))
    assert.include(message, `${kind}:/proc/practice-data/copy cannot be used`)
  })
)

it.effect("a folder of an earlier version is refused with what to do, and stays as it is", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const files = ["_practice_data_sync.json", "charges.ndjson"]
    for (const file of files) writeFileSync(join(folder, file), "")
    const { message } = yield* Effect.flip(open(`ndjson:${folder}`))
    assert.match(message, /an earlier version of practice-data made it. Empty the folder, or choose another target/)
    assert.deepStrictEqual(readdirSync(folder), files)
  }).pipe(Effect.scoped)
)

it.effect("a folder keeps one kind of files: another kind would follow the changes of the first", () =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "copy")
    yield* syncWith(yield* targetAt(`parquet:${folder}`), () => page(1, [charge("a", "1")]), charges)
    const { message } = yield* Effect.flip(open(`ndjson:${folder}`))
    assert.include(message, "charges.parquet")
    yield* open(`parquet:${folder}`)
  }).pipe(Effect.scoped)
)

const textsOf = (changes: ReadonlyArray<string>) => changes.map((line) => JSON.parse(line).record?.status ?? line)

it.effect("a file of NDJSON gets a line for each change, and with --compact has one for each record", () =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "copy")
    const sync = (at: number, changes: ReadonlyArray<Change>, compact = false) =>
      Effect.gen(function* () {
        const target = yield* targetOf(`ndjson:${folder}`, { schema: Option.none(), compact, softDelete: false })
        yield* syncWith(target, () => page(at, changes), charges)
        return textsOf(readFileSync(join(folder, "charges.ndjson"), "utf8").trimEnd().split("\n"))
      })
    assert.deepStrictEqual(yield* sync(1, [charge("a", "1"), charge("b", "1")]), ["1", "1"])
    const appended = ["1", "1", '{"op":"remove","id":"b"}', "2"]
    assert.deepStrictEqual(yield* sync(2, [charge("a", "2"), gone("b")]), appended)
    assert.deepStrictEqual(yield* sync(3, [charge("c", "3")]), [...appended, "3"])
    assert.deepStrictEqual(yield* sync(4, [], true), ["2", "3"])
    assert.deepStrictEqual(yield* sync(5, [charge("c", "5")], true), ["2", "5"])
  }).pipe(Effect.scoped)
)

it.effect.each([
  ["has half a line of a run that was killed", (file: string) => appendFileSync(file, "half a li")],
  ["lacks bytes", (file: string) => truncateSync(file, 9)],
  ["was removed", (file: string) => rmSync(file)],
  [
    "was being replaced when a run was killed",
    (file: string, database: DatabaseSync) => {
      writeFileSync(file, "x".repeat(10_000))
      database.exec("update _practice_data_sync_files set cursor = null")
    }
  ]
] as const)("a file of NDJSON that %s has the whole copy after the next run", ([, damage]) =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "copy")
    const target = yield* targetAt(`ndjson:${folder}`)
    yield* syncWith(target, () => page(1, [charge("a", "1"), charge("b", "1")]), charges)
    for (const [at, changes, ids] of [
      [2, [], "a,b"],
      [3, [gone("a"), charge("c", "2")], "b,c"]
    ] as const) {
      const database = new DatabaseSync(join(folder, "_practice_data_sync.db"))
      damage(join(folder, "charges.ndjson"), database)
      database.close()
      yield* syncWith(target, () => page(at, changes), charges)
      assert.strictEqual([...Readers.inFolder(folder, "charges").keys()].join(), ids)
      const { size } = statSync(join(folder, "charges.ndjson"))
      assert.strictEqual(Readers.stateIn(folder).resources.charges.bytes, size)
    }
  }).pipe(Effect.scoped)
)

it.effect("the size that is noted has all of a file that was replaced by a run that did not end", () =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "copy")
    const target = yield* targetOf(`ndjson:${folder}`, { schema: Option.none(), compact: true, softDelete: false })
    yield* syncWith(target, () => page(1, [charge("b", "1"), charge("c", "1")]), charges)
    writeFileSync(join(folder, "charge_refunds.ndjson"), "")
    for (const [at, changes, ids] of [
      [2, [charge("a", "2")], "a,b,c"],
      [3, [gone("a"), gone("b")], "c"]
    ] as const) {
      assert.include((yield* Effect.flip(syncWith(target, () => page(at, changes)))).message, "charge_refunds.ndjson")
      assert.strictEqual([...Readers.inFolder(folder, "charges").keys()].join(), ids)
    }
    // What stands there cannot be replaced, and is longer than what would be.
    const file = join(folder, "charges.ndjson")
    rmSync(file)
    for (let name = 0; name < 200; name++) mkdirSync(join(file, `${name}`), { recursive: true })
    yield* Effect.flip(syncWith(target, () => page(4, [charge("c", "4")]), charges))
    assert.strictEqual(Readers.stateIn(folder).resources.charges.bytes, statSync(file).size)
  }).pipe(Effect.scoped)
)

it.effect("amounts are decimals in SQLite and Parquet; a column of Parquet with finer ones has doubles", () =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "copy")
    const target = yield* targetAt(`parquet:${folder}`)
    const typeOf = (column: string) => Effect.promise(() => Readers.typeInParquet(folder, "charges", column))
    const copy = (at: number, net_paid: number) =>
      syncWith(target, () => page(at, [charge(`${at}`, "1", { net_paid })]), { resources: ["charges"] })
    yield* copy(1, 99999999999.9999)
    assert.strictEqual(yield* typeOf("net_paid"), "DECIMAL(15, 4)")
    for (const [index, amount] of [1e11, 55 / 3].entries()) {
      yield* copy(index + 2, amount)
      assert.strictEqual(yield* typeOf("net_paid"), "DOUBLE")
      assert.strictEqual(yield* typeOf("paid_amount"), "DECIMAL(15, 4)")
    }
    yield* open(`sqlite:${folder}.db`)
    const statement = "select type from pragma_table_info('_practice_data_sync_staged_charges') where name = 'net_paid'"
    assert.deepStrictEqual(Readers.query(`${folder}.db`, statement), [{ type: "decimal" }])
  }).pipe(Effect.scoped)
)

it.effect("a full disk is waited out", () =>
  Effect.gen(function* () {
    const database = yield* SqliteTarget.openFile("sqlite:copy.db", join(yield* temporaryFolder, "copy.db"))
    database.exec("create table copy (text); pragma max_page_count = 4")
    const inSqlite = () => database.exec(`insert into copy values ('${"x".repeat(100_000)}')`)
    for (const writing of [inSqlite, () => writeFileSync("/dev/full", "x")]) {
      const error = yield* Effect.flip(SqliteTarget.attempt("a copy", writing))
      assert.strictEqual(error._tag, "Unavailable", error.message)
      assert.include(error.message, "cannot be used: the disk is full. Free some space")
    }
  }).pipe(Effect.scoped)
)
