/** Access to the operators' pages. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ask, listener, processOf, unreachable } from "./pageFixture.ts"

const services = Layer.merge(processOf(), unreachable)

const own = ["localhost", "127.0.0.1:9464", "[::1]:9464"]
const foreign = ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", ""]

type Case = readonly [request: string, path: string, host: string, address: string | undefined, status: number]

it.live.each([
  ...own.map((host): Case => [`the host ${host}`, "/ops", host, "127.0.0.1", 200]),
  ...foreign.map((host): Case => [`the host "${host}"`, "/ops", host, "127.0.0.1", 403]),
  ["an address of IPv6", "/ops", "localhost", "::1", 200],
  ["a mapped address", "/ops", "localhost", "::ffff:127.0.0.1", 200],
  ["another machine", "/ops", "localhost", "10.0.0.7", 403],
  ["another machine, metrics", "/metrics", "10.0.0.1:9464", "10.0.0.7", 200]
] satisfies ReadonlyArray<Case>)(
  "the operators' pages are for this machine alone: %s",
  ([, path, host, address, status]) =>
    Effect.gen(function* () {
      const answer = yield* ask(path, { headers: { host }, address })
      assert.strictEqual(answer.status, status, answer.text)
      assert.strictEqual(answer.headers.get("x-content-type-options"), "nosniff")
    }).pipe(Effect.provide(listener(services)))
)
