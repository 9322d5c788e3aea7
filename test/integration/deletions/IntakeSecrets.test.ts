/** Making, listing and revoking the signing secrets of the intake. */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer, Option, Redacted } from "effect"
import { Webhook } from "standardwebhooks"
import { create, generate, IntakeSecrets, list, revoke } from "../../../src/deletions/IntakeSecrets.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const services = IntakeSecrets.layer.pipe(Layer.provideMerge(TestDatabase.layerDatabases))

const epoch = DateTime.makeUnsafe(0)

/** The secrets that a delivery of an organization may be signed with, the newest first. */
const accepted = (organization: string) =>
  Effect.flatMap(IntakeSecrets, (secrets) =>
    Effect.map(secrets.of(organization), (found) => found.map((secret) => Redacted.value(secret)))
  )

layer(services, { excludeTestServices: true })("an operator", (it) => {
  it.effect("makes secrets of whsec_ and the base64 of 24 random bytes, which Standard Webhooks signs with", () =>
    Effect.gen(function* () {
      const secrets = yield* Effect.replicateEffect(generate, 100)
      const texts = secrets.map((secret) => Redacted.value(secret))
      for (const text of texts) {
        assert.match(text, /^whsec_[A-Za-z0-9+/]{32}$/)
        assert.match(new Webhook(text).sign("id", DateTime.toDate(epoch), "{}"), /^v1,/)
      }
      assert.strictEqual(new Set(texts).size, texts.length)
    })
  )

  it.effect("makes a secret that its organization alone may sign with at once, until it is revoked", () =>
    Effect.gen(function* () {
      const { id, secret } = yield* create("org_signing")
      assert.deepStrictEqual(yield* accepted("org_signing"), [Redacted.value(secret)])
      assert.deepStrictEqual(yield* accepted("org_other"), [])
      assert.deepStrictEqual(yield* revoke(id), Option.some({ organization: "org_signing", left: 0 }))
      assert.deepStrictEqual(yield* accepted("org_signing"), [])
    })
  )

  it.effect("takes two secrets at once, for a rotation, and says how many are left when the old one is revoked", () =>
    Effect.gen(function* () {
      const old = yield* create("org_rotating")
      const next = yield* create("org_rotating")
      assert.sameMembers(
        yield* accepted("org_rotating"),
        [old, next].map(({ secret }) => Redacted.value(secret))
      )
      assert.deepStrictEqual(yield* revoke(old.id), Option.some({ organization: "org_rotating", left: 1 }))
      assert.deepStrictEqual(yield* accepted("org_rotating"), [Redacted.value(next.secret)])
    })
  )

  it.effect("revokes a secret once, and none where there is none", () =>
    Effect.gen(function* () {
      const { id } = yield* create("org_once")
      yield* revoke(id)
      const [revoked] = yield* list("org_once")
      assert.deepStrictEqual(yield* revoke(id), Option.none())
      assert.deepStrictEqual(yield* list("org_once"), revoked === undefined ? [] : [revoked])
      assert.deepStrictEqual(yield* revoke("secret_none"), Option.none())
    })
  )

  it.effect("lists the secrets of an organization, or of all, oldest first, without the secrets themselves", () =>
    Effect.gen(function* () {
      const first = yield* create("org_listed")
      const second = yield* create("org_listed")
      const other = yield* create("org_listed_too")
      yield* revoke(first.id)
      const listed = yield* list("org_listed")
      assert.deepStrictEqual(
        listed.map(({ id, revoked_at }) => [id, revoked_at === null]),
        [
          [first.id, false],
          [second.id, true]
        ]
      )
      const all = yield* list(undefined)
      assert.includeMembers(
        all.map(({ id }) => id),
        [first.id, second.id, other.id]
      )
      for (const row of all) {
        assert.hasAllKeys(row, ["organization_id", "id", "created_at", "revoked_at"])
      }
    })
  )
})
