/** The pages that a sync reads of a service. */
import { assert, it } from "@effect/vitest"
import { Effect, Option, Stream } from "effect"
import * as Source from "../../../src/cli/sync/Source.ts"
import { ResponseTooLargeError } from "../../../src/client/index.ts"
import { baseUrl, clientOf, sentOf } from "../client/support.ts"

const respond = (url: string) =>
  Response.json(
    url.endsWith("/changes")
      ? { body: [], cursor: "1", has_more: false, is_consistent: true, schema: "" }
      : { id: "org_a" },
    { headers: { "x-changes-lag": "0" } }
  )

it.effect("a copy of the organization alone reads feeds that join it from a reset, and once", () =>
  Effect.gen(function* () {
    const source = Source.make(
      baseUrl,
      clientOf((url) => Promise.resolve(respond(url)))
    )
    const changes = Effect.fnUntraced(function* (from: string | undefined, ...resources: ReadonlyArray<string>) {
      const pages = yield* Stream.runCollect(source.changes(from, resources))
      return { cursor: pages.at(-1)?.cursor, body: pages.flatMap(({ body }) => body) }
    })
    const own = yield* changes(undefined, "organization")
    const joined = yield* changes(own.cursor, "organization", "charges")
    assert.deepStrictEqual(joined.body, [{ resource: "charges", reset: true }])
    assert.deepStrictEqual((yield* changes(joined.cursor, "organization", "charges")).body, [])
  })
)

/** Reads to the end, again after each failure. Returns the limits of the requests, and the last failure. */
const limitsOf = Effect.fnUntraced(function* (fetchPage: (limit: number) => Promise<Response>) {
  const limits: Array<number> = []
  const client = clientOf(
    (url, init) => {
      const { limit } = JSON.parse(sentOf(url, init).body)
      limits.push(limit)
      return fetchPage(limit)
    },
    { timeout: 20 }
  )
  const source = Source.make(baseUrl, client)
  const read = Stream.runDrain(source.changes(undefined, ["charges"]))
  const failed = yield* Effect.retry(read, { times: 5, while: ({ _tag }) => _tag === "Unavailable" }).pipe(
    Effect.flip,
    Effect.option
  )
  return { limits, failed, read }
})

const whole = () => Promise.resolve(respond("/changes"))
const tooLarge = () => Promise.reject(new ResponseTooLargeError("too large"))
const endless = () => Promise.resolve(new Response(new ReadableStream()))
const cut = () => Promise.resolve(new Response('{"body":['))
const breaking = {
  start: (controller: ReadableStreamDefaultController) => controller.error(new TypeError("terminated"))
}
const broken = () => Promise.resolve(new Response(new ReadableStream(breaking)))

it.live.each([
  ["too large", tooLarge],
  ["too slow", endless],
  ["cut off", cut],
  ["broken off", broken]
] as const)("a page that is %s is followed by smaller ones, until a round ends", ([, failing]) =>
  Effect.gen(function* () {
    const { failed, limits, read } = yield* limitsOf((limit) => (limit > 10 ? failing() : whole()))
    assert.isTrue(Option.isNone(failed))
    assert.deepStrictEqual(limits, [1000, 100, 10])
    yield* Effect.flip(read)
    assert.strictEqual(limits.at(-1), 1000)
  })
)

it.effect("a record that is too large is refused, and an outage makes no page smaller", () =>
  Effect.gen(function* () {
    const { failed, limits } = yield* limitsOf(tooLarge)
    assert.deepStrictEqual(limits, [1000, 100, 10, 1])
    assert.include(
      String(Option.getOrThrow(failed)),
      "has a record of more than 64 MiB, which cannot be copied. Shorten it"
    )
    const down = yield* limitsOf(() => Promise.reject(new TypeError("refused")))
    assert.deepStrictEqual(down.limits, [1000, 1000, 1000, 1000, 1000, 1000])
  })
)
