/** The signing secrets of organizations: of the intake, and of operators. */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer, Option, Redacted } from "effect"
import { Webhook } from "standardwebhooks"
import { create, generate, IntakeSecrets, list, revoke } from "../../../src/deletions/IntakeSecrets.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const services = IntakeSecrets.layer.pipe(Layer.provideMerge(TestDatabase.layerDatabases))

/** The valid secrets of an organization. */
const accepted = (organization: string) =>
  Effect.flatMap(IntakeSecrets, (secrets) =>
    Effect.map(secrets.of(organization), (found) => found.map((secret) => Redacted.value(secret)))
  )

layer(services, { excludeTestServices: true })("a signing secret", (it) => {
  it.effect("is whsec_ and the base64 of 24 random bytes, as Standard Webhooks takes it", () =>
    Effect.gen(function* () {
      const texts = (yield* Effect.replicateEffect(generate, 100)).map((secret) => Redacted.value(secret))
      for (const text of texts) {
        assert.match(text, /^whsec_[A-Za-z0-9+/]{32}$/)
        assert.match(new Webhook(text).sign("id", DateTime.toDate(DateTime.makeUnsafe(0)), "{}"), /^v1,/)
      }
      assert.strictEqual(new Set(texts).size, texts.length)
    })
  )

  it.effect("is its organization's alone, the newest first, until it is revoked, once; operators see none of it", () =>
    Effect.gen(function* () {
      const old = yield* create("org_a")
      const next = yield* create("org_a")
      const [oldText, nextText] = [Redacted.value(old.secret), Redacted.value(next.secret)]
      assert.deepStrictEqual(yield* accepted("org_a"), [nextText, oldText])
      for (const other of ["org_b", "ORG_A", ""]) assert.isEmpty(yield* accepted(other))
      assert.deepStrictEqual(yield* revoke(old.id), Option.some({ organization: "org_a", left: 1 }))
      assert.deepStrictEqual(yield* accepted("org_a"), [nextText])
      const listed = yield* list("org_a")
      assert.deepStrictEqual(
        listed.map(({ id, revoked_at }) => [id, revoked_at === null]),
        [
          [old.id, false],
          [next.id, true]
        ]
      )
      for (const row of yield* list(undefined)) {
        assert.hasAllKeys(row, ["organization_id", "id", "created_at", "revoked_at"])
      }
      assert.deepStrictEqual(yield* revoke(old.id), Option.none())
      assert.deepStrictEqual(yield* list("org_a"), listed)
      assert.deepStrictEqual(yield* revoke(next.id), Option.some({ organization: "org_a", left: 0 }))
      assert.isEmpty(yield* accepted("org_a"))
      assert.deepStrictEqual(yield* revoke("secret_none"), Option.none())
    })
  )
})
