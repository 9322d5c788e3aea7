/** Retries and their delays, timeouts, aborts, and walks of changes. */
import { getEventListeners } from "node:events"
import { afterEach, beforeEach, vi } from "vitest"
import { assert, it } from "@effect/vitest"
import * as Client from "../../../src/client/index.ts"
import {
  baseUrl,
  bodiesOf,
  broken,
  clientOf,
  collect,
  emptyPage,
  failureOf,
  json,
  refused,
  type Step,
  steps
} from "./support.ts"

const patient = (fetch: Client.Fetch) => clientOf(fetch, { timeout: 1000, maxRetries: 3 })

const silent: Step = () => new Promise<Response>(() => {})

const cut: Step = () =>
  new Response(new ReadableStream({ start: (controller) => controller.error(new TypeError("terminated")) }))

/** A page of changes. */
const page = (
  cursor: string,
  has_more: boolean,
  ids: ReadonlyArray<string> = [],
  headers: Readonly<Record<string, string>> = {}
) => json({ body: ids.map((id) => ({ id })), removed: [], cursor, has_more }, { headers })

/** A response whose body begins, and never ends; and whether it was given up. */
const endless = () => {
  const state = { isCancelled: false }
  const step: Step = () =>
    new Response(
      new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(new TextEncoder().encode('{"body": [')),
        cancel: () => void (state.isCancelled = true)
      })
    )
  return { state, step }
}

/** Steps that note when each was asked for, in milliseconds, and take their time. */
const noted = () => {
  const at: Array<number> = []
  const began = performance.now()
  const noting =
    (step: Step, millis = 0): Step =>
    async (sent) => {
      at.push(performance.now() - began)
      if (millis > 0) await new Promise((resolve) => setTimeout(resolve, millis))
      return step(sent)
    }
  return { at, noting }
}

const busy = (status: number) => refused(status, "Busy", { "retry-after": "7" })

/** Runs a search to its end, and says when each try was made. */
const timed = async (all: Parameters<typeof steps>, options: Client.RequestOptions = {}, clientFor = patient) => {
  const { at, noting } = noted()
  const [first, ...others] = all
  const { fetch } = steps(noting(first), ...others.map((step) => noting(step)))
  const result = clientFor(fetch)
    .charges.search({}, options)
    .catch((error: unknown) => error)
  await vi.runAllTimersAsync()
  return { at, result: await result }
}

/** The jitter of retries, as a share of the whole. */
const jitter = (share: number) => vi.spyOn(Math, "random").mockReturnValue(share)

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date", "performance"] })
  jitter(0)
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

it("a retry after a 429 or 503 waits for its Retry-After, with jitter, a number or a date, at most a minute", async () => {
  jitter(0.5)
  assert.deepStrictEqual(await timed([busy(429), busy(503), emptyPage]), { at: [0, 7250, 14_750], result: [] })
  vi.setSystemTime(1_000_000_000_000)
  jitter(0)
  const date = new Date(Date.now() + 5000).toUTCString()
  assert.deepStrictEqual((await timed([refused(503, "Busy", { "retry-after": date }), emptyPage])).at, [0, 5000])
  // This machine's clock is wrong.
  const [now, later] = ["Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:44 GMT"]
  const dated = refused(503, "Busy", { date: now, "retry-after": later })
  assert.deepStrictEqual((await timed([dated, emptyPage])).at, [0, 7000])
  assert.lengthOf((await timed([refused(429, "Busy", { "retry-after": "60" }), emptyPage])).at, 2)
  const { at, result } = await timed([refused(429, "Busy", { "retry-after": "61" }), emptyPage])
  assert.deepStrictEqual(at, [0])
  assert.deepInclude(result, { retryAfter: 61 })
})

it("a retry backs off with full jitter after broken connections, timeouts, and a gateway's 502 and 504", async () => {
  for (const step of [broken, refused(502), refused(504), refused(408)]) {
    jitter(1)
    assert.deepStrictEqual((await timed([step], { maxRetries: 6 })).at, [0, 500, 1500, 3500, 7500, 15_500, 23_500])
    jitter(0)
    assert.deepStrictEqual((await timed([step, emptyPage])).at, [0, 0])
  }
  const late = await timed([silent], { maxRetries: 2, timeout: 200 })
  assert.deepStrictEqual(late.at, [0, 200, 400])
  assert.instanceOf(late.result, Client.TimeoutError)
})

it.each([400, 401, 404, 410, 413, 422, 500])("a retry is not made after a %i", async (status) => {
  const { at, result } = await timed([refused(status)])
  assert.deepStrictEqual(at, [0])
  assert.deepInclude(result, { status })
})

it("a retry is made 4 times by default, each after a timeout of 30 seconds", async () => {
  const { at, result } = await timed(
    [silent],
    {},
    (fetch) => new Client.PracticeData({ baseUrl, apiKey: "key", fetch })
  )
  assert.instanceOf(result, Client.TimeoutError)
  assert.deepStrictEqual(at, [0, 30_000, 60_000, 90_000, 120_000])
})

it("a retry succeeds after a response that broke off, and one that hung", async () => {
  const { state, step } = endless()
  const { at, result } = await timed([cut, step, emptyPage])
  assert.lengthOf(at, 3)
  assert.deepStrictEqual(result, [])
  assert.isTrue(state.isCancelled)
})

it.each([
  [new Error("connect ECONNREFUSED 127.0.0.1:3000"), "connect ECONNREFUSED 127.0.0.1:3000"],
  [Object.assign(new AggregateError([]), { code: "ECONNREFUSED" }), "ECONNREFUSED"],
  [undefined, "fetch failed"]
])("a retry that fails gives the error of the last attempt, with the reason of its cause", async (cause, reason) => {
  const refusing: Step = () => Promise.reject(new TypeError("fetch failed", { cause }))
  const { result } = await timed([refusing], { maxRetries: 0 })
  assert.instanceOf(result, Client.ConnectionError)
  assert.strictEqual(result.message, `Cannot get a response from ${baseUrl}: ${reason}`)
})

const unwanted = new Error("no longer wanted")

it.each<[string, Step]>([
  ["while it waits for the response", silent],
  ["while it reads the body", endless().step],
  ["while it waits for the next attempt", refused(503, "Busy", { "retry-after": "5" })]
])("an abort %s ends a request at once, even if fetch ignores the signal", async (_, step) => {
  const controller = new AbortController()
  const { fetch, sent } = steps(step)
  const failed = failureOf(patient(fetch).charges.search({}, { signal: controller.signal }))
  await vi.advanceTimersByTimeAsync(100)
  controller.abort(unwanted)
  assert.strictEqual(await failed, unwanted)
  assert.lengthOf(sent, 1)
  assert.strictEqual(vi.getTimerCount(), 0)
})

it("an abort between two pages ends a walk, and prevents the next request", async () => {
  const controller = new AbortController()
  const body = ["a", "b"].map((id) => ({ id, updated_at: id }))
  const { fetch, sent } = steps(json({ body }))
  const walk = patient(fetch).charges.all({}, { pageSize: 2, signal: controller.signal })
  assert.strictEqual((await walk.next()).value?.id, "a")
  controller.abort(unwanted)
  assert.strictEqual((await walk.next()).value?.id, "b")
  assert.strictEqual(await failureOf(walk.next()), unwanted)
  assert.lengthOf(sent, 1)
})

it("a timeout reaches fetch", async () => {
  const { fetch, sent } = steps(silent)
  const failed = failureOf(patient(fetch).charges.search({}, { timeout: 300, maxRetries: 0 }))
  await vi.advanceTimersByTimeAsync(300)
  assert.isTrue(sent[0]?.signal?.aborted)
  assert.match(String(await failed), /TimeoutError: No whole response from .* within 300 milliseconds/)
})

it("a request leaves no listener on its signal, and makes none of it, which Node 22 would keep", async () => {
  const { signal } = new AbortController()
  const made = vi.spyOn(AbortSignal, "any")
  await timed([refused(503), refused(401)], { signal })
  assert.isEmpty(getEventListeners(signal, "abort"))
  assert.isEmpty(made.mock.calls)
  made.mockRestore()
})

it("changes resume from the cursor of the page before, and end when there are no more", async () => {
  const { fetch, sent } = steps(
    page("1", true, ["a"]),
    page("2", true, ["b"]),
    page("3", false, [], { "x-changes-lag": "12", "x-changes-complete": "true" })
  )
  const pages = await collect(patient(fetch).charges.changes("0", { limit: 5 }))
  const found = pages.map(({ body, complete, cursor, lag }) => [body.map(({ id }) => id), cursor, lag, complete])
  assert.deepStrictEqual(found, [
    [["a"], "1", 0, false],
    [["b"], "2", 0, false],
    [[], "3", 12, true]
  ])
  for (const [index, { body }] of sent.entries()) assert.strictEqual(body, `{"cursor":"${index}","limit":5,"wait":0}`)
})

it("changes ask for the next page as soon as this one is announced, for one page ahead, and for none once they are left", async () => {
  const announced = (cursor: string) => page(cursor, true, [cursor], { "x-changes-next": cursor })
  const asked = Promise.withResolvers<undefined>()
  const slow: Step = async (request) => {
    const { body, headers } = await announced("1")(request)
    const ending = new TransformStream({ flush: () => asked.promise })
    return new Response(body?.pipeThrough(ending), { headers })
  }
  const second: Step = (request) => {
    asked.resolve(undefined)
    return announced("2")(request)
  }
  const { fetch, sent } = steps(slow, second, silent)
  for await (const { cursor } of patient(fetch).charges.changes("0")) {
    await vi.advanceTimersByTimeAsync(10)
    assert.lengthOf(sent, Number(cursor) + 1)
    if (cursor === "2") break
  }
  assert.deepStrictEqual(
    bodiesOf(sent),
    ["0", "1", "2"].map((cursor) => `{"cursor":"${cursor}","wait":0}`)
  )
  assert.isTrue(sent.at(-1)?.signal?.aborted)
})

it("changes go on from the page that came, where another one was announced before a retry", async () => {
  const cutOff: Step = async (request) =>
    new Response((await cut(request)).body, { headers: { "x-changes-next": "1" } })
  const { fetch, sent } = steps(cutOff, page("2", false, ["b"]), page("5", true, ["a"]), page("6", false, ["f"]))
  const collected = collect(patient(fetch).charges.changes("0"))
  await vi.runAllTimersAsync()
  const cursors = (await collected).map(({ cursor }) => cursor)
  assert.deepStrictEqual(cursors, ["5", "6"])
  const expected = ["0", "1", "0", "5"].map((cursor) => `{"cursor":"${cursor}","wait":0}`)
  assert.deepStrictEqual(bodiesOf(sent), expected)
})

it("changes are refused if the cursor does not move", async () => {
  for (const stuck of [page("1", true), page("1", false, ["a"])]) {
    const { fetch } = steps(page("1", true, ["a"]), stuck)
    const error = await failureOf(collect(patient(fetch).charges.changes("0", { follow: true })))
    assert.instanceOf(error, Client.PracticeDataError)
    assert.match(error.message, /cursor that does not move/)
  }
})

it("changes that are followed wait beyond the timeout, and at least a second between empty pages", async () => {
  const { at, noting } = noted()
  const empty = noting(page("2", false))
  const { fetch, sent } = steps(noting(page("1", false, ["a"])), empty, empty, noting(page("3", false, ["b"]), 19_000))
  const cursors: Array<string> = []
  const following = (async () => {
    for await (const { cursor } of patient(fetch).charges.changes(null, { follow: true })) {
      cursors.push(cursor)
      vi.setSystemTime(1_000_000_000_000)
      if (cursor === "3") break
    }
  })()
  await vi.runAllTimersAsync()
  await following
  assert.deepStrictEqual(cursors, ["1", "2", "2", "3"])
  assert.deepStrictEqual(at, [0, 0, 1000, 2000])
  assert.match(sent.at(-1)?.body ?? "", /"wait":20/)
  assert.strictEqual(vi.getTimerCount(), 0)
  const briefly = steps(page("1", false))
  await patient(briefly.fetch).charges.changes(null, { follow: true, wait: 0 }).next()
  assert.match(briefly.sent[0]?.body ?? "", /"wait":1\}/)
})
