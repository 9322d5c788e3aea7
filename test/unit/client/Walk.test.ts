/** A walk of all pages: each record once if nothing moves, and each unchanged record while others move. */
import { assert, it } from "@effect/vitest"
import { Arbitrary, Effect } from "effect"
import { integer } from "../../support/arbitraries.ts"
import { tries } from "../../support/tries.ts"
import { type Fetch, ResponseTooLargeError } from "../../../src/client/index.ts"
import { isObject } from "../../../src/client/Response.ts"
import { bodiesOf, clientOf, collect, failureOf, json, sentOf, steps } from "./support.ts"

/** A record: its time in microseconds. */
interface Model {
  readonly id: string
  readonly micros: number
}

const start = Date.UTC(2026, 0, 1)

/** A time as a record shows it: whole milliseconds. */
const shown = (micros: number) => new Date(start + Math.floor(micros / 1000)).toISOString()

/** A time as a caller may write it, to the microsecond and with an offset. */
const exact = (micros: number) => {
  const at = new Date(start + 2 * 3_600_000 + Math.floor(micros / 1000)).toISOString()
  return `${at.slice(0, -1)}${String(micros % 1000).padStart(3, "0")}+02:00`
}

const microsOf = (time: string) => {
  const [, whole = "", fraction = "", zone = ""] = /^(.{19})\.(\d{3,6})(.*)$/.exec(time) ?? []
  return (Date.parse(`${whole}${zone}`) - start) * 1000 + Number(fraction.padEnd(6, "0"))
}

const inOrder = (a: Model, b: Model) => a.micros - b.micros || (a.id < b.id ? -1 : 1)

/** Writes between one page and the next. */
type Write = (records: ReadonlyArray<Model>, request: number) => ReadonlyArray<Model>

/** A `fetch` that searches records, and lets writers write before each page but the first. */
const modelService = (
  initial: ReadonlyArray<Model>,
  { hasTimes = true, write = (records) => records }: { readonly hasTimes?: boolean; readonly write?: Write } = {}
) => {
  let records = initial.toSorted(inOrder)
  let requests = 0
  const fetch: Fetch = (url, init) => {
    if (requests > 0) records = write(records, requests).toSorted(inOrder)
    requests += 1
    const body: unknown = JSON.parse(sentOf(url, init).body)
    const { limit, offset, updated_at_since: since } = isObject(body) ? body : {}
    const from = typeof since === "string" ? microsOf(since) : -Infinity
    const found = records.filter(({ micros }) => micros >= from)
    const page = found.slice(Number(offset), Number(offset) + Number(limit))
    const shownOf = ({ id, micros }: Model) => ({ id, ...(hasTimes && { updated_at: shown(micros) }) })
    return Promise.resolve(Response.json({ body: page.map(shownOf) }))
  }
  return { fetch, requests: () => requests, records: () => records }
}

/** Times within 3 milliseconds, so that most records share theirs, and many pages hold only one. */
const time = integer(0, 2999)
const common = Arbitrary.map(integer(0, 4), (fifth) => 1000 + fifth * 200)
const times = Arbitrary.array(
  Arbitrary.flatMap(integer(0, 2), (kind) => (kind === 0 ? time : common)),
  { maxLength: 60 }
)
const pageSize = integer(2, 9)

const modelsOf = (all: ReadonlyArray<number>): ReadonlyArray<Model> =>
  all.map((micros, index) => ({ id: `r${String((index * 37) % 101).padStart(3, "0")}`, micros }))

const idsOf = (records: ReadonlyArray<{ readonly id: string }>) => records.map(({ id }) => id)

const kinds = ["touch", "remove", "insert", "back"] as const

/** An edit of a record between two pages. */
interface Edit {
  readonly kind: (typeof kinds)[number]
  readonly at: number
  readonly micros: number
}

const drawn = Arbitrary.all([integer(0, 3), integer(0, 59), time])
const edits = Arbitrary.array(
  Arbitrary.map(drawn, ([kind, at, micros]): Edit => ({ kind: kinds[kind] ?? "touch", at, micros })),
  { maxLength: 12 }
)

/** Writers that make some edits before each page, until they have made all of them. */
const writing = (all: ReadonlyArray<Edit>, touched: Set<string>): Write => {
  let next = 0
  return (records, request) => {
    let current = records
    for (const edit of all.slice(next, next + 2)) {
      const record = current.toSorted((a, b) => (a.id < b.id ? -1 : 1))[edit.at % Math.max(1, current.length)]
      if (edit.kind === "insert")
        current = [...current, { id: `new${request}-${edit.at}-${edit.micros}`, micros: edit.micros }]
      if (record === undefined || edit.kind === "insert") continue
      touched.add(record.id)
      const others = current.filter(({ id }) => id !== record.id)
      // A time of another millisecond than any so far, or an earlier one that the writer sets.
      const micros = edit.kind === "touch" ? 10_000 + request * 1000 : -1000 - edit.micros
      current = edit.kind === "remove" ? others : [...others, { ...record, micros }]
    }
    next += 2
    return current
  }
}

/** Records of the same time. */
const ordered = (length: number): ReadonlyArray<Model> =>
  Array.from({ length }, (_, index) => ({ id: `r${String(index).padStart(5, "0")}`, micros: 0 }))

/** A writer that moves records to the end, before one of the pages. */
const moving =
  (before: number, moves: (at: number) => boolean): Write =>
  (records, request) =>
    request === before ? records.map((record, at) => (moves(at) ? { ...record, micros: 5000 } : record)) : records

for (const { often, options } of tries({ few: 25, many: 600 })) {
  it.effect.prop(
    `a walk reads each record once, in order, whichever share a time, from the caller's time on to the microsecond${often}`,
    { times, pageSize, since: common, isSince: integer(0, 1) },
    ({ isSince, pageSize: size, since, times: all }) =>
      Effect.promise(async () => {
        const service = modelService(modelsOf(all))
        const filters = isSince === 1 ? { updated_at_since: exact(since) } : {}
        const walked = await collect(clientOf(service.fetch).charges.all(filters, { pageSize: size }))
        const expected = service.records().filter(({ micros }) => isSince === 0 || micros >= since)
        assert.deepStrictEqual(idsOf(walked), idsOf(expected))
      }),
    options
  )

  for (const [which, hasTimes] of [
    ["with times", true],
    ["without times", false]
  ] as const) {
    it.effect.prop(
      `a walk misses no record that stays while others are changed, removed and inserted, ${which}${often}`,
      { times, pageSize, edits },
      ({ edits: written, pageSize: size, times: all }) =>
        Effect.promise(async () => {
          const touched = new Set<string>()
          const initial = modelsOf(all)
          // Where no time is shown, it is that of the creation, which stays.
          const possible = written.filter(({ kind }) => hasTimes || kind === "insert" || kind === "remove")
          const service = modelService(initial, { hasTimes, write: writing(possible, touched) })
          const client = clientOf(service.fetch)
          const walk = hasTimes
            ? client.charges.all({}, { pageSize: size })
            : client.clinics.all({}, { pageSize: size })
          const walked = idsOf(await collect<{ readonly id: string }>(walk))
          const stayed = idsOf(initial).filter((id) => !touched.has(id))
          assert.includeMembers(walked, stayed)
          const again = walked.filter((id, index) => walked.indexOf(id) < index && !touched.has(id))
          assert.deepStrictEqual(again, [], "came again, and had stayed")
        }),
      options
    )
  }
}

it("a walk keeps to the caller's time within its millisecond, and reads no page twice", async () => {
  const initial = modelsOf([1000, 1000, 1200, 1200, 1400, 2500, 2500, 2500, 3500, 4500])
  const service = modelService(initial)
  const filters = { updated_at_since: exact(1200) }
  const walked = await collect(clientOf(service.fetch).charges.all(filters, { pageSize: 3 }))
  assert.deepStrictEqual(idsOf(walked), idsOf(service.records().slice(2)))
  assert.strictEqual(service.requests(), 4)
})

it("a walk steps back if nothing of a page is known", async () => {
  const initial = ordered(3000)
  const write = moving(20, (at) => at < 900)
  const walked = await collect(clientOf(modelService(initial, { write }).fetch).charges.all({}, { pageSize: 100 }))
  assert.strictEqual(new Set(idsOf(walked)).size, 3000)
  assert.strictEqual(walked.length, 3900)
})

it("a walk whose pages are too large shrinks them, down to two records", async () => {
  const service = modelService(ordered(60))
  const upTo =
    (most: number): Fetch =>
    (url, init) =>
      Number(/"limit":(\d+)/.exec(sentOf(url, init).body)?.[1]) > most
        ? Promise.reject(new ResponseTooLargeError("too large"))
        : service.fetch(url, init)
  assert.deepStrictEqual(idsOf(await collect(clientOf(upTo(10)).charges.all())), idsOf(service.records()))
  assert.instanceOf(await failureOf(collect(clientOf(upTo(1)).charges.all())), ResponseTooLargeError)
})

it("a walk reads no page before it is needed", async () => {
  const service = modelService(modelsOf([1, 2, 3, 4, 5, 6, 7]))
  assert.isDefined((await clientOf(service.fetch).charges.all({}, { pageSize: 3 }).next()).value)
  assert.strictEqual(service.requests(), 1)
})

it("a walk asks for pages of 1000 records, and of 100 objects of the processor, and refuses pages of one", async () => {
  const { fetch, sent } = steps(json({ body: [], data: [], has_more: false }))
  const { charges, psp } = clientOf(fetch)
  await collect(charges.all({ status: "open" }))
  await collect(psp.charges.all({ clinic: "c" }))
  const expected = ['{"status":"open","limit":1000,"offset":0}', '{"clinic":"c","limit":100}']
  assert.deepStrictEqual(bodiesOf(sent), expected)
  assert.match(String(await failureOf(collect(charges.all({}, { pageSize: 1 })))), /pageSize must be 2 or more/)
  assert.lengthOf(sent, 2)
})

it("a walk remembers the last 10,000 records: one from before comes again if it moves", async () => {
  const initial = ordered(11_000)
  // Two records move before the last page of 11,000.
  const write = moving(11, (at) => at === 0 || at === 5000)
  const { fetch } = modelService(initial, { hasTimes: false, write })
  const walked = idsOf(await collect<{ readonly id: string }>(clientOf(fetch).clinics.all()))
  const seen = new Set<string>()
  const again = walked.filter((id) => seen.size === seen.add(id).size)
  assert.deepStrictEqual(again, ["r00000"])
  assert.strictEqual(seen.size, 11_000)
})
