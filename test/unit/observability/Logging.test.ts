/** The lines of the log: their form, what never is in one, and the access log, a line for each request with what is known of it. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it as test, layer } from "@effect/vitest"
import { Cause, Effect, Exit, Layer, Option, Redacted, Schema, Scope, Tracer } from "effect"
import { makeTaskId } from "../../../src/deletions/Delivery.ts"
import { IntakeSecrets } from "../../../src/intake/Signatures.ts"
import * as Logging from "../../../src/observability/Logging.ts"
import { accessLog, describeHead, RequestObservers } from "../../../src/observability/RequestFacts.ts"
import { deletions, deliver, layerIntake, layerMemory, path } from "../../support/deletions/intake.ts"
import { InProcess, key, layerDemo, layerDemoBut, send, type Sent } from "../../support/inProcess.ts"
import { root } from "../../support/Process.ts"

// oxlint-disable-next-line effecttsgo/schema-sync -- a line that is no JSON fails the test
const parse = Schema.decodeSync(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))

const unknownKey = `pda_live_${"a1B2".repeat(9)}zz`

/** A log that keeps its lines, and everything that is to be logged. */
const logged = (options: Logging.LogOptions) => {
  const lines: Array<string> = []
  const write = (line: string) => void lines.push(line)
  const writer = Layer.succeed(Logging.LogWriter, { write, dropped: () => 0, end: () => undefined })
  const observe = Effect.map(accessLog(options), (each) => [each])
  const observers = Layer.effect(RequestObservers, observe)
  return { lines, layer: observers.pipe(Layer.provideMerge(Logging.layerNoDeps(options)), Layer.provide(writer)) }
}

const linesOf = (effect: Effect.Effect<void>, format: Logging.LogOptions["format"] = "json") =>
  Effect.suspend(() => {
    const { layer: log, lines } = logged({ format, level: "All" })
    return Effect.as(Effect.provide(effect, log), lines)
  })

test.effect("a line is one flat object without secrets, with what follows its message as a detail", () =>
  Effect.gen(function* () {
    const known = { attempt: 2, is_last: true }
    const warning = Effect.logWarning("Bearer a failed", "basic b", 3)
    const lines = yield* linesOf(Effect.annotateLogs(warning, { ...known, task_id: "bearer c", of: ["b"] }))
    assert.lengthOf(lines, 1)
    assert.deepStrictEqual(parse(lines[0] ?? ""), {
      ...known,
      time: "1970-01-01T00:00:00.000Z",
      level: "WARN",
      message: "Bearer … failed",
      detail: "basic … 3",
      task_id: "bearer …",
      of: "[ 'b' ]"
    })
    const back = yield* linesOf(Effect.annotateLogs(Effect.logInfo("It is back"), { away_ms: 5 }), "logfmt")
    assert.deepStrictEqual(back, [`time=1970-01-01T00:00:00.000Z level=INFO message="It is back" away_ms=5\n`])
  })
)

/** Texts with a secret, and what stays of them. */
const secrets = [
  [unknownKey, "pda_live_a1B2…"],
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

test.effect("a line for people has a cause below it, without secrets, and no command to the terminal", () =>
  Effect.gen(function* () {
    const error = new Error("\u001b[31m Bearer secret")
    error.stack = `${error.message}\n    at a place`
    const failed = Effect.annotateLogs(Effect.logError("It failed", Cause.die(error)), "attempt", 2)
    const line = "[00:00:00.000] ERROR It failed attempt=2\nError: \\u001b[31m Bearer …\n    at a place\n"
    assert.deepStrictEqual(yield* linesOf(failed, "pretty"), [line])
  })
)

const within = (sampled: boolean) =>
  Effect.withParentSpan(Effect.logInfo("Here"), Tracer.externalSpan({ traceId: "t", spanId: "s", sampled }))

test.effect("a line of a sampled trace has its ids, and one of another has none", () =>
  Effect.gen(function* () {
    const [sampled = "", other = ""] = [...(yield* linesOf(within(true))), ...(yield* linesOf(within(false)))]
    assert.deepInclude(parse(sampled), { trace_id: "t", span_id: "s" })
    assert.doesNotHaveAnyKeys(parse(other), ["trace_id", "span_id"])
  })
)

const dying = layerDemoBut(["charges"], {
  search: () => Effect.die(new Error(`a bug with ${key}`)),
  get: () => Effect.die("a bug")
})

const everywhere: ReadonlyArray<Sent> = [
  {},
  { path: "/api/v3/clinics/search" },
  { headers: { authorization: `Bearer ${unknownKey}` } },
  { headers: { authorization: unknownKey } },
  { path: `/${unknownKey}?key=${unknownKey}` },
  { headers: { "user-agent": unknownKey, "x-request-id": unknownKey, authorization: `Bearer ${unknownKey}` } },
  { path: "/api/v1/invoice-deletions", headers: { "x-organization-id": unknownKey, "idempotency-key": unknownKey } }
]

test.effect.each(["json", "logfmt", "pretty"] as const)(
  "the %s log has no key, wherever a client puts it",
  (format) => {
    const log = logged({ format, level: "All" })
    return Effect.gen(function* () {
      yield* Effect.forEach(everywhere, send, { discard: true })
      const text = log.lines.join("")
      assert.isAtLeast(log.lines.length, everywhere.length)
      assert.include(text, "a bug with pda_demo_")
      for (const each of [key, unknownKey, "a1B2a1B2"]) assert.notInclude(text, each)
    }).pipe(Effect.provide(InProcess.layer(dying).pipe(Layer.provide(log.layer))))
  }
)

/** The one line of a request: its length, and what else is known of this one. */
const lineOf = (lines: Array<string>, id: string) => {
  const found = lines.map((line) => parse(line)).filter((line) => line["request_id"] === id && "status" in line)
  assert.lengthOf(found, 1)
  const { bytes, level, message, ms, request_id: _, time, ...known } = found[0] ?? {}
  assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.isNumber(ms)
  assert.deepStrictEqual([level, message], ["INFO", "Request"])
  return { bytes, known }
}

const options = { format: "json", level: "Info" } as const
const demo = logged(options)

const turns = Effect.repeat(
  Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void))),
  { times: 20 }
)

let requests = 0
const lineOfRequest = Effect.fnUntraced(function* (lines: Array<string>, sent: Sent, by: typeof send = send) {
  const id = `request-${++requests}`
  const { status, text } = yield* by({ ...sent, headers: { "x-request-id": id, ...sent.headers } })
  const { bytes, known } = lineOf(lines, id)
  assert.deepStrictEqual([known["status"], bytes], [status, Buffer.byteLength(text)])
  return known
})

const search = { method: "POST", path: "/api/v3/charges/search" }
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
const whose = { organization: "org_oakridge", key: "pda_demo_" }

layer(InProcess.layer(layerDemo).pipe(Layer.provide(demo.layer)))("the line of a request to the data API", (it) => {
  it.effect.each([
    ["a page of nothing", { json: { id: "none" } }, { ...search, status: 200, ...whose, rows: 0 }],
    ["no key of ours", bearer("x".repeat(47)), { ...search, status: 401, refusal: "key" }],
    ["an unknown key", bearer(unknownKey), { ...search, status: 401, key: "pda_live_a1B2", refusal: "key" }],
    ["an unknown path", { path: "/no?a", headers: { "user-agent": "" } }, { method: "POST", path: "/no", status: 404 }],
    [
      "a body that is too large",
      { headers: { "content-length": "2000000" } },
      { ...search, status: 413, ...whose, refusal: "too_large" }
    ]
  ] satisfies ReadonlyArray<readonly [string, Sent, object]>)("has the known facts of %s", ([, sent, line]) =>
    Effect.map(lineOfRequest(demo.lines, sent), (found) => assert.deepStrictEqual<unknown>(found, line))
  )

  it.effect("has its fields in an order that does not change, and the operators' guide has each", () =>
    Effect.gen(function* () {
      yield* send({ headers: { "x-request-id": "ordered", "user-agent": "curl" } })
      const line = demo.lines.find((each) => each.includes("ordered")) ?? ""
      const fields = "time level message request_id method path status bytes ms organization key rows user_agent"
      assert.deepStrictEqual(Object.keys(parse(line)), fields.split(" "))
      const guide = readFileSync(join(root, "src/operations/README.md"), "utf8")
      for (const name of demo.lines.flatMap((each) => Object.keys(parse(each)))) assert.include(guide, `\`${name}\``)
    })
  )
})

const abandoned = logged(options)
const hanging = layerDemoBut(["charges"], { search: () => Effect.never, get: () => Effect.never })

test.effect("a request whose client leaves first has a line with 499", () =>
  Effect.gen(function* () {
    const handle = yield* InProcess
    const client = yield* Scope.make()
    const signal = yield* Scope.provide(Effect.abortSignal, client)
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json", "x-request-id": "left" }
    const init = { method: "POST", headers, body: '{"id":"any"}', signal }
    void handle(new Request("http://localhost/api/v3/charges/get", init))
    yield* turns
    yield* Scope.close(client, Exit.void)
    yield* turns
    const { bytes, known } = lineOf(abandoned.lines, "left")
    assert.deepStrictEqual([bytes, known["status"]], [0, 499])
  }).pipe(Effect.provide(InProcess.layer(hanging).pipe(Layer.provide(abandoned.layer))))
)

const taken = logged(options)
const signingSecrets = IntakeSecrets.layerMemory({ org_signed: [Redacted.make("whsec_c2VjcmV0")] })

layer(layerIntake(Layer.merge(layerMemory, signingSecrets)).pipe(Layer.provide(taken.layer)))(
  "the line of a delivery",
  (it) => {
    const lineOfDelivery = (id: string, organization: string, json: object = deletions) => {
      const headers = { "idempotency-key": id, "x-organization-id": organization }
      return lineOfRequest(taken.lines, { headers, json }, deliver)
    }

    it.effect.each([
      ["is scheduled", deletions, 202, "scheduled"],
      ["is a duplicate", deletions, 200, "duplicate"],
      ["has a used key", { invoices: [{ invoice_id: "b" }] }, 422, "key_reused"]
    ] as const)("has the outcome of one that %s", ([, json, status, outcome]) =>
      Effect.gen(function* () {
        const task = { organization: "org_a", idempotency_key: "first", task_id: makeTaskId("org_a", "first") }
        const line = yield* lineOfDelivery("first", "org_a", json)
        assert.deepStrictEqual(line, { method: "POST", path, status, ...task, outcome })
      })
    )

    it.effect("has the outcome of an unsigned one, whose reason is on another line of the same request", () =>
      Effect.gen(function* () {
        const line = yield* lineOfDelivery("whsec_c2VjcmV0", "org_signed")
        const who = { organization: "org_signed", idempotency_key: "whsec_…" }
        const outcome = { refusal: "signature", outcome: "unsigned" }
        assert.deepStrictEqual(line, { method: "POST", path, status: 401, ...who, ...outcome })
        const [refused] = taken.lines.map((each) => parse(each)).filter((each) => each["level"] === "WARN")
        assert.deepInclude(refused, { ...who, request_id: `request-${requests}`, reason: "webhook-id is missing" })
      })
    )
  }
)

/** Texts that a client can send, and what stands for them in a line for machines. */
const hostile = ['a"b\\c', 'a\r\n{"level":"FATAL"}', "a\u001b[31mb", "a\u2028b\u202eb", "a b=c", "\ud800", ""]

test.each(hostile)("a text that wants to be more than a value is one in json and in logfmt: %j", (text) => {
  const fields = { ...Logging.lineHead(0, "Info", "m"), user_agent: text }
  const line = Logging.formats.json(fields)
  // oxlint-disable-next-line no-control-regex -- what may not be in it
  assert.match(line, /^[^\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e]*\n$/)
  assert.strictEqual(parse(line)["user_agent"], text)
  const value = /^time=\S+ level=INFO message=m user_agent=(.*)\n$/.exec(Logging.formats.logfmt(fields))?.[1] ?? ""
  const decoded = Schema.decodeOption(Schema.fromJsonString(Schema.String))(value)
  if (Option.isSome(decoded)) assert.strictEqual(decoded.value, text)
  else assert.match(value, /^[^\s"=]*$/)
  assert.isTrue(Option.isSome(decoded) || value === text)
})

test("The facts of a request have no key in what a client sent, and 256 characters of it", () => {
  const head = { id: unknownKey, method: "POST", endpoint: "other", address: undefined }
  const facts = describeHead({ ...head, path: `/${unknownKey}/${"x".repeat(300)}`, userAgent: `curl ${unknownKey}` })
  assert.deepStrictEqual([facts.id, facts.userAgent], ["pda_live_a1B2…", "curl pda_live_a1B2…"])
  assert.match(facts.path, /^\/pda_live_a1B2…\/x{200,}$/)
  assert.strictEqual(describeHead({ ...head, path: "/a", userAgent: "u".repeat(3000) }).userAgent, "u".repeat(256))
})
