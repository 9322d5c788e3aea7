/** The pages that a sync reads of a service. */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Redacted, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as Source from "../../../src/cli/sync/Source.ts"

const organization = {
  id: "org_a",
  name: null,
  created_at: "2026-01-31T09:30:00.000Z",
  updated_at: "2026-01-31T09:30:00.000Z"
}
const page = { body: [], cursor: "1", has_more: false, is_consistent: true, schema: "" }

const respond = (path: string) => Response.json(path.endsWith("/changes") ? page : organization)

/** A request as the service receives it. */
interface Received {
  readonly path: string
  readonly headers: Headers
  readonly body: Readonly<Record<string, unknown>>
}

/** A source over a service that responds so. */
const sourceOf = (handle: (received: Received) => Response | Promise<Response>) =>
  Source.make({
    baseUrl: "http://service/data",
    apiKey: Redacted.make("key"),
    fetch: (input, init) => {
      const request = new Request(input, init)
      const { headers, url } = request
      return request.text().then((text) => handle({ path: new URL(url).pathname, headers, body: JSON.parse(text) }))
    }
  })

const readFrom = (source: Source.Source, from: string | undefined) =>
  Effect.map(Stream.runCollect(source.changes(from)), (pages) => ({
    cursor: pages.at(-1)?.cursor,
    body: pages.flatMap(({ body }) => body)
  }))

it.effect("a request has the API key, and neither follows a redirect nor continues a trace", () =>
  Effect.gen(function* () {
    const source = yield* sourceOf(({ headers, path }) => {
      assert.strictEqual(path, "/data/api/v3/organization/get")
      assert.strictEqual(headers.get("authorization"), "Bearer key")
      assert.isNull(headers.get("traceparent"))
      return new Response(null, { status: 302, headers: { location: "http://elsewhere" } })
    })
    const error = yield* Effect.flip(source.organization)
    assert.strictEqual(error._tag, "Unavailable")
    assert.include(error.message, "302")
  })
)

it.effect("pages follow each other by their cursors, and their records are copied as they came", () =>
  Effect.gen(function* () {
    const cursors: Array<unknown> = []
    const record = { id: "a", unknown_field: 1 }
    const source = yield* sourceOf(({ body: { cursor }, path }) => {
      if (path.endsWith("/get")) return respond(path)
      cursors.push(cursor)
      const item = { resource: "charges", ...(cursor === undefined ? { record } : { removed: "b" }) }
      return Response.json({
        ...page,
        cursor: `${cursors.length}`,
        body: [item],
        has_more: cursor === undefined,
        is_consistent: cursor !== undefined
      })
    })
    const read = yield* readFrom(source, undefined)
    assert.deepStrictEqual(read.body, [
      { resource: "charges", record },
      { resource: "charges", removed: "b" },
      { resource: "organization", record: organization }
    ])
    assert.deepStrictEqual(cursors, [undefined, "1"])
    yield* readFrom(source, read.cursor)
    assert.strictEqual(cursors.at(-1), "2")
  })
)

it.effect("the record of the organization comes at the end of a round, and again when it changed", () =>
  Effect.gen(function* () {
    let name = "One"
    const source = yield* sourceOf(({ path }) =>
      path.endsWith("/get") ? Response.json({ ...organization, name }) : respond(path)
    )
    const names: Array<unknown> = []
    const read = Effect.fnUntraced(function* (from: string | undefined) {
      const { body, cursor } = yield* readFrom(source, from)
      names.push(body.flatMap((change) => ("record" in change && "name" in change.record ? [change.record.name] : [])))
      return cursor
    })
    const second = yield* read(yield* read(undefined))
    name = "Two"
    yield* read(second)
    assert.deepStrictEqual(names, [["One"], [], ["Two"]])
  })
)

const failure = (status: number, code: string) =>
  Response.json(
    { detail: `It is ${code}` },
    { status, headers: { "x-error": code, "retry-after": "1", "www-authenticate": "Bearer" } }
  )

const onChanges =
  (status: number, code: string) =>
  ({ path }: Received) =>
    path.endsWith("/changes") ? failure(status, code) : respond(path)

const noConnection = new TypeError("x", { cause: new Error("ECONNREFUSED") })

it.effect.each([
  ["an unknown key", () => failure(401, "unauthorized"), "Refused", "401"],
  ["an organization without a record", () => failure(404, "record_not_found"), "Refused", "organizations create"],
  ["a service without changes", onChanges(501, "changes_not_served"), "Refused", "501"],
  ["an order that has ended", onChanges(410, "cursor_expired"), "CursorExpired", ""],
  ["too many requests", () => failure(429, "too_many_requests"), "Unavailable", "429"],
  ["a store that is down", () => failure(503, "record_store_down"), "Unavailable", "It is record_store_down"],
  ["a bug", () => new Response(null, { status: 500 }), "Unavailable", "500"],
  ["a 404 of a proxy", () => new Response("<html>", { status: 404 }), "Unavailable", "404"],
  ["another server's page", () => new Response("<html>"), "Unavailable", "JSON"],
  ["no connection", () => Promise.reject(noConnection), "Unavailable", "ECONN"],
  ["no response", () => Promise.withResolvers<Response>().promise, "Unavailable", "2 minutes"]
] as const)("%s is %s, after retries if one may help", ([, handle, tag, reason]) =>
  Effect.gen(function* () {
    const source = yield* sourceOf(handle)
    const read = Effect.andThen(source.organization, Stream.runDrain(source.changes(undefined)))
    const reading = yield* Effect.forkScoped(Effect.flip(read))
    yield* Effect.repeat(TestClock.adjust("1 second"), { until: () => reading.pollUnsafe() !== undefined, times: 150 })
    const error = yield* Fiber.join(reading)
    assert.strictEqual(error._tag, tag)
    assert.include(error.message, reason)
  })
)
