/** Signed deliveries, with the library of Standard Webhooks as the sender. */
import { assert, it as test, layer } from "@effect/vitest"
import { DateTime, Effect, Layer, Logger, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { Webhook } from "standardwebhooks"
import type { Delivery } from "../../../src/deletions/Delivery.ts"
import { IntakeSecrets, SignaturesRequired } from "../../../src/intake/Signatures.ts"
import { Scheduler, SchedulerUnavailable } from "../../../src/deletions/Scheduler.ts"
import { start } from "../../support/deletions/tasks.ts"
import { deliver, deletions, layerIntake, layerMemory, newKey } from "../../support/deletions/intake.ts"

const secretOf = (text: string) => `whsec_${Buffer.from(text.padEnd(24, ".")).toString("base64")}`

const secret = secretOf("current")
const previous = secretOf("previous")
const another = secretOf("of another organization")
const malformedSecret = "no base64 §"
const bytes = Buffer.from(malformedSecret, "base64")

const secrets = IntakeSecrets.layerMemory({
  org_a: [Redacted.make(secret), Redacted.make(previous)],
  org_b: [Redacted.make(another)],
  org_broken: [Redacted.make(malformedSecret), Redacted.make(secret)],
  org_malformed: [Redacted.make(malformedSecret)],
  org_empty: [Redacted.make("whsec_")],
  org_revoked: []
})

const json = JSON.stringify(deletions)

/** How a sender signs: what differs from a good signature. */
interface Signing {
  readonly with?: ReadonlyArray<string | Buffer>
  readonly organization?: string
  readonly at?: number
  readonly id?: string
  /** What is signed, where it is not what is sent. */
  readonly body?: string
  /** What is put before or after the signatures. */
  readonly around?: readonly [string, string]
  readonly set?: "svix"
}

const signed = Effect.fnUntraced(function* (key: string, signing: Signing = {}) {
  const { with: secretsOf = [secret], organization = "org_a", at = 0, id = key, body = json } = signing
  const [before, after] = signing.around ?? ["", ""]
  const set = signing.set ?? "webhook"
  yield* TestClock.setTime(start)
  const time = DateTime.toDateUtc(DateTime.makeUnsafe(start + at * 1000))
  const signatures = secretsOf.map((each) =>
    new Webhook(each, typeof each === "string" ? {} : { format: "raw" }).sign(id, time, body)
  )
  return {
    "idempotency-key": key,
    "x-organization-id": organization,
    [`${set}-id`]: id,
    [`${set}-timestamp`]: String(Math.floor(time.getTime() / 1000)),
    [`${set}-signature`]: `${before}${signatures.join(" ")}${after}`
  }
})

const good: ReadonlyArray<readonly [rule: string, signing: Signing]> = [
  ["with the current secret", {}],
  ["with the secret before it, while secrets are rotated", { with: [previous] }],
  ["with an unknown secret first, and then with one of its own", { with: [another, secret] }],
  ["with a signature of another version beside it", { around: ["v2,abc v1a,xyz ", " v3,"] }],
  ["300 seconds ago", { at: -300 }],
  ["300 seconds ahead", { at: 300 }],
  ["with one of its secrets, though another of them is unusable", { organization: "org_broken" }],
  ["with the names of Svix", { set: "svix" }],
  ["with any secret, where the organization has none", { organization: "org_c" }]
]

const revoked = "all signing secrets of the organization are revoked"
const mismatch = "webhook-signature does not match"
const malformed = "webhook-signature is malformed: it has no signature of version v1"
const bad: ReadonlyArray<
  readonly [rule: string, reason: string, signing: Signing, change?: Readonly<Record<string, string | undefined>>]
> = [
  ["of the same JSON in other bytes", mismatch, { body: ` ${json}` }],
  ["301 seconds ago", "webhook-timestamp is too old: more than 300 seconds ago", { at: -301 }],
  ["301 seconds ahead", "webhook-timestamp is too new: more than 300 seconds ahead", { at: 301 }],
  ["with the secret of another organization", mismatch, { with: [another] }],
  ["with a webhook-id other than the Idempotency-Key", "webhook-id is not the Idempotency-Key", { id: "another id" }],
  ["without its id", "webhook-id is missing", {}, { "webhook-id": undefined }],
  ["without its time", "webhook-timestamp is missing", {}, { "webhook-timestamp": undefined }],
  ["without its signature", "webhook-signature is missing", {}, { "webhook-signature": undefined }],
  ["with another time than it was signed at", mismatch, {}, { "webhook-timestamp": String(start / 1000 - 1) }],
  ["with a time that is none", "webhook-timestamp is not a number", {}, { "webhook-timestamp": "now" }],
  ["with its id and key replaced", mismatch, {}, { "webhook-id": "replaced", "idempotency-key": "replaced" }],
  ["with another version", malformed, {}, { "webhook-signature": "v2,abc v1a,abc" }],
  ["without its time, by the names of Svix", "svix-timestamp is missing", { set: "svix" }, { "svix-timestamp": "" }],
  ["by the names of Svix, beside a webhook-id", "webhook-id is missing", { set: "svix" }, { "webhook-id": "" }],
  ["with an empty signature", malformed, {}, { "webhook-signature": "v1 v1," }],
  ["with a signature that is none", mismatch, {}, { "webhook-signature": "v1,\u00e9" }],
  ["though its secrets are revoked", revoked, { organization: "org_revoked" }],
  ["with the bytes of a malformed secret", mismatch, { organization: "org_malformed", with: [bytes] }],
  // A MAC pads its key with zeros.
  ["with an empty secret", mismatch, { organization: "org_empty", with: [Buffer.alloc(1)] }]
]

const deliveries: Array<Delivery> = []

/** Shows what is scheduled. */
const recording = Layer.effect(
  Scheduler,
  Effect.map(Scheduler, (scheduler) => ({
    ...scheduler,
    schedule: (delivery: Delivery) => Effect.suspend(() => (deliveries.push(delivery), scheduler.schedule(delivery)))
  }))
)

const services = Layer.provideMerge(Layer.merge(recording, secrets), layerMemory)

const lines: Array<string> = []
const logging = Logger.layer([Logger.map(Logger.formatJson, (line) => lines.push(line))])

layer(layerIntake(services).pipe(Layer.provide(logging)))(
  "where an organization has signing secrets, a delivery signed",
  (it) => {
    it.effect.each(good)("%s is accepted", ([, signing]) =>
      Effect.gen(function* () {
        const response = yield* deliver({ headers: yield* signed(newKey(), signing) })
        assert.strictEqual(response.status, 202)
      })
    )

    it.effect.each(bad)("%s is 401 because %s, which is logged, and nothing is stored", ([, reason, signing, change]) =>
      Effect.gen(function* () {
        const [before, logged] = [deliveries.length, lines.length]
        const headers = { ...(yield* signed(newKey(), signing)), ...change }
        const response = yield* deliver({ headers })
        const detail = `The delivery is not signed as required: ${reason}`
        assert.deepStrictEqual([response.status, response.json], [401, { detail }])
        assert.strictEqual(deliveries.length, before)
        const [line = "", ...others] = lines.slice(logged)
        assert.isEmpty(others)
        assert.include(line, `"reason":"${reason}"`)
        assert.include(line, `"idempotency_key":"${headers["idempotency-key"]}"`)
        assert.include(line, `"organization":"${headers["x-organization-id"]}"`)
        for (const hidden of [secret, previous, another]) assert.notInclude(line, hidden)
      })
    )

    it.effect("is verified in the bytes that were sent, after its headers and before its body", () =>
      Effect.gen(function* () {
        for (const raw of ["{", " ".repeat(100_000)]) {
          assert.strictEqual((yield* deliver({ raw, headers: yield* signed(newKey()) })).status, 401)
          const taken = yield* deliver({ raw, headers: yield* signed(newKey(), { body: raw }) })
          assert.strictEqual(taken.status, 422)
        }
        const noKey = { ...(yield* signed(newKey())), "idempotency-key": undefined }
        assert.strictEqual((yield* deliver({ headers: noKey })).status, 422)
      })
    )
  }
)

const noSecrets = Layer.succeed(
  IntakeSecrets,
  IntakeSecrets.of({ of: () => Effect.fail(new SchedulerUnavailable({ message: "The store is down" })) })
)

const unsigned = "The delivery is not signed as required: the organization has no signing secret"

const required = Layer.provide(layerIntake(services), Layer.succeed(SignaturesRequired, true))

test.effect.each([
  ["signatures are required of all, and an organization has no secret", required, 401, { detail: unsigned }],
  ["the secrets cannot be read", layerIntake(Layer.merge(services, noSecrets)), 503, { status: "error" }]
] as const)("where %s, a delivery is not stored, signed or not", ([, server, status, body]) =>
  Effect.gen(function* () {
    const before = deliveries.length
    for (const headers of [{}, yield* signed(newKey()), yield* signed(newKey(), { with: [another] })]) {
      const response = yield* deliver({ headers: { ...headers, "x-organization-id": "org_c" } })
      assert.strictEqual(response.status, status)
      assert.deepInclude(response.json, body)
      if (status === 503) assert.isDefined(response.headers["retry-after"])
    }
    assert.strictEqual(deliveries.length, before)
  }).pipe(Effect.provide(server))
)
