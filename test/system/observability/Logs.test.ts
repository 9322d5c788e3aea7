/**
 * The log of the started program.
 *
 * @module-tag long
 */
import { assert, describe, it } from "@effect/vitest"
import { Array, Effect, Layer, Schema } from "effect"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Program from "../../support/Program.ts"
import * as Raw from "../../support/Raw.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const decode = Schema.decodeEffect(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))

const linesOf = (output: string) => Effect.forEach(output.split("\n").slice(0, -1), (line) => decode(line))

const started = Effect.flatMap(TestDatabase, ({ url }) =>
  Program.start({ DATABASE_URL: url, LOG_FORMAT: "json", DELETION_DELAY: "0s", BODY_TIMEOUT: "1s" })
)

const requestId = (id: string) => ({ ...Client.headersOf("oakridge"), "x-request-id": id })

describe.concurrent("The log of the program", () => {
  it.live(
    "is whole lines of JSON: one of each request under its id, and one of a run of a task, also after a stop",
    () =>
      Effect.gen(function* () {
        const program = yield* started
        const { client, stdout, url } = program
        const late = Raw.unfinished.replace("\r\n\r\n", "\r\nX-Request-Id: late\r\n\r\n")
        assert.deepStrictEqual(Raw.statusesOf(yield* Raw.exchange(url, late)), [408])
        const delivered = yield* client.call({
          path: "/api/v1/invoice-deletions",
          headers: { "content-type": "application/json", "idempotency-key": "k1", "x-organization-id": "org_oakridge" },
          body: '{"invoices":[{"invoice_id":"invoice_oakridge_0001"}]}'
        })
        assert.strictEqual(delivered.status, 202)
        yield* eventually("the line of the run", () => stdout().includes("A deletion task is completed"))
        const search = (id: string) =>
          client.call({ path: "/api/v3/charges/search", headers: requestId(id), body: '{"limit":1}' })
        const ids = Array.makeBy(200, (index) => `mine-${index}`)
        yield* Effect.forEach(ids, search, { concurrency: 8 })
        yield* Program.stop(program)

        const lines = yield* linesOf(stdout())
        assert.match(String(lines[0]?.["message"]), /^Listening on http/)
        const logged = lines.filter(({ message }) => message === "Request").map((line) => String(line["request_id"]))
        assert.sameMembers(
          logged.filter((id) => id.startsWith("mine-")),
          ids
        )
        assert.deepStrictEqual(
          lines.filter((line) => line["request_id"] === "late").map((line) => [line["status"], line["refusal"]]),
          [[408, "timeout"]]
        )
        const ofDelivery = lines.filter((line) => line["idempotency_key"] === "k1")
        assert.deepStrictEqual(
          ofDelivery.map((line) => [line["message"], line["outcome"] ?? line["result"]]),
          [
            ["Request", "scheduled"],
            ["A deletion task is completed", "completed"]
          ]
        )
        assert.strictEqual(new Set(ofDelivery.map((line) => line["task_id"])).size, 1)
      }).pipe(Effect.provide(Layer.fresh(TestDatabase.layerDemo)))
  )
})
