/** The places that a copy in files accepts, and a full disk. */
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import * as Files from "../../../../src/cli/sync/Files.ts"
import { targetOf } from "../../../../src/cli/Sync.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import * as Readers from "./readers.ts"
import { charge, origin, page, syncWith, tableOf } from "./fixture.ts"

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
    yield* open(`ndjson:${copy}`)
    symlinkSync(join(folder, "elsewhere"), join(copy, "_practice_data_sync.json.next"))
    yield* open(`ndjson:${copy}`)
    assert.deepStrictEqual(readdirSync(folder), ["copy"])
  }).pipe(Effect.scoped)
)

it.effect.each([
  ["is cut back to what its state says", "charges.ndjson", (text: string) => `${text}half a li`, undefined],
  ["is refused if it lacks bytes", "charges.ndjson", () => "", "has 0 bytes, and had"],
  ["is refused without a readable state", "_practice_data_sync.json", () => "{}", "is damaged"]
] as const)("a copy in NDJSON %s", ([, name, change, refusal]) =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "copy")
    const target = yield* targetAt(folder)
    yield* syncWith(target, () => page(1, [charge("a", "1")]), { resources: ["charges"] })
    const file = join(folder, name)
    const before = readFileSync(file, "utf8")
    writeFileSync(file, change(before))
    if (refusal === undefined) {
      yield* open(folder)
      assert.strictEqual(readFileSync(file, "utf8"), before)
    } else {
      const { _tag, message } = yield* Effect.flip(open(folder))
      assert.strictEqual(_tag, "Refused")
      assert.include(message, refusal)
    }
  }).pipe(Effect.scoped)
)

/** A state as a kill leaves it: before the first file is in it, or before a compacted file is in place. */
const cutShort = (text: string, compacted: number) => {
  const { resources, ...state } = JSON.parse(text)
  const charges = { ...resources.charges, compacted }
  return JSON.stringify({ ...state, resources: compacted === 0 ? {} : { charges } })
}

it.effect("a copy in NDJSON that was killed between a file and its state is resumed", () =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "copy")
    const [state, file] = [join(folder, "_practice_data_sync.json"), join(folder, "charges.ndjson")]
    yield* open(folder)
    for (const compacted of ["", '{"op":"remove","id":"a"}\n']) {
      writeFileSync(`${file}.compacting`, compacted)
      writeFileSync(state, cutShort(readFileSync(state, "utf8"), compacted.length))
      yield* open(folder)
      assert.strictEqual(readFileSync(file, "utf8"), compacted)
    }
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
    const statement = "select type from pragma_table_info('charges') where name = 'net_paid'"
    assert.deepStrictEqual(Readers.query(join(folder, "_practice_data_sync.db"), statement), [{ type: "decimal" }])
  }).pipe(Effect.scoped)
)

it.effect("a full disk is waited out", () =>
  Effect.gen(function* () {
    const database = yield* Files.openSqlite("sqlite:copy.db", join(yield* temporaryFolder, "copy.db"))
    database.exec("create table copy (text); pragma max_page_count = 4")
    const inSqlite = () => database.exec(`insert into copy values ('${"x".repeat(100_000)}')`)
    for (const writing of [inSqlite, () => writeFileSync("/dev/full", "x")]) {
      const error = yield* Effect.flip(Files.attempt("a copy", writing))
      assert.strictEqual(error._tag, "Unavailable", error.message)
      assert.include(error.message, "cannot be used: the disk is full. Free some space")
    }
  }).pipe(Effect.scoped)
)
