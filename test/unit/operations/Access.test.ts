/** Who may see the operators' pages, and who may change something there. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Layer, Option, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { link } from "../../../src/http/Html.ts"
import { isLoopback, mostWrong, Refused, Token } from "../../../src/operations/Access.ts"

import { figures, processOf, store, taskOf } from "./fakes.ts"
import { ask, type Asked, basic, type Configured, listener, token } from "./pages.ts"

const now = Effect.runSync(Clock.currentTimeMillis)

const dead = taskOf("org_oakridge", "delivery-1", "dead", now)
const replay = link("/ops/task/replay", { organization: dead.organization_id, id: dead.id })
const services = Layer.merge(figures(Effect.succeed([processOf(now)])), store({ tasks: [dead] }))

const local: Configured = { token }
const remote: Configured = { host: "0.0.0.0", token }

interface Case {
  readonly what: string
  readonly configured: Configured
  readonly path: string
  readonly asked?: Asked
  readonly status: number
}

const sites = (site: string, others: Readonly<Record<string, string>> = {}): Asked => ({
  headers: { "sec-fetch-site": site, ...others }
})
const linked = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" }
const host = (name: string): Asked => ({ headers: { host: name } })
const form = { name: "alice", token }
const from = (origin: string): Asked => ({ form, headers: { origin } })

const cases: ReadonlyArray<Case> = [
  ...["localhost", "localhost:1", "127.0.0.1:9464", "127.3.2.1", "[::1]:9464", "LOCALHOST:9464"].map((name) => ({
    what: `by the name ${name}`,
    configured: local,
    path: "/ops",
    asked: host(name),
    status: 200
  })),
  ...["evil.example", "localhost.evil.example:9464", "127.0.0.1.evil.example", "10.0.0.1", "", "[::2]:1", "a:b:c"].map(
    (name) => ({
      what: `by the name "${name}"`,
      configured: local,
      path: "/ops",
      asked: host(name),
      status: 421
    })
  ),
  ...["/metrics", "/health", "/ops/task"].map((path) => ({
    what: `${path} by another name`,
    configured: local,
    path,
    asked: host("evil.example"),
    status: 421
  })),
  { what: "a page of another site", configured: local, path: "/ops", asked: sites("cross-site"), status: 403 },
  { what: "a page on another port", configured: local, path: "/ops", asked: sites("same-site"), status: 403 },
  { what: "a link on another site", configured: local, path: "/ops", asked: sites("cross-site", linked), status: 200 },
  {
    what: "a frame of another site",
    configured: local,
    path: "/ops",
    asked: sites("cross-site", { ...linked, "sec-fetch-dest": "iframe" }),
    status: 403
  },
  { what: "a page of its own", configured: local, path: "/ops", asked: sites("same-origin"), status: 200 },
  { what: "an address that was typed", configured: local, path: "/ops", asked: sites("none", linked), status: 200 },
  { what: "a form of its own", configured: local, path: replay, asked: from("http://localhost:9464"), status: 303 },
  { what: "a form elsewhere", configured: local, path: replay, asked: from("http://evil.example"), status: 403 },
  {
    what: "a form on another port",
    configured: local,
    path: replay,
    asked: from("http://localhost:3000"),
    status: 403
  },
  { what: "a form of no origin", configured: local, path: replay, asked: from("null"), status: 403 },
  {
    what: "a form that another site sends",
    configured: local,
    path: replay,
    asked: { form, headers: { "sec-fetch-site": "cross-site", ...linked } },
    status: 403
  },
  { what: "reading without a token", configured: { token: undefined }, path: "/ops", status: 200 },
  { what: "changing without a token", configured: { token: undefined }, path: replay, asked: { form }, status: 403 },
  { what: "another machine, nameless", configured: remote, path: "/ops", status: 401 },
  {
    what: "another machine, with the token",
    configured: remote,
    path: "/ops",
    asked: { headers: basic("a", token) },
    status: 200
  },
  {
    what: "another machine, wrong",
    configured: remote,
    path: "/ops",
    asked: { headers: basic("a", "nope") },
    status: 401
  },
  {
    what: "another machine, damaged",
    configured: remote,
    path: "/ops",
    asked: { headers: { authorization: "Basic ???" } },
    status: 401
  },
  { what: "the style, nameless", configured: remote, path: "/ops/style.css", status: 401 },
  { what: "what is not there, nameless", configured: remote, path: "//ops", status: 401 },
  { what: "metrics from another machine", configured: remote, path: "/metrics", status: 200 },
  { what: "health from another machine", configured: remote, path: "/health", status: 200 },
  {
    what: "another machine, where there is no token",
    configured: { host: "0.0.0.0", token: undefined },
    path: "/ops",
    asked: { headers: basic("a", "") },
    status: 403
  },
  {
    what: "a change by HTTP Basic alone",
    configured: remote,
    path: replay,
    asked: { method: "POST", headers: basic("alice", token) },
    status: 303
  },
  {
    what: "a change by the browser's own HTTP Basic, for another site",
    configured: remote,
    path: replay,
    asked: { method: "POST", headers: { ...basic("alice", token), origin: "http://evil.example" } },
    status: 403
  }
]

describe("Who may see the operators' pages", () => {
  it.live.each(cases)("$what: $status", ({ asked, configured, path, status }) =>
    Effect.gen(function* () {
      const answer = yield* ask(path, asked)
      assert.strictEqual(answer.status, status, answer.text)
      assert.strictEqual(answer.headers.get("x-content-type-options"), "nosniff")
      assert.notInclude(answer.text, token)
      if (status === 401) assert.match(answer.headers.get("www-authenticate") ?? "Basic", /^Basic/)
    }).pipe(Effect.provide(listener(services, configured)))
  )

  it("takes this machine's own addresses alone for loopback", () => {
    for (const own of ["127.0.0.1", "127.1.2.3", "::1", "localhost"]) assert.isTrue(isLoopback(own), own)
    for (const other of ["0.0.0.0", "::", "10.0.0.1", "localhost.example", "127.0.0.1.example", ""]) {
      assert.isFalse(isLoopback(other), other)
    }
  })
})

const tokens = Token.layer(Option.some(Redacted.make(token)))

const tryToken = (text: string, address: string) =>
  Effect.flatMap(Token, ({ check }) => Effect.result(check(Redacted.make(text), address)))

describe("The operators' token", () => {
  it.effect("opens at any time, however many wrong ones came from its address or from others", () =>
    Effect.gen(function* () {
      const others = Array.from({ length: 1200 }, (_, index) => `2001:db8::${index}`)
      const often = Array.from({ length: mostWrong + 1 }, () => ["2001:db8::0", "10.0.0.1"])
      yield* Effect.forEach([...others, ...often.flat()], (address) => tryToken("wrong", address))
      for (const address of ["2001:db8::0", "10.0.0.1", "10.0.0.2"]) {
        assert.strictEqual((yield* tryToken(token, address))._tag, "Success")
      }
    }).pipe(Effect.provide(tokens))
  )

  it.effect("is told by its refusal to wait for a minute, where it is wrong once more than an address may be", () =>
    Effect.gen(function* () {
      for (let index = 0; index < mostWrong; index++) {
        assert.deepInclude(yield* tryToken(`wrong ${index}`, "10.0.0.1"), { failure: Refused.Wrong() })
      }
      yield* TestClock.adjust("20 seconds")
      const refused = yield* tryToken("wrong", "10.0.0.1")
      assert.deepInclude(refused, { failure: Refused.TooMany({ retryAfter: 40 }) })
      assert.deepInclude(yield* tryToken("wrong", "10.0.0.2"), { failure: Refused.Wrong() })
      yield* TestClock.adjust("40 seconds")
      assert.deepInclude(yield* tryToken("wrong", "10.0.0.1"), { failure: Refused.Wrong() })
    }).pipe(Effect.provide(tokens))
  )

  it.effect("is counted for a thousand addresses, where it is wrong, and for all others together", () =>
    Effect.gen(function* () {
      const all = Array.from({ length: 1200 }, (_, index) => `2001:db8::${index}`)
      const tried = yield* Effect.forEach(all, (address) => tryToken("wrong", address))
      assert.strictEqual(tried.filter((one) => one._tag === "Failure" && one.failure._tag === "Wrong").length, 1010)
    }).pipe(Effect.provide(tokens))
  )
})
