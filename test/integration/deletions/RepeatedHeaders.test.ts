/** Headers that come twice, which only a real server can tell from one with a comma. */
import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import * as Server from "../../../src/app/Server.ts"
import { compact } from "../../support/inProcess.ts"
import * as Raw from "../../support/Raw.ts"
import { deletions, layerMemory, path } from "../../support/deletions/intake.ts"
import { delay } from "../../support/deletions/support.ts"

const app = Server.appOf(Layer.merge(Server.intakeRoutes(delay), Server.operationsRoutes))

const served = Layer.unwrap(Effect.map(app, Server.serve)).pipe(
  Layer.provideMerge(NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port: 0 })),
  Layer.provide(layerMemory)
)

/** Delivers with each value in a header of its own. */
const deliver = Effect.fnUntraced(function* (keys: ReadonlyArray<string>, organizations: ReadonlyArray<string>) {
  const body = yield* compact(deletions)
  const { address } = yield* HttpServer.HttpServer
  const lines = [
    `POST ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json`,
    `Content-Length: ${body.length}`,
    ...keys.map((key) => `Idempotency-Key: ${key}`),
    ...organizations.map((organization) => `X-Organization-Id: ${organization}`)
  ]
  const text = yield* Raw.exchange(HttpServer.formatAddress(address), `${lines.join("\r\n")}\r\n\r\n${body}`)
  return [Raw.statusesOf(text)[0], text.split("\r\n\r\n")[1]] as const
})

const faultOf = (header: string) =>
  `{"loc":["header","${header}"],"msg":"Input should be a valid string","type":"string_type"}`

const ofKey = faultOf("idempotency-key")
const ofOrganization = faultOf("x-organization-id")

layer(served, { excludeTestServices: true })("a header that comes twice", (it) => {
  it.effect.each([
    [["other", "another"], ["org_a"], ofKey],
    [["same", "same"], ["org_a"], ofKey],
    [["first", "", "last"], ["org_a"], ofKey],
    [["key"], ["org_a", "org_b"], ofOrganization],
    [["key"], ["org_a", ""], ofOrganization],
    [["a", "b"], ["org_a", "org_b"], `${ofKey},${ofOrganization}`]
  ] as const)("is 422: keys %j, organizations %j", ([keys, organizations, faults]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* deliver(keys, organizations), [422, `{"detail":[${faults}]}`])
    })
  )

  it.effect("is not one with a comma", () =>
    Effect.gen(function* () {
      const [status, text] = yield* deliver(["other, another"], ["org_a, org_b"])
      assert.strictEqual(status, 202)
      assert.include(text, `"idempotency_key":"other, another"`)
    })
  )
})
