/** Loads of files into a Postgres. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Array, Effect } from "effect"
import { paymentIntents } from "../../../../src/api/records/Payments.ts"
import { petBenefits, pets } from "../../../../src/api/records/Pets.ts"
import { decodeTexts, toText } from "../../../../src/database/Columns.ts"
import { toRows } from "../../../../src/records/Rows.ts"
import * as Arbitraries from "../../../support/arbitraries.ts"
import { cli } from "../../../support/cli.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { tries } from "../../../support/tries.ts"

let made = 0

/** Makes an organization of the test's own. */
const organization = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  const id = `org_load_${++made}`
  yield* sql`insert into organizations (organization_id, id) values (${id}, ${id})`
  return id
})

/** Writes a file, and returns its path. */
const fileOf = Effect.fnUntraced(function* (name: string, ...lines: ReadonlyArray<string>) {
  const path = join(yield* temporaryFolder, name)
  writeFileSync(path, lines.map((line) => `${line}\n`).join(""))
  return path
})

/** Loads files, and returns the counts of each. */
const load = Effect.fnUntraced(function* (...command: ReadonlyArray<string>) {
  const { code, stderr, stdout } = yield* cli("load", ...command)
  const counts = stdout.match(/(?<=: ).*(?=\.$)|^Deleted.*/gm) ?? []
  return { code, stderr, counts: [...counts] }
})

const lack = (part: string) =>
  `The files lack ${part}, which would be deleted. Nothing was changed. To delete them, add`

const loaded = (...counts: ReadonlyArray<string>) => ({ code: 0, stderr: "", counts })

layer(TestDatabase.layer, { excludeTestServices: true })("load", (it) => {
  /** The pets of an organization, with their names. */
  const petsOf = Effect.fnUntraced(function* (owner: string) {
    const { sql } = yield* TestDatabase
    return yield* decodeTexts(sql`
      select concat_ws(' ', id, name) as text from pets where organization_id = ${owner} order by id`)
  })

  for (const { often, options } of tries({ few: 1, many: 3, size: 12, maxShrinks: 20 })) {
    for (const resource of [paymentIntents, petBenefits, pets]) {
      it.effect.prop(
        `makes ${resource.name} equal to the records in a file, and changes nothing again${often}`,
        { records: Arbitraries.recordsOf(resource, { minLength: 4, maxLength: 12 }) },
        ({ records }) =>
          Effect.gen(function* () {
            const { sql } = yield* TestDatabase
            const one = records.filter(({ organization_id }) => organization_id === records[0]?.organization_id)
            const expected = (yield* toRows(resource, one)).map(({ record }) => toText(record)).toSorted()
            const file = yield* fileOf(`${resource.table}.ndjson`, ...expected)
            const owner = yield* organization
            const command = [file, "--organization", owner, "--keep-times"]
            const counted = `${one.length} row${one.length === 1 ? "" : "s"}`
            assert.deepStrictEqual(yield* load(...command), loaded(`${counted}, ${one.length} inserted`))
            const stored = sql.unsafe<{ record: string }>(
              `select record, xmin::text, xmax::text from ${resource.table} where organization_id = '${owner}'`
            )
            const before = yield* stored
            assert.deepStrictEqual(before.map(({ record }) => record).toSorted(), expected)
            assert.deepStrictEqual(yield* load(...command), loaded(`${counted}, ${one.length} unchanged`))
            assert.deepStrictEqual(yield* stored, before)
          }),
        options
      )
    }
  }

  it.effect("writes rows that differ, and keeps fields that a row lacks", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const given = ["--organization", yield* organization]
      const lines = (...values: ReadonlyArray<object>) =>
        fileOf("payment_intents.ndjson", ...values.map((value) => JSON.stringify(value)))
      const first = yield* lines({ id: "a", plan_name: "Gold", paid: true }, { id: "b", clinic_name: "One" })
      const next = yield* lines({ id: "a", clinic_name: "Two" }, { paid: true, id: "b" }, { id: "c" })
      assert.deepStrictEqual(yield* load(first, ...given), loaded("2 rows, 2 inserted"))
      assert.deepStrictEqual(yield* load(next, ...given), loaded("3 rows, 1 inserted, 2 updated"))
      const rows = yield* decodeTexts(sql`
        select concat_ws(' ', id, plan_name, clinic_name, paid) as text from payment_intents
        where organization_id = ${given[1]} order by id`)
      assert.deepStrictEqual(rows, ["a Gold Two t", "b One t", "c f"])
    })
  )

  it.effect("stamps what changes, and keeps the file's times with --keep-times, but sets none back", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const given = ["--organization", yield* organization]
      const file = (time: string, name = "A") => fileOf("pets.csv", "id,name,updated_at", `a,${name},${time}`)
      const years = sql`select extract(year from updated_at)::int as year from pets where organization_id = ${given[1]}`
      const year = Effect.map(years, ([row]) => row?.["year"])
      yield* load(yield* file("2020-01-01T00:00:00Z"), ...given, "--keep-times")
      assert.strictEqual(yield* year, 2020)
      const later = yield* file("2021-01-01T00:00:00Z")
      assert.deepStrictEqual(yield* load(later, ...given), loaded("1 row, 1 unchanged"))
      assert.deepStrictEqual(yield* load(later, ...given, "--keep-times"), loaded("1 row, 1 updated"))
      assert.strictEqual(yield* year, 2021)
      const earlier = yield* file("2019-01-01T00:00:00Z", "B")
      assert.deepStrictEqual(yield* load(earlier, ...given, "--keep-times"), loaded("1 row, 1 updated"))
      assert.strictEqual(yield* year, 2021)
      yield* load(yield* file("2019-01-01T00:00:00Z", "C"), ...given)
      assert.isAbove(Number(yield* year), 2021)
    })
  )

  it.effect("reads times without an offset as UTC", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const owner = yield* organization
      const times = ["2026-01-31 09:30", "2026-07-01", "2026-07-01T09:30:00.123456789+02"]
      const file = yield* fileOf("charge_refunds.csv", "id,refund_date", ...times.map((time, id) => `${id},${time}`))
      assert.strictEqual((yield* load(file, "--organization", owner)).code, 0)
      const dates = yield* decodeTexts(sql`
        select to_char(refund_date at time zone 'UTC', 'MM-DD HH24:MI:SS.US') as text from charge_refunds
        where organization_id = ${owner} order by id`)
      assert.deepStrictEqual(dates, ["01-31 09:30:00.000000", "07-01 00:00:00.000000", "07-01 07:30:00.123457"])
    })
  )

  it.effect("loads nothing with a fault in any file, and lists every one", () =>
    Effect.gen(function* () {
      const owner = yield* organization
      const rows = [`a,A,${owner}`, "b,B,org_unknown", `c,C,${owner}`, `c,D,${owner}`, ` ,E,${owner}`]
      const more = Array.makeBy(4, (index) => `x${index},,org_unknown`)
      const file = yield* fileOf("pets.csv", "id,name,organization_id", ...rows, ...more)
      const good = yield* fileOf("clinics.csv", "id,organization_id", `a,${owner}`)
      const faults = [
        `${file}:3, 7, 8 and 2 more: organization_id: is no organization: org_unknown`,
        `${file}:5: id: is a duplicate: c`,
        `${file}:6: id: is blank:  `
      ]
      const stderr = [...faults, "7 faults. Nothing was loaded.\n"].join("\n")
      assert.deepStrictEqual(yield* load(good, file), { code: 1, counts: [], stderr })
      assert.lengthOf(yield* petsOf(owner), 0)
    })
  )

  it.effect("names the rows that the database refuses, and resumes after them", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const owner = yield* organization
      const name = "x".repeat(200)
      const file = yield* fileOf("products.csv", "id,product_name", ...Array.makeBy(2500, (id) => `p${id},${name}`))
      yield* sql.unsafe(`alter table products add constraint not_p2400 check (id <> 'p2400')`)
      const stopped = yield* load(file, "--organization", owner)
      assert.strictEqual(stopped.code, 1)
      assert.match(stopped.stderr, /^.*products\.csv:[1-9]\d\d+ to 2501: .*"not_p2400"/)
      yield* sql.unsafe("alter table products drop constraint not_p2400")
      const [resumed = ""] = (yield* load(file, "--organization", owner)).counts
      assert.match(resumed, /^2,500 rows, [\d,]+ inserted, [\d,]+ unchanged$/)
    })
  )

  it.effect("deletes what the files lack of the organizations in them, once it is told so", () =>
    Effect.gen(function* () {
      const [owner, other] = [yield* organization, yield* organization]
      const pairs = (...lines: ReadonlyArray<string>) => fileOf("pets.csv", "id,organization_id", ...lines)
      const ids = Array.makeBy(20, (index) => `p${index}`)
      yield* load(yield* pairs(...ids.flatMap((id) => [`${id},${owner}`, `${id},${other}`])))
      const few = [yield* pairs("new," + owner, ...ids.slice(2).map((id) => `${id},${owner}`)), "--missing", "delete"]
      assert.strictEqual((yield* load(...few)).stderr, `${lack("2 of 20 records")} --yes.\n`)
      assert.lengthOf(yield* petsOf(owner), 20)
      const counts = ["19 rows, 1 inserted, 18 unchanged", "Deleted 2 records that the files lack."]
      assert.deepStrictEqual(yield* load(...few, "--yes"), loaded(...counts))
      assert.lengthOf(yield* petsOf(owner), 19)
      const many = [
        yield* pairs(`new,${owner}`),
        yield* fileOf("pets.ndjson", `{"id":"p2","organization_id":"${owner}"}`)
      ]
      const refusal = `${lack("17 of 19 records")} --yes 17.\n`
      for (const yes of [[], ["--yes"], ["--yes", "16"]])
        assert.strictEqual((yield* load(...many, "--missing", "delete", ...yes)).stderr, refusal)
      assert.strictEqual((yield* load(...many, "--missing", "delete", "--yes", "17")).code, 0)
      assert.deepStrictEqual(yield* petsOf(owner), ["new", "p2"])
      assert.lengthOf(yield* petsOf(other), 20)
    })
  )

  it.effect("deletes all records of an organization whose file has none, with their number", () =>
    Effect.gen(function* () {
      const owner = yield* organization
      const given = ["--organization", owner]
      yield* load(yield* fileOf("pets.csv", "id", "a"), ...given)
      const none = [yield* fileOf("pets.csv", "id"), ...given, "--missing", "delete"]
      assert.include((yield* load(...none, "--yes")).stderr, "add --yes 1.")
      assert.strictEqual((yield* load(...none, "--yes=1")).code, 0)
      assert.isEmpty(yield* petsOf(owner))
    })
  )

  it.effect("accepts organizations that the same load creates", () =>
    Effect.gen(function* () {
      const pet = '{"organization_id":"org_new","id":"a"}'
      const owner = '{"id":"org_new"}'
      const files = [yield* fileOf("pets.ndjson", pet), yield* fileOf("organizations.ndjson", owner)]
      assert.deepStrictEqual(yield* load(...files), loaded("1 row, 1 inserted", "1 row, 1 inserted"))
      assert.deepStrictEqual(yield* petsOf("org_new"), ["a"])
    })
  )

  it.effect.each([
    [["pets.csv"], 1, "pets.csv:1: cannot be read: "],
    [["pets.csv", "--yes", "1", "--missing", "all"], 2, "missing"]
  ] as const)("%j is refused", ([given, code, message]) =>
    Effect.gen(function* () {
      const found = yield* cli("load", ...given)
      assert.strictEqual(found.code, code)
      assert.include(found.stderr, message)
    })
  )
})
