/** The rows of files, and the faults that a load lists. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { assert, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import * as Decoder from "../../../../src/cli/load/Decoder.ts"
import * as Files from "../../../../src/cli/load/Files.ts"
import { temporaryFolder } from "../../../support/Process.ts"

const options = {
  organization: undefined,
  known: new Set(["org_1", "org_2"]),
  keepsTimes: true
}

/** Reads a file. Returns the columns of its good rows by their lines, and the faults of the others. */
const read = Effect.fnUntraced(function* (
  name: string,
  content: string | Uint8Array,
  given: Partial<Omit<typeof options, "organization"> & { readonly organization: string }> = { organization: "org_1" }
) {
  const path = join(yield* temporaryFolder, name)
  writeFileSync(path, content)
  const [file = assert.fail()] = yield* Files.find([path])
  const decode = Decoder.make(file.resource, { ...options, ...given })
  const rows = yield* Stream.runCollect(Stream.flattenIterable(Files.rows(file, () => Effect.void)))
  const decoded = rows.map(decode)
  return {
    rows: decoded.flatMap(({ columns, faults, line, organization }) =>
      faults.length > 0 ? [] : [{ line, organization, ...columns }]
    ),
    faults: decoded.flatMap(({ faults, line }) =>
      faults.map(({ field, reason, value }) =>
        [line, field, reason, value]
          .filter((word) => word !== undefined)
          .map((word) => (typeof word === "string" ? word : JSON.stringify(word)))
          .join(": ")
      )
    )
  }
}, Effect.scoped)

const row = (line: number, values: object) => ({ line, organization: "org_1", ...values })

it.effect("a CSV has values of every type, null where it is empty, and columns by either name", () =>
  Effect.gen(function* () {
    const header =
      "id,plan_name,payment_split,isRefunded,is_test,attempt_number,payment_amount,payment_modifications,captured_date"
    const first = `i1,"a ""b""\nc","{""to_Clinic"":1.5}",TRUE,f,3,0.10,"[""x"",""y""]",2026-01-21 09:30:00.123456+01`
    const second = "i2,,,no,0,,,,"
    for (const text of [`\ufeff${header}\r\n${first}\r\n${second}\r\n`, `${header}\n${first}\r\n\n${second}`]) {
      const { faults, rows } = yield* read("payment_intents.csv", text)
      assert.deepStrictEqual(faults, [])
      const splits = ["payment_split_to_platform", "payment_split_to_processor", "payment_split_to_clinic"]
      const names = ["id", "plan_name", ...splits, "is_refunded", "is_test", "attempt_number", "payment_amount"]
      const all = [...names, "payment_modifications", "captured_date"]
      const named = (line: number, ...values: ReadonlyArray<unknown>) =>
        row(line, Object.fromEntries(all.map((name, index) => [name, values[index]])))
      const time = "2026-01-21 09:30:00.123456+01"
      assert.deepStrictEqual<unknown>(rows, [
        named(2, "i1", 'a "b"\nc', null, null, 1.5, true, false, 3, 0.1, ["x", "y"], time),
        named(text.includes("\n\n") ? 5 : 4, "i2", null, null, null, null, false, false, null, null, null, null)
      ])
    }
  })
)

it.effect("a CSV may have its quotes, line ends and spaces where one read of the file ends", () =>
  Effect.gen(function* () {
    for (let length = 65_520; length < 65_540; length++) {
      const text = `id,name,species\na,"${"x".repeat(length)}""\r\n" ,b\r\nc,d,e`
      const { faults, rows } = yield* read("pets.csv", text)
      const name = `${"x".repeat(length)}"\r\n`
      assert.deepStrictEqual(faults, [])
      assert.deepStrictEqual<unknown>(rows, [
        row(2, { id: "a", name, species: "b" }),
        row(4, { id: "c", name: "d", species: "e" })
      ])
    }
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
      'c3,"open" x,,,',
      "c4,open,1e21,,org_1"
    ]
    const { faults, rows } = yield* read("charges.csv.gz", gzipSync(csv.join("\n")))
    assert.deepStrictEqual(faults, [
      "3: id: is blank:   ",
      "3: original_amount: Expected number: twelve",
      "3: created_at: day value is outside expected range: 2026-02-30T00:00:00Z",
      "3: organization_id: is another organization: org_2",
      "4: id: is missing: null",
      "4: original_amount: must be below 1e21, with at most 15 significant digits: 1234567890.123456",
      "5: has 2 fields, but the header has 5",
      "6: has text after a closing quote",
      "7: original_amount: must be below 1e21, with at most 15 significant digits: 1e21",
      "7: created_at: must have a value, or no column: null"
    ])
    assert.lengthOf(rows, 1)
  })
)

it.effect("a CSV of several files has its rows, and refuses inner byte order marks and odd dates", () =>
  Effect.gen(function* () {
    const text = "id,name,date_of_birth\r\na,b,\r\n\ufeffc,d,\r\ne,f,31/01/2026\n"
    const { faults, rows } = yield* read("pets.csv", text)
    assert.deepStrictEqual(faults, [
      "3: begins with a byte order mark",
      "4: date_of_birth: must be written YYYY-MM-DD: 31/01/2026"
    ])
    assert.deepStrictEqual<unknown>(rows, [row(2, { id: "a", name: "b", date_of_birth: null })])
    const named = yield* read("pets.csv", "id,specie,x\na,b,c\n")
    const [specie = "", x = ""] = named.faults
    assert.strictEqual(specie, "2: specie: is not a field of pets: did you mean species?: b")
    assert.include(x, "2: x: is not a field of pets, which has id, ")
  })
)

it.effect("a text of a list must be well-formed by itself, and an amount that a split lacks is null", () =>
  Effect.gen(function* () {
    const lines = [
      { id: "a", payment_modifications: ["\ud83d", "\ude00"] },
      { id: "b", payment_split: { to_Clinic: 1 } },
      { id: "c", payment_split: null }
    ]
    const { faults, rows } = yield* read("payment_intents.ndjson", lines.map((line) => JSON.stringify(line)).join("\n"))
    assert.lengthOf(faults, 1)
    assert.match(faults[0] ?? "", /^1: payment_modifications: is not well-formed Unicode/)
    const none = { payment_split_to_platform: null, payment_split_to_processor: null }
    assert.deepStrictEqual<unknown>(rows, [
      row(2, { id: "b", ...none, payment_split_to_clinic: 1 }),
      row(3, { id: "c", ...none, payment_split_to_clinic: null })
    ])
  })
)

it.effect("NDJSON has records with their organization", () =>
  Effect.gen(function* () {
    const lines = [
      { id: "a", organization_id: "org_1" },
      { id: "b", organization_id: "org_2", created_at: "2026-01-31T09:30:00.000Z", name: null },
      { id: "c" },
      { id: "d", organization_id: "nobody" },
      { id: "e", organization_id: "org_1", name: 5, species: "\ud800", breed: "\0", date_of_birth: "2026-02-29", x: 1 }
    ]
    const text = [...lines.map((line) => JSON.stringify(line)), "", "{", "[]"].join("\n")
    const { faults, rows } = yield* read("pets.jsonl", text, {})
    const owned = rows.map(({ line, organization }) => `${line} ${organization}`)
    assert.deepStrictEqual(owned, ["1 org_1", "2 org_2"])
    assert.deepStrictEqual(faults, [
      "3: organization_id: is missing",
      "4: organization_id: is no organization: nobody",
      "5: name: Expected string: 5",
      "5: species: is not well-formed Unicode: \ud800",
      "5: breed: contains U+0000: \0",
      "5: date_of_birth: day value is outside expected range: 2026-02-29",
      "5: x: is not a field of pets, which has id, name, species, breed, sex, date_of_birth, clinic, client_id, created_at, updated_at: 1",
      "7: is not a JSON object",
      "8: is not a JSON object"
    ])
  })
)

it.effect("a number that a double would change is a fault, and others are exact", () =>
  Effect.gen(function* () {
    const numbers = ["20240101000000001", "100000000000000000", "-7", "123456789012.345", "0.1234567890123456"]
    const ndjson = numbers.map((number) => `{"id":"a","invoice_pims_id":${number}}`).join("\n")
    const csv = ["id,invoice_pims_id", ...numbers.map((number) => `a,${number}`)].join("\n")
    for (const [name, text] of [
      ["charges.ndjson", ndjson],
      ["charges.csv", csv]
    ] as const) {
      const { faults, rows } = yield* read(name, text)
      const isFault = /^\d+: invoice_pims_id: must be below 1e21, with at most 15 significant digits: /
      const refused = faults.map((fault) => fault.replace(isFault, ""))
      assert.deepStrictEqual(refused, [numbers[0], numbers[4]])
      const taken = rows.map((found) => JSON.stringify(Object.values(found).at(-1)))
      assert.deepStrictEqual(taken, numbers.slice(1, 4))
    }
  })
)

it.effect("a name that is composed fills its first part, unless the file has parts", () =>
  Effect.gen(function* () {
    const composed = yield* read("payment_intents.csv", "id,wellnes_plan_name\na,Gold Canine")
    assert.deepStrictEqual<unknown>(composed.rows, [
      row(2, { id: "a", plan_name: "Gold Canine", species: null, plan_header: null })
    ])
    const parts = yield* read("payment_intents.csv", "id,wellnes_plan_name,plan_name\na,Gold Canine,Gold")
    assert.deepStrictEqual<unknown>(parts.rows, [row(2, { id: "a", plan_name: "Gold" })])
  })
)

it.effect.each([
  ["pets.csv", "", 1, "has no header"],
  ["pets.csv", Buffer.from("\ufeffid,name", "utf16le"), 1, "is UTF-16: save it as UTF-8"],
  ["pets.ndjson", Buffer.from('{"id":"a"}', "utf16le"), 1, "is UTF-16: save it as UTF-8"],
  ["pets.csv", "sep=;\nid;name\na;b", 1, "is a hint for Excel: remove this line, and separate columns by commas"],
  ["pets.csv", "\nid;name\na;b", 2, "separates columns by ;, not by commas"],
  ["pets.csv", "id\tname\na\tb", 1, "separates columns by tabs, not by commas"],
  ["pets.csv", "id,name\ra,b\r", 1, "has a CR within: lines end with LF or CRLF"],
  ["pets.csv", "id,name,Name\na,b,c", 1, "names a column twice: name"],
  ["charge_refunds.csv", "a,b\nc,d", 1, /^has no column id, but a, b. Expected: id, /],
  ["pets.csv", Buffer.from("id,name\na,b\nc,Andr\u00e9\n", "latin1"), 3, "is not UTF-8"],
  ["pets.csv", `id,name\na,b\nc,"d\ne`, 3, "has a quote that is not closed, or exceeds 4 MiB"],
  ["pets.csv", `id,name\na,b\nc,"${"d\n".repeat(2_200_000)}`, 3, "has a quote that is not closed, or exceeds 4 MiB"],
  ["pets.csv.gz", "id,name", 1, "cannot be read: incorrect header check"]
] as const)("a file that cannot be read on says where and why: %s %#", ([name, content, line, reason]) =>
  Effect.gen(function* () {
    const fault = yield* Effect.flip(read(name, content))
    assert.deepInclude(fault, { _tag: "Unreadable", line })
    assert.match("reason" in fault ? fault.reason : "", reason instanceof RegExp ? reason : RegExp(`^${reason}$`))
  })
)

it.effect("files are in the order of the API; one that is not named after a resource is refused", () =>
  Effect.gen(function* () {
    const files = ["pets.jsonl", "organization.csv.gz", "charge-refunds.csv", "CHARGES.CSV"]
    const found = (yield* Files.find(files)).map(({ resource }) => resource.name)
    assert.deepStrictEqual(found, ["organization", "charges", "charge-refunds", "pets"])
    assert.include((yield* Effect.flip(Files.find(["vets.csv"]))).message, "vets.csv is not named after a resource")
  })
)
