/**
 * Bodies that cost more to refuse than to send, or would. Each is made of a seed, so that nobody can prepare for it.
 */
import { gzipSync } from "node:zlib"

const mebibyte = 1024 * 1024

/** As much as an endpoint takes, less a little for what is around it. */
const intake = 4 * mebibyte - 200
const api = mebibyte - 200

/** A kind of hostile request. */
export interface Kind {
  readonly name: string
  /** Whether it needs no key, and goes to the intake, or is a search with one. */
  readonly to: "intake" | "data-api"
  readonly body: (seed: number) => Uint8Array | string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent in chunks of so many bytes, its length untold. */
  readonly chunk?: number
}

const repeat = (text: string, bytes: number) => text.repeat(Math.floor(bytes / text.length))

/** `before`, as many of `item` with commas between as there is room for, `after`. */
const list = (before: string, item: string, after: string, bytes: number) =>
  `${before}${repeat(`${item},`, bytes - before.length - after.length - item.length)}${item}${after}`

/** As many different members as there is room for. */
const members = (seed: number, bytes: number, value = "1") => {
  const salt = seed.toString(36)
  const each = `"${salt}_0000000":${value},`.length
  const texts = Array.from(
    { length: Math.floor(bytes / each) },
    (_, index) => `"${salt}_${String(index).padStart(7, "0")}":${value}`
  )
  return texts.join(",")
}

const items = (seed: number, count: number) =>
  Array.from({ length: count }, (_, index) => ({ invoice_id: `i${seed}_${index}`, clinic_id: "c", client_id: "k" }))

const invoices = (given: ReadonlyArray<unknown>) => JSON.stringify({ invoices: given })

const pick = (seed: number, ...texts: ReadonlyArray<string>) => texts[seed % texts.length] ?? ""

const toIntake: ReadonlyArray<Omit<Kind, "to">> = [
  { name: "items that are numbers", body: () => list('{"invoices":[', "0", "]}", intake) },
  { name: "items that are lists", body: () => list('{"invoices":[', "[]", "]}", intake) },
  { name: "items that are empty", body: () => list('{"invoice_lines":[', "{}", "]}", intake) },
  {
    name: "items of all kinds",
    body: (seed) => list('{"invoices":[', `null,"${seed}",{"a":${seed}},[1],true`, "]}", intake)
  },
  { name: "10,000 good items", body: (seed) => invoices(items(seed, 10_000)) },
  { name: "10,001 good items", body: (seed) => invoices(items(seed, 10_001)) },
  {
    name: "10,000 items with 3 faults each",
    body: (seed) =>
      invoices(Array.from({ length: 10_000 }, () => ({ invoice_id: seed, clinic_id: " ", client_id: [] })))
  },
  {
    name: "10,000 items with unknown fields",
    body: (seed) =>
      invoices(items(seed, 10_000).map((item, index) => ({ ...item, [`x${index}`]: "y".repeat(200), z: [[index]] })))
  },
  { name: "one item with 200,000 unknown fields", body: (seed) => `{"invoices":[{${members(seed, intake - 30)}}]}` },
  { name: "200,000 unknown fields", body: (seed) => `{${members(seed, intake - 2)}}` },
  {
    name: "one text of 4 MiB",
    body: (seed) => `{"invoices":[{"invoice_id":"${repeat(pick(seed, "x", "é", "犬"), intake / 3)}"}]}`
  },
  { name: "one text of escapes", body: () => `{"invoices":[{"invoice_id":"${repeat("\\u0041", intake - 50)}"}]}` },
  { name: "one name of 4 MiB", body: (seed) => `{"${repeat(pick(seed, "k", "q", "\\n"), intake - 10)}":1}` },
  { name: "one number of 4 MiB", body: (seed) => `{"invoices":${repeat(pick(seed, "7", "1", "9"), intake - 20)}}` },
  { name: "numbers beyond all bounds", body: () => list('{"invoices":[', "-1e999", "]}", intake) },
  { name: "lists in lists", body: () => `${"[".repeat(intake / 2)}${"]".repeat(intake / 2)}` },
  { name: "objects in objects", body: () => `{"invoices":[${repeat('{"a":', intake - 20)}` },
  { name: "one name, again and again", body: () => `{${repeat('"invoices":[],', intake - 30)}"invoices":[]}` },
  { name: "bytes that are no UTF-8", body: (seed) => Buffer.alloc(intake, 0x80 + (seed % 64)) },
  { name: "nothing but space", body: (seed) => repeat(pick(seed, " ", "\n", "\t"), intake) },
  { name: "{,,,,", body: (seed) => `{${repeat(pick(seed, ",", ":", ",:"), intake - 1)}` },
  { name: "[}]}]}", body: (seed) => repeat(pick(seed, "[}", '{"a"]', "]}"), intake) },
  {
    name: "words that are no JSON",
    body: (seed) => repeat(pick(seed, "nul ", "undefined,", "'a':1,", "/**/ "), intake)
  },
  { name: "a text that never ends", body: () => `{"invoices":[{"invoice_id":"${repeat("a\n", intake - 50)}` },
  { name: "more than 4 MiB, in chunks", body: () => " ".repeat(6 * mebibyte), chunk: 64 * 1024 },
  { name: "chunks of one byte", body: (seed) => members(seed, 200 * 1024), chunk: 1 },
  {
    name: "compressed, 40 MiB of it",
    body: () => gzipSync(Buffer.alloc(40 * mebibyte, "[")),
    headers: { "content-encoding": "gzip" }
  }
]

const toDataApi: ReadonlyArray<Omit<Kind, "to">> = [
  { name: "60,000 unknown fields", body: (seed) => `{${members(seed, api - 2)}}` },
  { name: "{,,,,", body: (seed) => `{${repeat(pick(seed, ",", ":", ",,:"), api - 1)}` },
  { name: "[1,1,1", body: (seed) => list("[", String(seed % 10), "]", api) },
  { name: "a filter of 1 MiB", body: (seed) => `{"pet":"${repeat(pick(seed, "p", "é", "犬"), api / 3)}"}` },
  { name: "limit, again and again", body: (seed) => `{${repeat(`"limit":${(seed % 9) + 1},`, api - 20)}"limit":1}` },
  { name: "a filter that is nested", body: () => `{"pet":${"[".repeat(api / 2 - 10)}${"]".repeat(api / 2 - 10)}}` },
  { name: "unknown fields with long names", body: (seed) => `{${members(seed, api - 2, `"${"v".repeat(2000)}"`)}}` },
  { name: "a number of 1 MiB", body: () => `{"limit":${"9".repeat(api - 20)}}` }
]

/** All kinds. */
export const kinds: ReadonlyArray<Kind> = [
  ...toIntake.map((kind): Kind => ({ ...kind, to: "intake" })),
  ...toDataApi.map((kind): Kind => ({ ...kind, name: `${kind.name} (with a key)`, to: "data-api" }))
]

/** The kinds that once took the service down. */
export const known = ["items that are numbers", "10,000 good items", "{,,,,", "60,000 unknown fields (with a key)"]
