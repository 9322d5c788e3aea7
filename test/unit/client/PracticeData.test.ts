/** The client of promises, over the routes and over responses that a test makes. */
import { inspect } from "node:util"
import { assert, it as test, layer } from "@effect/vitest"
import { DateTime, Effect, Schema, Stream } from "effect"
import { Errors, PracticeData } from "../../../src/client/index.ts"
import { json } from "../../support/Client.ts"
import { InProcess, key, send } from "../../support/inProcess.ts"

const baseUrl = "http://service"

/** A client of the routes. */
const stand = Effect.map(InProcess, (handle) => {
  const fetch: typeof globalThis.fetch = (input, init) => handle(new Request(input, init))
  return { client: PracticeData.make({ baseUrl: `${baseUrl}/api/v3/`, apiKey: key, fetch }), fetch }
})

/** The JSON of the API for the same key. */
const post = (path: string, body: object) =>
  Effect.map(send({ path: `/api/v3${path}`, json: body }), (answer) => answer.json)

const collect = <A>(all: AsyncIterable<A>) => Stream.runCollect(Stream.fromAsyncIterable(all, String))

/** The error that a call rejects with, or throws. */
const rejection = (call: () => Promise<unknown>) =>
  Effect.match(Effect.tryPromise(call), {
    onSuccess: () => assert.fail("It does not reject"),
    onFailure: ({ cause }): unknown => cause
  })

layer(InProcess.layer(), { excludeTestServices: true })("the client of promises", (it) => {
  it.effect("returns the JSON of the API: a record, a page, a page of the processor, a deletion", () =>
    Effect.gen(function* () {
      const { client } = yield* stand
      for (const [path, body, call] of [
        ["/organization/get", {}, client.organization.get()],
        ["/charges/get", { id: "charge_oakridge_0001" }, client.charges.get("charge_oakridge_0001")],
        ["/charges/search", { status: "open", limit: 3 }, client.charges.search({ status: "open", limit: 3 })],
        [
          "/psp-payouts/search",
          { clinic: "clinic_oakridge_01" },
          client.pspPayouts.search({ clinic: "clinic_oakridge_01" })
        ],
        ["/invoice-deletions/search", {}, client.invoiceDeletions.search({})]
      ] as const) {
        const found = yield* Effect.promise<object>(() => call)
        assert.deepStrictEqual<unknown>(Array.isArray(found) ? { body: found } : found, yield* post(path, body))
      }
      const [task] = yield* Effect.promise(() => client.invoiceDeletions.search({ limit: 1 }))
      const id = task?.task_id ?? ""
      assert.deepStrictEqual(yield* Effect.promise(() => client.invoiceDeletions.get({ task_id: id })), task)
    })
  )

  it.effect("reads all pages: of records, of the processor and of changes", () =>
    Effect.gen(function* () {
      const { client } = yield* stand
      const open = { body: yield* collect(client.charges.all({ status: "open" })) }
      assert.deepStrictEqual<unknown>(open, yield* post("/charges/search", { status: "open", limit: 1000 }))
      const objects = yield* collect(client.pspCharges.all({ clinic: "clinic_oakridge_01" }))
      assert.isAbove(new Set(objects.map(({ id }) => id)).size, 100)
      const pages = yield* collect(client.changes({ resources: ["charges"], limit: 100 }))
      assert.isAbove(pages.length, 1)
      assert.isTrue(pages.at(-1)?.is_consistent)
      const body = pages.flatMap((page) => page.body.flatMap((item) => ("record" in item ? [item.record] : [])))
      assert.deepStrictEqual<unknown>({ body }, yield* post("/charges/search", { limit: 1000 }))
    })
  )

  it.effect("rejects with the contract's error, which has a tag, a detail and a status", () =>
    Effect.gen(function* () {
      const { client, fetch } = yield* stand
      const missing = yield* rejection(() => client.charges.get("nobody"))
      assert.instanceOf(missing, Errors.RecordNotFound)
      assert.deepInclude(missing, { _tag: "RecordNotFound", detail: "No such record", httpApiStatus: 404 })
      const unknown = PracticeData.make({ baseUrl, apiKey: "unknown", fetch })
      assert.instanceOf(yield* rejection(() => unknown.clinics.search({})), Errors.Unauthorized)
      assert.instanceOf(yield* rejection(() => client.pets.search({ limit: 0 })), Errors.OutOfRange)
      const iterator = client.pspCharges.all({ clinic: "nowhere" })[Symbol.asyncIterator]()
      assert.instanceOf(yield* rejection(() => iterator.next()), Errors.ClinicUnknown)
    })
  )
})

const start = 1_767_600_000_000

const decodeSearch = Schema.decodeUnknownPromise(
  Schema.Struct({ limit: Schema.Int, offset: Schema.Int, updated_at_since: Schema.optionalKey(Schema.String) })
)

/** Pages of a search over records that change before each page but the first. */
const model = (records: Array<{ id: string; at: number }>, change: () => void) => {
  let isFirst = true
  const fetch: typeof globalThis.fetch = (input, init) =>
    new Request(input, init)
      .json()
      .then((body) => decodeSearch(body))
      .then(({ limit, offset, updated_at_since: since = "" }) => {
        if (!isFirst) change()
        isFirst = false
        const time = (at: number) => DateTime.formatIso(DateTime.makeUnsafe(start + at))
        const sorted = records.toSorted((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1))
        const found = sorted.filter(({ at }) => time(at) >= since).slice(offset, offset + limit)
        const empty = { name: null, species: null, breed: null, sex: null, date_of_birth: null, clinic: null }
        const times = (at: number) => ({ created_at: time(0), updated_at: time(at) })
        return Response.json({ body: found.map(({ at, id }) => ({ id, ...empty, client_id: null, ...times(at) })) })
      })
  return PracticeData.make({ baseUrl, apiKey: "key", fetch }).pets
}

test.effect("all pages have each record, and once if it does not change, while others change", () =>
  Effect.gen(function* () {
    const records = Array.from({ length: 3500 }, (_, index) => ({ id: `r${index}`, at: index }))
    const touched = new Set<string>()
    const touch = () => {
      for (const record of records.filter((_, index) => index % 7 === touched.size % 7).slice(0, 200)) {
        touched.add(record.id)
        record.at += 100_000
      }
    }
    const ids = (yield* collect(model(records, touch).all({}))).map(({ id }) => id)
    assert.isAbove(touched.size, 100)
    assert.strictEqual(new Set(ids).size, records.length)
    const unchanged = ids.filter((id) => !touched.has(id))
    assert.lengthOf(unchanged, records.length - touched.size)
  })
)

test.effect.each([
  ["localhost:3000", "key", "HTTP address"],
  ["https://user:s3cret@host", "key", "HTTP address"],
  ["https://host/?a=s3cret", "key", "HTTP address"],
  [baseUrl, "", "API key"],
  [baseUrl, "s3cret\n", "API key"]
] as const)("an invalid option is refused when the client is made: %s with %j", ([url, apiKey, reason]) =>
  Effect.gen(function* () {
    const error = yield* rejection(() => Promise.resolve(PracticeData.make({ baseUrl: url, apiKey })))
    assert.include(inspect(error, { depth: 9 }), reason)
    assert.notInclude(inspect(error, { depth: 9 }), "s3cret")
  })
)

test.effect.each([
  ["no connection", () => Promise.reject(new TypeError("fetch failed"))],
  ["another server's page", () => Promise.resolve(new Response("<html>"))],
  ["a 404 of a proxy", () => Promise.resolve(Response.json({ detail: "No such record" }, { status: 404 }))]
] as const)("an error of %s is none of the contract, and has no key in it", ([, fetch]) =>
  Effect.gen(function* () {
    const client = PracticeData.make({ baseUrl, apiKey: "s3cret", retries: 0, fetch })
    const error = yield* rejection(() => client.charges.get("a"))
    assert.notProperty(error, "httpApiStatus")
    for (const shown of [inspect(error, { depth: 9, showHidden: true }), json(error), String(error)]) {
      assert.notInclude(shown, "s3cret")
    }
    assert.notInclude(inspect(client, { depth: 9, showHidden: true }), "s3cret")
  })
)

test.effect("a call whose signal is aborted rejects, and aborts its request", () =>
  Effect.gen(function* () {
    const signals: Array<AbortSignal | null | undefined> = []
    const fetch: typeof globalThis.fetch = (_, init) => {
      signals.push(init?.signal)
      return Promise.withResolvers<Response>().promise
    }
    const client = PracticeData.make({ baseUrl, apiKey: "key", fetch })
    yield* rejection(() => client.charges.get("a", { signal: AbortSignal.abort() }))
    const aborted = signals.map((signal) => signal?.aborted)
    assert.deepStrictEqual(aborted, [true])
  })
)
