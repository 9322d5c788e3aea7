/** The pages that a sync reads of a service. */
import { assert, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import * as Source from "../../../src/cli/sync/Source.ts"
import { baseUrl, clientOf } from "../client/support.ts"

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
