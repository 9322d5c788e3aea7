/** The intake over the database: its secrets, a store that hangs, and headers that come twice. */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Fiber, Layer, Option, Redacted } from "effect"
import { Webhook } from "standardwebhooks"
import { HttpRouter } from "effect/http"
import { TestClock } from "effect/testing"
import { Listener } from "../../../src/http/Listener.ts"
import { IntakeSecrets } from "../../../src/intake/Signatures.ts"
import { allowUnsigned, create, list, revoke } from "../../../src/keys/SigningSecrets.ts"
import { TaskDatabase } from "../../../src/database/Database.ts"
import { HealthChecks } from "../../../src/operations/HealthChecks.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import * as Server from "../../../src/app/Server.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { deletions, deliver, layerIntake, layerMemory, path } from "../../support/deletions/intake.ts"
import { elsewhere, openTransaction } from "../../support/deletions/sessions.ts"
import { delay, inItsOwnTime, onDatabase } from "../../support/deletions/tasks.ts"
import { eventually } from "../../support/eventually.ts"
import { compact } from "../../support/inProcess.ts"
import * as Listening from "../../support/Listening.ts"
import * as Raw from "../../support/Raw.ts"

const withSecrets = IntakeSecrets.layer.pipe(Layer.provideMerge(TestDatabase.layerDatabases))

const accepted = (organization: string) =>
  Effect.flatMap(IntakeSecrets, (secrets) =>
    Effect.map(secrets.of(organization), (found) => (typeof found === "string" ? found : found.map(Redacted.value)))
  )

layer(withSecrets, { excludeTestServices: true })("a signing secret", (it) => {
  it.effect("is whsec_ and the base64 of 24 random bytes, as Standard Webhooks takes it", () =>
    Effect.gen(function* () {
      const texts = (yield* Effect.replicateEffect(create("org_many"), 100)).map(({ secret }) => Redacted.value(secret))
      for (const text of texts) {
        assert.match(text, /^whsec_[A-Za-z0-9+/]{32}$/)
        assert.match(new Webhook(text).sign("id", DateTime.toDate(DateTime.makeUnsafe(0)), "{}"), /^v1,/)
      }
      assert.strictEqual(new Set(texts).size, texts.length)
    })
  )

  it.effect("is its organization's alone until it is revoked, once; operators see none of it", () =>
    Effect.gen(function* () {
      const old = yield* create("org_a")
      const next = yield* create("org_a")
      const [oldText, nextText] = [Redacted.value(old.secret), Redacted.value(next.secret)]
      assert.deepStrictEqual(yield* accepted("org_a"), [nextText, oldText])
      for (const other of ["org_b", "ORG_A", ""]) assert.strictEqual(yield* accepted(other), "unsigned")
      assert.deepStrictEqual(yield* revoke(old.id), Option.some({ organization: "org_a", left: 1 }))
      assert.deepStrictEqual(yield* accepted("org_a"), [nextText])
      const listed = yield* list("org_a")
      const states = listed.map(({ id, revoked_at }) => (revoked_at === null ? id : `${id} revoked`))
      assert.deepStrictEqual(states, [`${old.id} revoked`, next.id])
      for (const row of yield* list(undefined))
        assert.hasAllKeys(row, ["organization_id", "id", "created_at", "revoked_at"])
      assert.deepStrictEqual(yield* revoke(old.id), Option.none())
      assert.deepStrictEqual(yield* list("org_a"), listed)
      assert.deepStrictEqual(yield* revoke(next.id), Option.some({ organization: "org_a", left: 0 }))
      assert.deepStrictEqual(yield* revoke("secret_none"), Option.none())
    })
  )

  it.effect("that was the last one leaves its organization signed, until an operator ends that", () =>
    Effect.gen(function* () {
      const owner = "org_last"
      assert.isFalse(yield* allowUnsigned(owner))
      const [{ id: one }, { id: other }] = [yield* create(owner), yield* create(owner)]
      yield* revoke(one)
      assert.isFalse(yield* allowUnsigned(owner))
      assert.lengthOf(yield* accepted(owner), 1)
      yield* revoke(other)
      assert.deepStrictEqual(yield* accepted(owner), [])
      assert.isTrue(yield* allowUnsigned(owner))
      assert.strictEqual(yield* accepted(owner), "unsigned")
      yield* revoke((yield* create(owner)).id)
      assert.deepStrictEqual(yield* accepted(owner), [])
    })
  )

  it.effect("that changes at the same time as another never opens the intake to anyone", () =>
    Effect.gen(function* () {
      for (let round = 0; round < 20; round++) {
        const owner = `org_race_${round}`
        const { id } = yield* create(owner)
        const adding = create(owner)
        const changes = round % 2 === 0 ? [adding, revoke(id)] : [revoke(id), adding, allowUnsigned(owner)]
        yield* Effect.all(changes, { concurrency: "unbounded" })
        assert.lengthOf(yield* accepted(owner), 1)
      }
    })
  )
})

layer(TestDatabase.layerDatabases, onDatabase)("a delivery gets 503 within 2 seconds", (it) => {
  it.effect.each([
    ["the tasks cannot be written", 0],
    ["the secrets are read after 490 milliseconds, and the tasks cannot be written", 490],
    ["the secrets would be read after 900 milliseconds, and the tasks cannot be written", 900],
    ["the secrets cannot be read", 2000]
  ] as const)("when %s", ([, secretsAfter]) =>
    Effect.gen(function* () {
      const other = yield* elsewhere
      const lock = (table: string) => openTransaction(other, other`lock table ${other(table)} in access exclusive mode`)
      const [secrets, tasks] = [yield* lock("intake_secrets"), yield* lock("deletion_tasks")]
      const services = Layer.mergeAll(Scheduler.layer(delay), IntakeSecrets.layer, HealthChecks.layerMemory).pipe(
        Layer.provide(Layer.succeed(TaskDatabase, yield* TaskDatabase))
      )
      const delivering = yield* deliver().pipe(
        Effect.provide(Layer.fresh(layerIntake(services))),
        Effect.forkScoped({ startImmediately: true })
      )
      const isWaitingFor = (table: string) =>
        eventually(
          `a statement that waits for ${table}, or the response`,
          other`select 1 from pg_locks where relation = ${table}::regclass and not granted`,
          ({ length }) => length > 0 || delivering.pollUnsafe() !== undefined
        ).pipe(TestClock.withLive)

      yield* isWaitingFor("intake_secrets")
      yield* TestClock.adjust(secretsAfter)
      if (secretsAfter < 2000) {
        yield* secrets.commit
        yield* isWaitingFor("deletion_tasks")
        yield* TestClock.adjust(2000 - secretsAfter)
      }
      const response = yield* Fiber.join(delivering).pipe(Effect.timeout("20 seconds"), TestClock.withLive)
      yield* tasks.commit
      assert.strictEqual(response.status, 503)
      assert.isDefined(response.headers["retry-after"])
      assert.deepInclude(response.json, { status: "error", received_at: null })
    }).pipe(inItsOwnTime)
  )
})

const routes = Layer.mergeAll(Server.intakeRoutes(delay), Server.operationsRoutes, Server.middleware)
const app = HttpRouter.toHttpEffect(routes)

const served = Layer.provide(Listener.layer(app, Listening.options), layerMemory)

/** Delivers with each value in a header of its own. */
const deliverRaw = Effect.fnUntraced(function* (keys: ReadonlyArray<string>, organizations: ReadonlyArray<string>) {
  const body = yield* compact(deletions)
  const { url } = yield* Listener
  const lines = [
    `POST ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json`,
    `Content-Length: ${body.length}`,
    ...keys.map((key) => `Idempotency-Key: ${key}`),
    ...organizations.map((organization) => `X-Organization-Id: ${organization}`)
  ]
  const text = yield* Raw.exchange(url, `${lines.join("\r\n")}\r\n\r\n${body}`)
  return [Raw.statusesOf(text)[0], text.split("\r\n\r\n")[1]] as const
})

const faultOf = (header: string) =>
  `{"loc":["header","${header}"],"msg":"Input should be a valid string","type":"string_type"}`

const [ofKey, ofOrganization] = [faultOf("idempotency-key"), faultOf("x-organization-id")]

layer(served, { excludeTestServices: true })("a header", (it) => {
  it.effect.each([
    ["that comes twice, though the same", ["same", "same"], ["org_a"], 422, `{"detail":[${ofKey}]}`],
    ["that comes twice, as another", ["a", "b"], ["org_a", "org_b"], 422, `{"detail":[${ofKey},${ofOrganization}]}`],
    ["with a comma", ["other, another"], ["org_a, org_b"], 202, `"idempotency_key":"other, another"`]
  ] as const)("%s: keys %j, organizations %j, is %d", ([, keys, organizations, status, text]) =>
    Effect.gen(function* () {
      const [found, body] = yield* deliverRaw(keys, organizations)
      assert.strictEqual(found, status)
      assert.include(body, text)
    })
  )
})
