/**
 * The program beside a collector, and a stop: what it exports, and its log.
 *
 * @module-tag long
 */
import { assert, it } from "@effect/vitest"
import { Array, Effect, Layer } from "effect"
import { OtlpCollector } from "../../integration/observability/OtlpCollector.ts"
import { treeOf } from "../../integration/observability/traced.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { parse } from "../../support/deletions/taskFixture.ts"
import * as Client from "../../support/Client.ts"
import { inTime } from "../../support/inTime.ts"
import * as Program from "../../support/Program.ts"
import * as Raw from "../../support/Raw.ts"

it.live("A process exports its spans, and logs whole lines of JSON, one of each request, up to the last moment", () =>
  Effect.gen(function* () {
    const { faults, lines: exported, spans, url: collector } = yield* OtlpCollector
    const program = yield* Program.start({
      DATABASE_URL: (yield* TestDatabase).url,
      LOG_FORMAT: "json",
      LOG_LEVEL: "Debug",
      BODY_TIMEOUT: "1s",
      OTEL_EXPORTER_OTLP_ENDPOINT: collector
    })
    const late = Raw.unfinished.replace("\r\n\r\n", "\r\nX-Request-Id: late\r\n\r\n")
    assert.deepStrictEqual(Raw.statusesOf(yield* Raw.exchange(program.url, late)), [408])
    const ids = Array.makeBy(200, (index) => `mine-${index}`)
    const search = Effect.fnUntraced(function* (id: string) {
      const headers = { ...Client.headersOf("oakridge"), "x-request-id": id }
      const { call } = yield* Client.make(program.url)
      return yield* call({ path: "/api/v3/charges/search", headers, body: '{"limit":1}' })
    }, Effect.scoped)
    yield* Effect.forEach(ids, search, { concurrency: 8 })
    const { end, seconds } = yield* Program.stop(program)
    assert.deepStrictEqual(end, Program.inOrder)
    assert.isBelow(seconds, inTime(4))

    const lines = yield* Effect.forEach(program.stdout().split("\n").slice(0, -1), parse)
    const logged = lines.filter(({ message }) => message === "Request").map((line) => String(line["request_id"]))
    assert.sameMembers(logged, ["late", ...ids])
    const refused = lines.find((line) => line["request_id"] === "late")
    assert.deepInclude(refused, { status: 408, refusal: "timeout" })
    const requests = (yield* spans).filter(({ kind }) => kind === "SERVER")
    const traced = requests.map(({ attributes }) => attributes["practice_data.request_id"])
    assert.includeMembers(traced, ids)
    // The lane makes a trace of the one statement that it has. On a busy machine some reads run again.
    const all = yield* spans
    const read = /^\{"POST \/api\/v3\/charges\/search":\[\{"Records.search":\[\{"[^"]+":\[\]\}\]\}\]\}$/
    assert.isTrue(requests.some((request) => read.test(JSON.stringify(treeOf(all, request)))))
    assert.isTrue((yield* exported).some(({ body }) => body.startsWith("Listening on")))
    assert.deepStrictEqual(yield* faults, [])
  }).pipe(Effect.provide(Layer.merge(OtlpCollector.layer, TestDatabase.layerDemo)))
)
