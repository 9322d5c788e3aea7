/** The access log: a line for each request, whatever becomes of it, with what is known of it; and the account of a request. */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Effect, Layer, Option, Redacted, Schema } from "effect"
import { TestClock } from "effect/testing"
import { taskIdOf } from "../../../src/deletions/Delivery.ts"
import { IntakeSecrets } from "../../../src/deletions/IntakeSecrets.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { SchedulerUnavailable } from "../../../src/deletions/Task.ts"
import { formats, headOf } from "../../../src/observability/Logging.ts"
import { Account, note, Note, polling } from "../../../src/observability/RequestFacts.ts"
import { deliver, layerIntake, layerMemory } from "../../support/deletions/intake.ts"
import { InProcess, key, layerDemo, layerDemoBut, send, type Sent } from "../../support/inProcess.ts"
import { logged, parse } from "./logged.ts"

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

const hanging = layerDemoBut(["charges"], { search: () => Effect.never, get: () => Effect.never })

const turns = Effect.repeat(
  Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void))),
  { times: 20 }
)

let requests = 0
const asked = Effect.fnUntraced(function* (lines: Array<string>, sent: Sent) {
  const id = `request-${++requests}`
  const { status, text } = yield* send({ ...sent, headers: { "x-request-id": id, ...sent.headers } })
  const { bytes, known } = lineOf(lines, id)
  assert.deepStrictEqual([known["status"], bytes], [status, Buffer.byteLength(text)])
  return known
})

const search = { method: "POST", path: "/api/v3/charges/search" }
const unknownKey = `pda_live_${"a1B2".repeat(9)}zz`
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
  ] satisfies ReadonlyArray<readonly [string, Sent, object]>)("says what is known of %s", ([, sent, line]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* asked(demo.lines, sent), line)
    })
  )

  it.effect("has its fields in an order that does not change", () =>
    Effect.gen(function* () {
      yield* send({ headers: { "x-request-id": "ordered", "user-agent": "curl" } })
      const line = demo.lines.find((each) => each.includes("ordered")) ?? ""
      const fields = "time level message request_id method path status bytes ms organization key rows user_agent"
      assert.deepStrictEqual(Object.keys(parse(line)), fields.split(" "))
    })
  )
})

const abandoned = logged(options)
layer(InProcess.layer(hanging).pipe(Layer.provide(abandoned.layer)))("a request without a response", (it) => {
  it.effect("says 499 where the client leaves first", () =>
    Effect.gen(function* () {
      const handle = yield* InProcess
      yield* Effect.scoped(
        Effect.gen(function* () {
          const signal = yield* Effect.abortSignal
          const headers = { authorization: `Bearer ${key}`, "content-type": "application/json", "x-request-id": "left" }
          const body = '{"id":"any"}'
          void handle(new Request("http://localhost/api/v3/charges/get", { method: "POST", headers, body, signal }))
          yield* turns
        })
      )
      yield* turns
      const { bytes, known } = lineOf(abandoned.lines, "left")
      assert.deepStrictEqual([bytes, known["status"]], [0, 499])
    })
  )
})

const taken = logged(options)
const secrets = IntakeSecrets.layerMemory({ org_signed: [Redacted.make("whsec_c2VjcmV0")] })
const broken = Layer.effect(
  Scheduler,
  Effect.map(Scheduler, (scheduler) => ({
    ...scheduler,
    schedule: (delivery: Parameters<Scheduler["Service"]["schedule"]>[0]) =>
      delivery.organization === "org_down"
        ? Effect.fail(new SchedulerUnavailable({ message: "down" }))
        : scheduler.schedule(delivery)
  }))
).pipe(Layer.provide(layerMemory))

layer(layerIntake(Layer.mergeAll(layerMemory, broken, secrets)).pipe(Layer.provide(taken.layer)))(
  "the line of a delivery",
  (it) => {
    const path = "/api/v1/invoice-deletions"
    const lineOfDelivery = Effect.fnUntraced(function* (idempotencyKey: string, organization: string, json?: unknown) {
      const id = `delivery-${++requests}`
      const headers = { "idempotency-key": idempotencyKey, "x-organization-id": organization, "x-request-id": id }
      yield* deliver({ headers, ...(json === undefined ? {} : { json }) })
      return lineOf(taken.lines, id).known
    })

    it.effect.each([
      ["is scheduled", "first", "org_a", undefined, 202, { outcome: "scheduled" }],
      ["is a duplicate", "first", "org_a", undefined, 200, { outcome: "duplicate" }],
      ["has a used key", "first", "org_a", { invoices: [{ invoice_id: "b" }] }, 422, { outcome: "key_reused" }],
      ["is not stored", "second", "org_down", undefined, 503, { outcome: "unavailable" }]
    ] as const)("says that it %s", ([, idempotency_key, organization, json, status, more]) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* lineOfDelivery(idempotency_key, organization, json), {
          method: "POST",
          path,
          status,
          organization,
          idempotency_key,
          task_id: taskIdOf(organization, idempotency_key),
          ...more
        })
      })
    )

    it.effect("says that it is not signed, which is logged with the reason on a line of the same request", () =>
      Effect.gen(function* () {
        const line = yield* lineOfDelivery("whsec_c2VjcmV0", "org_signed")
        const more = { refusal: "signature", outcome: "unsigned" }
        const who = { organization: "org_signed", idempotency_key: "whsec_…" }
        assert.deepStrictEqual(line, { method: "POST", path, status: 401, ...who, ...more })
        const [refused] = taken.lines.map((each) => parse(each)).filter((each) => each["level"] === "WARN")
        assert.deepInclude(refused, { ...who, request_id: `delivery-${requests}`, reason: "webhook-id is missing" })
      })
    )
  }
)

/** Texts that a client can send, and what stands for them in a line for machines. */
const hostile = ['a"b\\c', 'a\r\n{"level":"FATAL"}', "a\u001b[31mb", "a\u2028b\u202eb", "a b=c", "\ud800", ""]

describe("a text that wants to be more than a value", () => {
  test.each(hostile)("%j is one in json and in logfmt", (text) => {
    const fields = { ...headOf(0, "Info", "m"), user_agent: text }
    const line = formats.json(fields)
    // oxlint-disable-next-line no-control-regex -- what may not be in it
    assert.match(line, /^[^\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e]*\n$/)
    assert.strictEqual(parse(line)["user_agent"], text)
    const value = /^time=\S+ level=INFO message=m user_agent=(.*)\n$/.exec(formats.logfmt(fields))?.[1] ?? ""
    const decoded = Schema.decodeOption(Schema.fromJsonString(Schema.String))(value)
    if (Option.isSome(decoded)) assert.strictEqual(decoded.value, text)
    else assert.match(value, /^[^\s"=]*$/)
    assert.isTrue(Option.isSome(decoded) || value === text)
  })
})

const make = (path = "/a", userAgent = `curl ${unknownKey}`) =>
  new Account({ id: unknownKey, method: "POST", path, endpoint: "other", userAgent, address: undefined })

test("Times of an account add up; of any other fact the last note counts, and a note without it leaves it", () => {
  const account = make()
  account.addStatement(1, 2)
  account.addStatement(10, 20)
  account.note({ polled: 3, rows: 0, organization: "a", refusal: "load", outcome: "full" })
  account.note({ polled: 30, taskId: "t", idempotencyKey: "i", keyPrefix: "pda_live_a1B2" })
  account.note({ rows: 7, organization: "b" })
  assert.deepInclude(account, { database: 11, waited: 22, polled: 33, rows: 7, organization: "b" })
  assert.deepInclude(account, { refusal: "load", outcome: "full", taskId: "t", idempotencyKey: "i" })
  assert.deepInclude(account, { keyPrefix: "pda_live_a1B2" })
})

test("An account has no key in what a client sent, and 256 characters of it", () => {
  const { id, path, userAgent } = make(`/${unknownKey}/${"x".repeat(300)}`)
  assert.deepStrictEqual([id, userAgent], ["pda_live_a1B2…", "curl pda_live_a1B2…"])
  assert.match(path, /^\/pda_live_a1B2…\/x{200,}$/)
  assert.strictEqual(make("/a", "u".repeat(3000)).userAgent, "u".repeat(256))
})

test.effect("The time in which a client chose to wait is noted, whatever comes of it", () =>
  Effect.gen(function* () {
    const account = make()
    const waiting = polling(Effect.andThen(Effect.sleep("3 seconds"), Effect.fail("late")))
    const fiber = yield* Effect.forkChild(Effect.flip(Effect.provideService(waiting, Note, account.note)), {
      startImmediately: true
    })
    yield* TestClock.adjust("3 seconds")
    assert.isDefined(fiber.pollUnsafe())
    assert.strictEqual(account.polled, 3000)
    yield* note({ rows: 1 })
    assert.isUndefined(account.rows)
  })
)
