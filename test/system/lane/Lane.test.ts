/**
 * The lane answers as the router does: the service runs twice over one database, with and without the lane, and gets the
 * same bytes on the same connections. The responses, the access log and the metrics must not tell which is which.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { keyHashOf } from "../../support/keys.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { live, long, tries } from "../../support/tries.ts"
import { agree, counts, each, exchange, logged, type Sent, TwoWays } from "./TwoWays.ts"
import { connection, header, odd, rebodied, requestTo, revokedKey, textOf } from "./wire.ts"

const agreeOn = (sent: Sent) => agree(exchange(sent), sent.pieces.join("|").slice(0, 3000))

const revoked = Effect.flatMap(TestDatabase, ({ sql }) => {
  const row = { organization_id: "org_oakridge", id: "revoked", name: "Test", prefix: "test", revoked_at: "2026-01-01" }
  return sql`insert into api_keys ${sql.insert({ ...row, key_hash: keyHashOf(revokedKey) })}`
})

const large = (length: number) => requestTo("/charges/search", `{"status":"${"s".repeat(length)}"}`)
const padded = rebodied((body) => body + " ".repeat(7000))(requestTo("/charges/search", '{"limit":2,"more":1}'))
const inPieces = (text: string, size: number) => text.match(new RegExp(`[^]{1,${size}}`, "g")) ?? []

layer(Layer.provideMerge(Layer.effectDiscard(revoked), TwoWays.layer), live)("The lane and the router", (it) => {
  for (const { often, options: runs } of tries({ few: 15, many: 60, size: 20 }))
    it.effect.prop(
      `respond to any requests of a connection with the same bytes${often}`,
      [connection],
      ([sent]) => Effect.asVoid(agreeOn(sent)),
      runs
    )

  it.effect.each([
    ["100 KB", [textOf(large(100_000))], "200"],
    ["100 KB in packets of 999 bytes", inPieces(textOf(large(100_000)), 999), "200"],
    ["more than 256 KiB", [textOf(large(2 ** 18))], "413"],
    ["7 KB that are not valid, in packets of 100 bytes", inPieces(textOf(padded), 100), "422"],
    [
      "valid JSON, and more in other packets",
      textOf(requestTo("/charges/search", `{}${" ".repeat(50)},`)).split(/(?=[ ,]+$)/),
      "422"
    ],
    ["7 KB after a 100", [textOf(header("expect", "100-continue")(padded))], "422"]
  ] as const)("read the same of a body of %s", ([, pieces, status]) =>
    Effect.map(agreeOn({ pieces }), (responses) =>
      assert.match(responses.find(({ head }) => !head.includes(" 100 "))?.head ?? "", new RegExp(`^HTTP/1.1 ${status}`))
    )
  )

  it.effect(
    "respond the same to each odd form of a request",
    () =>
      Effect.forEach(odd(requestTo("/charges/get", '{"id":"charge_oakridge_0001"}')), (text) =>
        agreeOn({ pieces: [text] })
      ),
    long
  )

  it.effect("write the same access log and metrics, but for what the lane handles", () =>
    Effect.gen(function* () {
      assert.isNotEmpty(yield* agree(logged))
      yield* agree(counts)
      const { lane, router } = yield* each(({ samples }) => samples)
      const handled = "practice_data_http_requests_lane_total"
      assert.isAbove(lane[handled] ?? 0, 0)
      assert.strictEqual(router[handled] ?? 0, 0)
    })
  )
})
