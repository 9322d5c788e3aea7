/** What a line of the log looks like, and what never is in one. */
import { assert, it, layer } from "@effect/vitest"
import { Effect, Layer, Tracer } from "effect"
import { InProcess, key, layerDemoBut, send, type Sent } from "../../http/inProcess.ts"
import { logged, parse } from "./logged.ts"

const line = (effect: Effect.Effect<void>, format: "json" | "logfmt" = "json") =>
  Effect.suspend(() => {
    const { layer: log, lines } = logged({ format, level: "All" })
    return Effect.as(Effect.provide(effect, log), lines)
  })

it.effect("a line is one flat object, with what follows its message as a detail", () =>
  Effect.gen(function* () {
    const lines = yield* line(
      Effect.annotateLogs(Effect.logWarning("It failed", "twice", 3), {
        task_id: "a",
        attempt: 2,
        is_last: true,
        of: ["b"]
      })
    )
    assert.deepStrictEqual(
      lines.map((each) => parse(each)),
      [
        {
          time: "1970-01-01T00:00:00.000Z",
          level: "WARN",
          message: "It failed",
          detail: "twice 3",
          task_id: "a",
          attempt: 2,
          is_last: true,
          of: "[ 'b' ]"
        }
      ]
    )
    assert.deepStrictEqual(yield* line(Effect.annotateLogs(Effect.logInfo("It is back"), { away_ms: 5 }), "logfmt"), [
      `time=1970-01-01T00:00:00.000Z level=INFO message="It is back" away_ms=5\n`
    ])
  })
)

it.effect("an error is a bounded text with its stack, without what has the form of a secret", () =>
  Effect.gen(function* () {
    const secrets = [
      `pda_live_${"a1B2".repeat(9)}zz`,
      "whsec_c2VjcmV0c2VjcmV0",
      "sk_live_51Habcdef",
      "postgres://user:hunter2@host",
      "Bearer abc.def.ghi"
    ]
    const error = new Error(`It failed: ${secrets.join(" ")} ${"x".repeat(5000)}`)
    const [text = ""] = yield* line(Effect.logError("A bug", error.message).pipe(Effect.andThen(Effect.void)))
    const lines = yield* line(Effect.catchCause(Effect.die(error), (cause) => Effect.logError("A bug", cause)))
    for (const each of [text, ...lines]) {
      assert.isBelow(each.length, 4000)
      assert.include(each, "It failed: pda_live_a1B2")
      for (const hidden of ["a1B2a1B2", "c2VjcmV0", "51Habcdef", "hunter2", "abc.def"]) assert.notInclude(each, hidden)
    }
  })
)

const within = (sampled: boolean) =>
  Effect.withParentSpan(Effect.logInfo("Here"), Tracer.externalSpan({ traceId: "t", spanId: "s", sampled }))

it.effect("a line of a sampled trace has its ids, and one of another has none", () =>
  Effect.gen(function* () {
    const lines = [...(yield* line(within(true))), ...(yield* line(within(false)))]
    assert.deepStrictEqual(
      lines.map((each) => [parse(each)["trace_id"], parse(each)["span_id"]]),
      [
        ["t", "s"],
        [undefined, undefined]
      ]
    )
  })
)

const dying = layerDemoBut(["charges"], {
  search: () => Effect.die(new Error(`a bug with ${key}`)),
  get: () => Effect.die("a bug")
})

const hidden = `pda_live_${"a1B2".repeat(9)}zz`
const everywhere: ReadonlyArray<Sent> = [
  {},
  { path: "/api/v3/clinics/search" },
  { headers: { authorization: `Bearer ${hidden}` } },
  { headers: { authorization: hidden } },
  { path: `/${hidden}?key=${hidden}` },
  { headers: { "user-agent": hidden, "x-request-id": hidden, authorization: `Bearer ${hidden}` } },
  { path: "/api/v1/invoice-deletions", headers: { "x-organization-id": hidden, "idempotency-key": hidden } }
]

for (const format of ["json", "logfmt", "pretty"] as const) {
  const log = logged({ format, level: "All" })
  layer(InProcess.layer(dying).pipe(Layer.provide(log.layer)))(`the ${format} log`, (test) => {
    test.effect("has no key, wherever a client puts it", () =>
      Effect.gen(function* () {
        yield* Effect.forEach(everywhere, send, { discard: true })
        const text = log.lines.join("")
        assert.isAtLeast(log.lines.length, everywhere.length)
        assert.include(text, "a bug with pda_demo_")
        for (const each of [key, hidden, "a1B2a1B2"]) assert.notInclude(text, each)
      })
    )
  })
}
