/** The rows of files, and the faults that a load lists. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib"
import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Stream, Struct } from "effect"
import { ByteWriter, ParquetWriter } from "hyparquet-writer"
import * as Field from "../../../../src/api/records/Field.ts"
import type { Resource } from "../../../../src/api/records/Resource.ts"
import * as Decoder from "../../../../src/cli/load/Decoder.ts"
import * as Files from "../../../../src/cli/load/Files.ts"
import { temporaryFolder } from "../../../support/Process.ts"

const required = new Set(["id", "created_at", "is_deleted", "removed", "paid"])
const split = ["payment_split_to_platform", "payment_split_to_processor", "payment_split_to_clinic"]

const columnsOf = ({ hidden, record }: Resource) =>
  [...Object.keys({ ...record.fields, ...hidden }).map(Field.columnOf), ...split]
    .filter((name) => name !== "wellnes_plan_name" && name !== "payment_split")
    .map((name) => ({ name, isRequired: required.has(name) }))

interface Given {
  readonly organization?: string
  readonly organizationColumn?: string
  readonly zone?: string
}

/** Reads a file. Returns its rows by their columns, and its faults by their lines. */
const read = Effect.fnUntraced(function* (name: string, content: string | Uint8Array, given: Given = {}) {
  const path = join(yield* temporaryFolder, name)
  writeFileSync(path, content)
  const [file = assert.fail()] = yield* Files.find([path])
  const columns = columnsOf(file.resource)
  const { organization, organizationColumn, zone } = given
  const timeZone = zone === undefined ? undefined : DateTime.zoneMakeNamedUnsafe(zone)
  const decoder = Decoder.make({ resource: file.resource, columns, organization, organizationColumn, timeZone })
  const rows: Array<Readonly<Record<string, string>>> = []
  const faults: Array<string> = []
  const names = ["line", "removed", "organization_id", ...columns.map((column) => column.name)]
  for (const row of (yield* Stream.runCollect(Files.read(file))).flatMap((batch) => batch.rows)) {
    const decoded = decoder.decode(row)
    if ("rejected" in decoded) {
      const texts = decoded.rejected.faults.map(({ field, reason }) => [row.line, ...(field ? [field] : []), reason])
      faults.push(...texts.map((words) => words.join(": ")))
    } else {
      const fields = decoded.line.split("\t").map((text, index) => [names[index] ?? "", text] as const)
      rows.push(Object.fromEntries(fields.filter(([, text]) => text !== "\\N")))
    }
  }
  return { rows, faults }
}, Effect.scoped)

const org = { organization: "org_1" }

it.effect(
  "a CSV has texts, numbers, booleans, lists and times, null where it is empty, and columns by either name",
  () =>
    Effect.gen(function* () {
      const header =
        "id,plan_name,payment_split,isRefunded,is_test,attempt_number,payment_amount,payment_modifications,captured_date"
      const row = `i1,"a ""b""\nc","{""to_Clinic"":1.5}",TRUE,f,3,0.10,"[""x"",""y""]",2026-01-21 09:30:00.123456+01\r\n`
      for (const file of [`\ufeff${header}\r\n${row}i2,,,,,,,,\r\n`, `${header}\n${row.trim()}`]) {
        const { faults, rows } = yield* read("payment_intents.csv", file, org)
        assert.deepStrictEqual(faults, [])
        assert.deepStrictEqual(rows[0], {
          line: "2",
          removed: "false",
          organization_id: "org_1",
          id: "i1",
          plan_name: String.raw`a "b"\nc`,
          payment_split_to_clinic: "1.5",
          is_refunded: "true",
          is_test: "false",
          attempt_number: "3",
          payment_amount: "0.10",
          payment_modifications: `{"x","y"}`,
          captured_date: "2026-01-21 09:30:00.123456+01"
        })
        if (rows.length > 1) assert.strictEqual(rows[1]?.["line"], "4")
      }
    })
)

it.effect("a CSV may have spaces after a closing quote, also where one read of the file ends", () =>
  Effect.gen(function* () {
    const padded = `"name"${" ".repeat(70_000)}`
    const { faults, rows } = yield* read("pets.csv", `"id","name","species"\n"a",${padded},"b"\nc,d,e`, org)
    assert.deepStrictEqual([faults, rows.length, rows[0]?.["name"]], [[], 2, "name"])
  })
)

it.effect("a field in quotes may end with a carriage return", () =>
  Effect.gen(function* () {
    const { faults, rows } = yield* read("pets.csv", 'id,name\na,"b\r"\n', org)
    assert.deepStrictEqual([faults, rows[0]?.["name"]], [[], String.raw`b\r`])
  })
)

it.effect("each fault is named with its line and field", () =>
  Effect.gen(function* () {
    const csv = [
      "id,status,original_amount,created_at,organization_id",
      "c1,open,12.5,2026-01-31T09:30:00Z,org_1",
      "  ,open,twelve,2026-02-30T00:00:00Z,org_2",
      ",open,1234567890.123456,2026-01-31 09:30:00,",
      "c3,open",
      "c4,open,1e21,,org_1"
    ]
    const { faults, rows } = yield* read("charges.csv.gz", gzipSync(csv.join("\n")), org)
    assert.deepStrictEqual(faults, [
      "3: original_amount: Expected number: twelve",
      "3: created_at: day value is outside expected range: 2026-02-30T00:00:00Z",
      "3: id: is blank",
      '3: organization_id: is another organization: "org_2"',
      "4: original_amount: has more than 15 significant digits: 1234567890.123456",
      "4: created_at: has no time zone: add an offset, such as Z, or use --time-zone: 2026-01-31 09:30:00",
      "4: id: is missing",
      "5: has 2 fields, but the header has 5",
      "6: original_amount: must be below 1e21: 1e21",
      "6: created_at: must have a value. Omit the field to use its default"
    ])
    assert.lengthOf(rows, 1)
  })
)

it.effect("a time of more digits than Postgres reads has those that it keeps", () =>
  Effect.gen(function* () {
    const { faults, rows } = yield* read("pets.csv", `id,created_at\na,2026-01-31T09:30:00.${"1".repeat(200)}Z`, org)
    assert.deepStrictEqual([faults, rows[0]?.["created_at"]], [[], "2026-01-31 09:30:00.111112+00"])
  })
)

it.effect("NDJSON has records, those of an export with their organization, and operations of sync", () =>
  Effect.gen(function* () {
    const lines = [
      { id: "a", organization_id: "org_1" },
      { organization: "org_2", record: { id: "b", created_at: "2026-01-31T09:30:00.000Z", name: null } },
      { op: "upsert", record: { id: "c" } },
      { op: "remove", id: "d" },
      { id: "e", organization_id: "org_1", name: 5, species: "\ud800", date_of_birth: "2026-02-29" }
    ]
    const text = [...lines.map((line) => JSON.stringify(line)), "", "{", "[]"].join("\n")
    const { faults, rows } = yield* read("pets.ndjson", text)
    const owned = rows.map(({ id, organization_id }) => `${id} of ${organization_id}`)
    assert.deepStrictEqual(owned, ["a of org_1", "b of org_2"])
    assert.deepStrictEqual(faults, [
      "3: organization_id: the organization is missing",
      "4: organization_id: the organization is missing",
      "5: name: Expected string: 5",
      "5: species: is not well-formed Unicode: \ud800",
      "5: date_of_birth: is not a valid date: 2026-02-29",
      "7: is not a JSON object: {",
      "8: is not a JSON object: []"
    ])
    const removed = (yield* read("pets.ndjson", text, org)).rows.map((row) => row["removed"])
    assert.deepStrictEqual(removed, ["false", "false", "true"])
  })
)

it.effect("a local time is taken in its zone, also the first of two; one that clocks skip is a fault", () =>
  Effect.gen(function* () {
    const skipped = "2026-03-29T02:30"
    const times = ["2026-03-29 01:59:59.5", skipped, "2026-10-25 02:30:00", "2026-10-25 02:30:00+01:00", "2026-07-01"]
    const text = ["id,refund_date", ...times.map((time, index) => `${index},${time}`)].join("\n")
    const { faults, rows } = yield* read("charge_refunds.csv", text, { ...org, zone: "Europe/Berlin" })
    const dates = rows.map((row) => row["refund_date"])
    assert.deepStrictEqual(dates.slice(0, 2), ["2026-03-29 00:59:59.500000+00", "2026-10-25 00:30:00.000000+00"])
    assert.deepStrictEqual(dates.slice(2), ["2026-10-25 02:30:00+01:00", "2026-06-30 22:00:00.000000+00"])
    assert.deepStrictEqual(faults, [`3: refund_date: does not exist in Europe/Berlin: ${skipped}`])
  })
)

const timestamp = (isAdjustedToUTC: boolean) =>
  ({
    repetition_type: "OPTIONAL",
    type: "INT64",
    converted_type: "TIMESTAMP_MICROS",
    logical_type: { type: "TIMESTAMP", isAdjustedToUTC, unit: "MICROS" }
  }) as const

type Elements = ConstructorParameters<typeof ParquetWriter>[0]["schema"]

const parquetOf = (
  schema: Elements,
  columnData: Parameters<ParquetWriter["write"]>[0]["columnData"],
  options?: Pick<ConstructorParameters<typeof ParquetWriter>[0], "codec" | "compressors">
) => {
  const buffer = new ByteWriter()
  const root = { name: "root", num_children: columnData.length }
  const writer = new ParquetWriter({ writer: buffer, schema: [root, ...schema], ...options })
  void writer.write({ columnData })
  void writer.finish()
  return new Uint8Array(buffer.getBuffer())
}

it.effect.each([
  { codec: "BROTLI", compress: brotliCompressSync },
  { codec: "GZIP", compress: gzipSync },
  { codec: "ZSTD", compress: zstdCompressSync }
] as const)("Parquet may be compressed with $codec", ({ codec, compress }) =>
  Effect.gen(function* () {
    const id = { name: "id", type: "BYTE_ARRAY", converted_type: "UTF8" } as const
    const compressors = { [codec]: (bytes: Uint8Array) => compress(bytes) }
    const content = parquetOf([id], [{ name: "id", data: ["a"] }], { codec, compressors })
    assert.deepStrictEqual((yield* read("pets.parquet", content, org)).rows[0]?.["id"], "a")
  })
)

it.effect("Parquet has days, local times, and decimals of more digits than fit, as a CSV has them", () =>
  Effect.gen(function* () {
    const day = { repetition_type: "OPTIONAL", type: "INT32", converted_type: "DATE" } as const
    const decimal = { repetition_type: "OPTIONAL", type: "INT64", converted_type: "DECIMAL" } as const
    const at = BigInt(DateTime.makeUnsafe("2026-01-31T09:30:00Z").epochMilliseconds) * 1000n
    const columns = [
      { name: "id", type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "OPTIONAL", data: ["a", "b"] },
      { name: "end_date", ...day, data: [DateTime.toDateUtc(DateTime.makeUnsafe("2026-01-31")), null] },
      { name: "start_date", ...timestamp(false), data: [at, null] },
      { name: "cancelled_at", ...timestamp(true), data: [at, null] },
      { name: "price", ...decimal, precision: 18, scale: 4, data: [19.99, 12_345_678_901_234.568] }
    ] as const
    const schema = columns.map((column) => Struct.omit(column, ["data"]))
    const content = parquetOf(
      schema,
      columns.map(({ data, name }) => ({ name, data: [...data] }))
    )
    const found = yield* read("subscriptions.parquet", content, { ...org, zone: "America/Denver" })
    const [row] = found.rows
    assert.deepStrictEqual(
      ["end_date", "start_date", "cancelled_at", "price"].map((name) => row?.[name]?.slice(0, 13)),
      ["2026-01-31 07", "2026-01-31 16", "2026-01-31 09", "19.99"]
    )
    assert.deepStrictEqual(found.faults, ["2: price: has more than 15 significant digits: 12345678901234.568"])
    const { faults } = yield* read("subscriptions.parquet", content, org)
    assert.match(faults.join("\n"), /^1: end_date: has no time zone: .*\n1: start_date: has no time zone: /)
  })
)

it.effect("an integer that a double would change is a fault, in NDJSON and in Parquet", () =>
  Effect.gen(function* () {
    const numbers = ["20240101000000001", "100000000000000000", "-7"]
    const ndjson = numbers.map((number) => `{"id":"a","invoice_pims_id":${number}}`).join("\n")
    const columns: Elements = [
      { name: "id", type: "BYTE_ARRAY", converted_type: "UTF8" },
      { name: "invoice_pims_id", type: "INT64" }
    ]
    const parquet = parquetOf(columns, [
      { name: "id", data: numbers.map(() => "a") },
      { name: "invoice_pims_id", data: numbers.map(BigInt) }
    ])
    for (const found of [yield* read("charges.ndjson", ndjson, org), yield* read("charges.parquet", parquet, org)]) {
      assert.deepStrictEqual(found.faults, ["1: invoice_pims_id: Expected number: 20240101000000001"])
      assert.deepStrictEqual(
        found.rows.map((row) => row["invoice_pims_id"]),
        numbers.slice(1)
      )
    }
  })
)

it.effect("Parquet has the numbers of a struct, and a value of no such field is a fault", () =>
  Effect.gen(function* () {
    const id = { name: "id", type: "BYTE_ARRAY", converted_type: "UTF8" } as const
    const struct = { name: "payment_split", num_children: 2, repetition_type: "OPTIONAL" } as const
    const amount = { type: "INT64", repetition_type: "OPTIONAL" } as const
    const decimal = { ...amount, converted_type: "DECIMAL", precision: 15, scale: 4 } as const
    const splits = parquetOf(
      [id, struct, { name: "to_Platform", ...decimal }, { name: "to_Clinic", ...amount }],
      [
        { name: "id", data: ["a"] },
        { name: "payment_split", data: [{ to_Platform: 10.12, to_Clinic: 7n }] }
      ]
    )
    const { faults, rows } = yield* read("payment_intents.parquet", splits, org)
    assert.deepStrictEqual(faults, [])
    assert.strictEqual(rows[0]?.["payment_split_to_platform"], "10.12")
    assert.strictEqual(rows[0]?.["payment_split_to_clinic"], "7")
    const refused = parquetOf(
      [
        id,
        { name: "product_ids", converted_type: "LIST", num_children: 1, repetition_type: "OPTIONAL" },
        { name: "list", num_children: 1, repetition_type: "REPEATED" },
        { name: "element", type: "INT64", repetition_type: "OPTIONAL" },
        {
          name: "created_at",
          type: "INT64",
          logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MICROS" }
        }
      ],
      [
        { name: "id", data: ["a"] },
        { name: "product_ids", data: [[1n]] },
        { name: "created_at", data: [2n ** 63n - 1n] }
      ]
    )
    const [ids = "", time] = (yield* read("pet_benefits.parquet", refused, org)).faults
    assert.match(ids, /^1: product_ids: Expected string.*: \[1\]$/)
    assert.strictEqual(time, "1: created_at: input is not an ISO 8601 date and time: a time out of range")
  })
)

it.effect("a field that the table lacks, a zone that is none, and a name that its parts do not make are refused", () =>
  Effect.gen(function* () {
    const clinics = yield* read("clinics.csv", "id,time_zone,tenant,phone\na,Mars/Base,org_1,1\nb,+01:00,,1", {
      organizationColumn: "tenant"
    })
    assert.deepStrictEqual(clinics.faults, [
      "2: time_zone: is not an IANA time zone: Mars/Base",
      "2: phone: is not a field of clinics",
      "3: time_zone: is not an IANA time zone: +01:00",
      "3: phone: is not a field of clinics",
      "3: tenant: the organization is missing"
    ])
    const plans = "id,wellnes_plan_name,plan_name,species\na,Gold Canine,Gold,Canine\nb,Gold,Gold,Canine"
    assert.deepStrictEqual((yield* read("payment_intents.csv", plans, org)).faults, [
      "3: wellnes_plan_name: does not match plan_name, species, plan_header"
    ])
  })
)

it.effect.each([
  [Buffer.from("id,name\na,b\nc,\xfc\nd,e\n", "latin1"), "3: not UTF-8"],
  [Buffer.from("id,name\na,b\nc,d\r\n"), "3: ends with a carriage return, unlike the header"],
  [Buffer.from('id,name\na,b\nc,"d" e\nf,g\n'), "3: cannot be read: Trailing quote on quoted field is malformed"],
  [Buffer.from('id,name\na,"b\n'), "2: cannot be read: Quoted field unterminated"],
  [Buffer.from(`id,name\na,b\nc,"${"d\n".repeat(2_200_000)}`), "3: exceeds 4 MiB, or has an unclosed quote"]
] as const)("what a file has before a part that cannot be read is read (%#)", ([content, fault]) =>
  Effect.gen(function* () {
    const { faults, rows } = yield* read("pets.csv", content, org)
    assert.strictEqual(faults[0], fault)
    assert.isAtMost(rows.length, 1)
  })
)

it.effect("a folder has the files of resources, in the order of the API. Another CSV in it is refused", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const names = ["organization", "charges", "charge-refunds", "pets"]
    const files = [
      "pets.jsonl",
      "organization.csv.gz",
      "charge-refunds.csv",
      "CHARGES.CSV",
      "_practice.db",
      "notes.txt"
    ]
    for (const name of files) writeFileSync(join(folder, name), "")
    const found = (yield* Files.find([folder])).map(({ resource }) => resource.name)
    assert.deepStrictEqual(found, names)
    writeFileSync(join(folder, "vets.csv"), "")
    assert.include((yield* Effect.flip(Files.find([folder]))).message, "vets.csv is not named after a resource")
  }).pipe(Effect.scoped)
)
