/**
 * Where haproxy sends a request, and what a server sees of it: by what the maps say, and as the service would read it.
 *
 * @module-tag long
 */
import { createServer } from "node:http"
import { writeFileSync } from "node:fs"
import { hash } from "node:crypto"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as Haproxy from "../../../scripts/scale/maps/Haproxy.ts"
import { hashOf } from "../../../scripts/scale/maps/Owners.ts"
import * as MapsNode from "@effect/platform-node/NodeServices"
import { type Ports, isInstalled, named, send, servers, start } from "./haproxy.ts"

const Seen = Schema.Struct({ server: Schema.String, headers: Schema.Record(Schema.String, Schema.String) })

const decode = Schema.decodeEffect(Schema.fromJsonString(Seen))

/** A server that is ready, and answers with what it sees. */
const echo = (server: string) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const listening = createServer((request, response) => {
        request.resume().once("end", () => response.end(JSON.stringify({ server, headers: request.headers })))
      })
      listening.listen(0, "127.0.0.1", () => resume(Effect.succeed(listening)))
    }),
    (listening) =>
      Effect.sync(() => {
        listening.close()
        listening.closeAllConnections()
      })
  )

const portOf = (listening: ReturnType<typeof createServer>) => {
  const address = listening.address()
  return address !== null && typeof address === "object" ? address.port : 0
}

const keyHash = (key: string) => hash("sha256", key, "hex").toUpperCase()

const started = Effect.gen(function* () {
  const ports: Ports = {
    [servers[0]]: portOf(yield* echo("group_a")),
    [servers[1]]: portOf(yield* echo("group_a")),
    [servers[2]]: portOf(yield* echo("group_b")),
    [servers[3]]: portOf(yield* echo("group_b"))
  }
  const haproxy = yield* start(ports)
  const maps = ["keys", "organizations"].map((name) => join(haproxy.maps, `${name}.map`))
  const [keys = "", organizations = ""] = maps
  writeFileSync(keys, `${keyHash("key_a")} group_a\n${keyHash("key_b")} group_b\n`)
  writeFileSync(
    organizations,
    ["org_b", "org b, and one", "org_é"].map((id) => `${hashOf(id)} group_b\n`).join("") + `${hashOf("org_m")} moving\n`
  )
  yield* Haproxy.replace(haproxy.socket, maps)
  const seen = (path: string, headers: ReadonlyArray<readonly [string, string]>) =>
    Effect.flatMap(send(haproxy.port, { path, headers }), ({ body }) => decode(body))
  return { ...haproxy, seen }
})

const data = "/api/v3/charges/search"
const intake = "/api/v1/invoice-deletions"

/** The headers of a request, and the group that it goes to: that of the service's own reading, or any that refuses it. */
const cases: ReadonlyArray<readonly [path: string, headers: ReadonlyArray<readonly [string, string]>, group: string]> =
  [
    [data, [["Authorization", "Bearer key_b"]], "group_b"],
    [data, [["authorization", "bearer key_b"]], "group_b"],
    [data, [["AUTHORIZATION", "BEARER    key_b  "]], "group_b"],
    [data, [["Authorization", "  Bearer key_b"]], "group_b"],
    [
      data,
      [
        ["Authorization", "Bearer key_b"],
        ["Authorization", "Bearer key_a"]
      ],
      "group_b"
    ],
    [
      data,
      [
        ["Authorization", "Bearer key_a"],
        ["Authorization", "Bearer key_b"]
      ],
      "group_a"
    ],
    [data, [["Authorization", "Bearer key_b, Bearer key_a"]], "group_a"],
    [data, [["Authorization", "Bearer key_B"]], "group_a"],
    [data, [["Authorization", "Bearer"]], "group_a"],
    [data, [["Authorization", ""]], "group_a"],
    [data, [["Authorization", "Bearer key_of_nobody"]], "group_a"],
    [data, [["X-Organization-Id", "org_b"]], "group_a"],
    [data, [], "group_a"],
    [`${data}?key_b`, [["Authorization", "Bearer key_b"]], "group_b"],
    ["/api/v1/health", [["Authorization", "Bearer key_b"]], "group_a"],
    [intake, [["X-Organization-Id", "org_b"]], "group_b"],
    [intake, [["x-organization-id", "  org_b  "]], "group_b"],
    [intake, [["X-Organization-Id", "org b, and one"]], "group_b"],
    [intake, [["X-Organization-Id", "org_é"]], "group_b"],
    [intake, [["X-Organization-Id", "ORG_B"]], "group_a"],
    [intake, [["X-Organization-Id", "org_of_nobody"]], "group_a"],
    [intake, [["X-Organization-Id", ""]], "group_a"],
    [intake, [["Authorization", "Bearer key_b"]], "group_a"],
    [intake, [], "group_a"]
  ]

describe.runIf(isInstalled)(named("haproxy"), () => {
  it.live("finds the group of a key and of an organization as the service would read them", () =>
    Effect.gen(function* () {
      const { seen } = yield* started
      const found = yield* Effect.forEach(cases, ([path, headers]) => Effect.map(seen(path, headers), (s) => s.server))
      assert.deepStrictEqual(
        cases.map(([path, headers], index) => [path, headers, found[index]]),
        cases.map(([path, headers, group]) => [path, headers, group])
      )
    }).pipe(Effect.provide(MapsNode.layer))
  )

  it.live("passes the request's id and the client's address on, and believes no other address", () =>
    Effect.gen(function* () {
      const { seen, log } = yield* started
      const given = yield* seen(data, [
        ["X-Request-Id", "request-of-the-caller"],
        ["X-Forwarded-For", "192.0.2.1"],
        ["x-forwarded-for", "192.0.2.2"]
      ])
      assert.strictEqual(given.headers["x-request-id"], "request-of-the-caller")
      assert.strictEqual(given.headers["x-forwarded-for"], "127.0.0.1")
      const made = yield* seen(data, [])
      assert.match(made.headers["x-request-id"] ?? "", /^[0-9a-f-]{36}$/)
      assert.include(log(), "{request-of-the-caller}")
    }).pipe(Effect.provide(MapsNode.layer))
  )

  it.live("asks the senders of deliveries to try again while their organization is being moved", () =>
    Effect.gen(function* () {
      const { port } = yield* started
      const { body, headers, status } = yield* send(port, { path: intake, headers: [["X-Organization-Id", "org_m"]] })
      assert.deepStrictEqual(
        [status, headers["retry-after"], body],
        [503, "5", `{"detail":"The organization is being moved. Please try again."}`]
      )
    }).pipe(Effect.provide(MapsNode.layer))
  )
})
