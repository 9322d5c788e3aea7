/** What a line of the log looks like, and what never is in one. */
import { assert, it, layer, test } from "@effect/vitest"
import { Cause, Effect, Layer, Tracer } from "effect"
import * as Logging from "../../../src/observability/Logging.ts"
import { InProcess, key, layerDemoBut, send, type Sent } from "../../support/inProcess.ts"
import { logged, parse } from "./logged.ts"

const line = (effect: Effect.Effect<void>, format: Logging.Options["format"] = "json") =>
  Effect.suspend(() => {
    const { layer: log, lines } = logged({ format, level: "All" })
    return Effect.as(Effect.provide(effect, log), lines)
  })

it.effect("a line is one flat object without secrets, with what follows its message as a detail", () =>
  Effect.gen(function* () {
    const lines = yield* line(
      Effect.annotateLogs(Effect.logWarning("Bearer a failed", "basic b", 3), {
        task_id: "bearer c",
        attempt: 2,
        is_last: true,
        of: ["b"]
      })
    )
    assert.lengthOf(lines, 1)
    assert.deepStrictEqual(parse(lines[0] ?? ""), {
      time: "1970-01-01T00:00:00.000Z",
      level: "WARN",
      message: "Bearer … failed",
      detail: "basic … 3",
      task_id: "bearer …",
      attempt: 2,
      is_last: true,
      of: "[ 'b' ]"
    })
    assert.deepStrictEqual(yield* line(Effect.annotateLogs(Effect.logInfo("It is back"), { away_ms: 5 }), "logfmt"), [
      `time=1970-01-01T00:00:00.000Z level=INFO message="It is back" away_ms=5\n`
    ])
  })
)

/** Texts with a secret, and what stays of them. */
const secrets = [
  [`pda_live_${"a1B2".repeat(9)}zz`, "pda_live_a1B2…"],
  ["pda_demo_0123456789", "pda_demo_…"],
  ["whsec_c2VjcmV0c2VjcmV0", "whsec_…"],
  ["sk_live_51Habcdef", "sk_live_…"],
  ["rk_test_51Habcdef", "rk_test_…"],
  ["postgres://user:hunter2@host/db", "postgres://…@host/db"],
  ["authorization: Bearer abc.def-ghi", "authorization: Bearer …"],
  ["BASIC dXNlcjpodW50ZXIy is wrong", "BASIC … is wrong"]
] as const

test.each(secrets)("of %s only %s stays in a text", (text, left) => {
  assert.strictEqual(Logging.withoutSecrets(`It failed: ${text}, ${text}`), `It failed: ${left}, ${left}`)
})

test("a text is shown up to 2,000 characters, or another bound, with its length", () => {
  assert.strictEqual(Logging.safe("x".repeat(2000)), "x".repeat(2000))
  assert.strictEqual(Logging.safe("x".repeat(2001)), `${"x".repeat(2000)}… (2001 characters)`)
  assert.strictEqual(Logging.safe("x".repeat(10), 4), "xxxx… (10 characters)")
})

it.effect("a line for people has a cause below it, without secrets, and no command to the terminal", () =>
  Effect.gen(function* () {
    const error = new Error("\u001b[31m Bearer secret")
    error.stack = `${error.message}\n    at a place`
    const lines = yield* line(
      Effect.annotateLogs(Effect.logError("It failed", Cause.die(error)), "attempt", 2),
      "pretty"
    )
    assert.deepStrictEqual(lines, [
      "[00:00:00.000] ERROR It failed attempt=2\nError: \\u001b[31m Bearer …\n    at a place\n"
    ])
  })
)

const within = (sampled: boolean) =>
  Effect.withParentSpan(Effect.logInfo("Here"), Tracer.externalSpan({ traceId: "t", spanId: "s", sampled }))

it.effect("a line of a sampled trace has its ids, and one of another has none", () =>
  Effect.gen(function* () {
    const [sampled = "", other = ""] = [...(yield* line(within(true))), ...(yield* line(within(false)))]
    assert.deepInclude(parse(sampled), { trace_id: "t", span_id: "s" })
    assert.doesNotHaveAnyKeys(parse(other), ["trace_id", "span_id"])
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
  layer(InProcess.layer(dying).pipe(Layer.provide(log.layer)))(`the ${format} log`, (suite) => {
    suite.effect("has no key, wherever a client puts it", () =>
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
