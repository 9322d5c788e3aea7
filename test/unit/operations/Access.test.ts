/** Access to the operators' pages, and to the changes there. */
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Layer, Option, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { link } from "../../../src/http/Html.ts"
import { Token } from "../../../src/operations/Access.ts"
import { ask, type Asked, basic, type Configured, figures, listener, processOf, store, taskOf, token } from "./fakes.ts"

const now = Effect.runSync(Clock.currentTimeMillis)

const dead = taskOf("org_oakridge", "delivery-1", "dead", now)
const replay = link("/ops/task/replay", { organization: dead.organization_id, id: dead.id })
const services = Layer.merge(figures(Effect.succeed(processOf(now))), store({ tasks: [dead] }))

const here: Configured = { token }
const remote: Configured = { host: "0.0.0.0", token }

const site = (name: string, others: Readonly<Record<string, string>> = {}): Asked => ({
  headers: { "sec-fetch-site": name, ...others }
})
const followed = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" }
const host = (name: string): Asked => ({ headers: { host: name } })
const form = { name: "alice", token }
// A proxy passes on the origin of the page, and sends a host that this listener takes.
const proxied = { host: "localhost", origin: "https://ops.example" }
const from = (origin: string): Asked => ({ form, headers: { origin } })
const post = (headers: Readonly<Record<string, string>>): Asked => ({ method: "POST", headers })
const signed = (password: string): Asked => ({ headers: basic("alice", password) })

const own = ["localhost", "localhost:1", "127.0.0.1:9464", "127.3.2.1", "[::1]:9464", "LOCALHOST:9464"]
const foreign = ["evil.example", "localhost.evil.example:9464", "127.0.0.1.evil.example", "10.0.0.1", "", "[::2]:1"]

type Case = readonly [request: string, Configured, path: string, Asked, status: number]

const cases: ReadonlyArray<Case> = [
  ...own.map((name): Case => [`the host ${name}`, here, "/ops", host(name), 200]),
  ...[...foreign, "a:b:c"].map((name): Case => [`the host "${name}"`, here, "/ops", host(name), 421]),
  ["metrics, other host", here, "/metrics", host("evil"), 421],
  ["a page of another site", here, "/ops", site("cross-site"), 403],
  ["a page on another port", here, "/ops", site("same-site"), 403],
  ["a link on another site", here, "/ops", site("cross-site", followed), 200],
  ["a frame of another site", here, "/ops", site("cross-site", { ...followed, "sec-fetch-dest": "iframe" }), 403],
  ["a page of its own", here, "/ops", site("same-origin"), 200],
  ["an address that was typed", here, "/ops", site("none", followed), 200],
  ["a form of its own", here, replay, from("http://localhost:9464"), 303],
  ["a form of another site", here, replay, from("http://evil.example"), 403],
  ["a form on another port", here, replay, from("http://localhost:3000"), 403],
  ["a form of a page without an origin", here, replay, from("null"), 403],
  ["a form of its own behind a proxy", here, replay, { form, ...site("same-origin", proxied) }, 303],
  ["a form of another site behind a proxy", here, replay, { form, ...site("cross-site", proxied) }, 403],
  ["a form of a sibling site behind a proxy", here, replay, { form, ...site("same-site", proxied) }, 403],
  ["a form behind a proxy without HTTPS", here, replay, { form, headers: proxied }, 403],
  ["a form that another site sends", here, replay, { form, ...site("cross-site", followed) }, 403],
  ["a read where no token is set", { token: undefined }, "/ops", {}, 200],
  ["a change where no token is set", { token: undefined }, replay, { form }, 403],
  ["another machine", remote, "/ops", {}, 401],
  ["another machine with the token", remote, "/ops", signed(token), 200],
  ["another machine with a wrong token", remote, "/ops", signed("nope"), 401],
  ["another machine, stylesheet", remote, "/ops/style.css", {}, 401],
  ["another machine, unknown path", remote, "//ops", {}, 401],
  ["another machine, metrics", remote, "/metrics", {}, 200],
  ["another machine, health", remote, "/health", {}, 200],
  ["another machine where no token is set", { host: "0.0.0.0", token: undefined }, "/ops", signed(""), 403],
  ["a change with HTTP Basic", remote, replay, post(basic("alice", token)), 303],
  ["a change of another site", remote, replay, post({ ...basic("alice", token), origin: "http://evil.example" }), 403]
]

it.live.each(cases)("access to the operators' pages: %s", ([, configured, path, asked, status]) =>
  Effect.gen(function* () {
    const answer = yield* ask(path, asked)
    assert.strictEqual(answer.status, status, answer.text)
    assert.strictEqual(answer.headers.get("x-content-type-options"), "nosniff")
    assert.notInclude(answer.text, token)
    if (status === 401) assert.match(answer.headers.get("www-authenticate") ?? "", /^Basic/)
  }).pipe(Effect.provide(listener(services, configured)))
)

/** The status of a refusal. */
const refused = (text: string) =>
  Effect.map(Effect.flip(Token.use(({ check }) => check(Redacted.make(text)))), ({ status }) => status)

it.effect("ten wrong tokens in a minute are 401, the next ones are 429, and the right one passes", () =>
  Effect.gen(function* () {
    for (let index = 0; index < 10; index++) assert.strictEqual(yield* refused(`wrong ${index}`), 401)
    yield* TestClock.adjust("59 seconds")
    assert.strictEqual(yield* refused("wrong"), 429)
    yield* Token.use(({ check }) => check(Redacted.make(token)))
    yield* TestClock.adjust("1 second")
    assert.strictEqual(yield* refused("wrong"), 401)
  }).pipe(Effect.provide(Token.layer(Option.some(Redacted.make(token)))))
)
