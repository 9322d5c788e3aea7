/** Each error by its status, what its message says, and that neither a key nor a secret is in anything that is shown. */
import { inspect } from "node:util"
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import {
  AuthenticationError,
  BadRequestError,
  ConnectionError,
  CursorExpiredError,
  InvalidRequestError,
  InvoiceDeletions,
  NotFoundError,
  PracticeData,
  PracticeDataError,
  RateLimitError,
  ServerError,
  ServiceUnavailableError,
  UnexpectedResponseError
} from "../../../src/client/index.ts"
import { CredentialStoreDown } from "../../../src/api/Errors.ts"
import * as AuthorizationServer from "../../../src/keys/AuthorizationServer.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { InProcess, key, layerDemo, organization } from "../../http/inProcess.ts"
import { long } from "../../support/tries.ts"
import { baseUrl, broken, collect, failureOf, json, over, refused, type Step, steps } from "./support.ts"

const clientOf = (fetch: ReturnType<typeof steps>["fetch"], apiKey: string = key) =>
  new PracticeData({ baseUrl, apiKey, fetch, maxRetries: 0 })

layer(InProcess.layer(layerDemo), { excludeTestServices: true })("the service's errors", (it) => {
  it.effect("are of a class each", () =>
    over(async ({ fetch }) => {
      const client = clientOf(fetch)
      const cases = [
        [client.charges.search({ limit: 1001 }), BadRequestError, 400],
        [client.charges.get(" "), BadRequestError, 400],
        [collect(client.charges.changes("nonsense")), BadRequestError, 400],
        [collect(client.psp.charges.all({ clinic: "clinic_oakridge_02" })), BadRequestError, 400],
        [clientOf(fetch, "pda_demo_nobody").charges.search(), AuthenticationError, 401],
        [client.charges.get("nobody"), NotFoundError, 404],
        [client.charges.search({ limit: 1.5 }), InvalidRequestError, 422]
      ] as const
      for (const [work, Class, status] of cases) {
        const error = await failureOf(work)
        assert.instanceOf(error, Class)
        assert.instanceOf(error, PracticeDataError)
        assert.strictEqual(error.name, Class.name)
        assert.strictEqual(error.status, status)
        assert.match(error.requestId ?? "", /^[\da-f-]{36}$/)
        assert.match(error.message, new RegExp(`^${status} from /api/v3/.*\\(request ${error.requestId}\\)$`))
      }
    })
  )

  it.effect("say what the service said", () =>
    over(async ({ fetch }) => {
      const headers = { "x-request-id": "mine" }
      const unauthorized = await failureOf(clientOf(fetch, "pda_demo_nobody").charges.search({}, { headers }))
      assert.strictEqual(
        String(unauthorized),
        "AuthenticationError: 401 from /api/v3/charges/search: The API key is missing or invalid (request mine)"
      )
      const gone = await failureOf(clientOf(fetch).charges.get("nobody", { headers }))
      assert.strictEqual(String(gone), "NotFoundError: 404 from /api/v3/charges/get: No such record (request mine)")
      assert.deepInclude(gone, { detail: "No such record", status: 404, requestId: "mine" })
    })
  )

  it.effect("have the faults of a request, all of them, as data", () =>
    over(async ({ fetch }) => {
      // @ts-expect-error -- filters that charges do not have
      const error = await failureOf(clientOf(fetch).charges.search({ limit: 1.5, a: 1, b: 1, c: 1, d: 1 }))
      assert.instanceOf(error, InvalidRequestError)
      assert.deepStrictEqual(
        error.faults.map(({ loc, type }) => [...loc, type]),
        [["body", "limit", "int_from_float"], ...["a", "b", "c", "d"].map((name) => ["body", name, "extra_forbidden"])]
      )
      assert.match(
        error.message,
        /body.limit: Input should be a valid integer.*; body.b: Extra.*; and 2 more \(request/
      )
    })
  )
})

const limited = Layer.unwrap(
  Effect.map(Layer.build(AuthorizationServer.layerLimit(1)), (context) =>
    InProcess.layer(layerDemo).pipe(Layer.provide(Layer.succeedContext(context)))
  )
)

layer(limited)("an organization that asks too often", (it) => {
  it.effect("gets a RateLimitError", () =>
    over(async ({ fetch }) => {
      const { charges } = clientOf(fetch)
      await charges.search({ limit: 1 })
      const error = await failureOf(charges.search({ limit: 1 }))
      assert.instanceOf(error, RateLimitError)
      assert.strictEqual(error.retryAfter, 1)
    })
  )
})

const storeDown = Layer.merge(
  layerDemo,
  Layer.mock(OrgResolver, { resolve: () => Effect.fail(new CredentialStoreDown({ retryAfter: 3 })) })
)

layer(InProcess.layer(storeDown))("a service whose store is down", (it) => {
  it.effect("gives a ServiceUnavailableError", () =>
    over(async ({ fetch }) => {
      const error = await failureOf(clientOf(fetch).organization.get())
      assert.instanceOf(error, ServiceUnavailableError)
      assert.deepInclude(error, { retryAfter: 3, detail: new CredentialStoreDown().detail })
    })
  )
})

const html = (status: number): Step => {
  const headers = { "content-type": "text/html" }
  return () => new Response("<html>\n  <h1>Welcome to nginx</h1></html>", { status, headers })
}
const text =
  (body: string, status = 200): Step =>
  () =>
    new Response(body, { status })

describe("a response that is not the service's", () => {
  const unexpected: ReadonlyArray<readonly [string, Step, RegExp]> = [
    [
      "a page of HTML",
      html(200),
      /200 from .*not a response of Practice Data, but "<html> <h1>Welcome .*Check the base URL/
    ],
    ["nothing", text(""), /but an empty body/],
    ["JSON that is cut off", text('{"body": [{"id": "a"'), /not a response/],
    ["JSON of another shape", json({ items: ["private"] }), /but other JSON/],
    ["records that are none", json({ body: [1] }), /not a response/],
    ["null", text("null"), /not a response/],
    ["a list", json([]), /not a response/],
    ["a status without a body", () => new Response(null, { status: 204 }), /204 .*but an empty body/],
    [
      "a redirect",
      () => Response.redirect("https://elsewhere.test/api", 308),
      /a redirect to https:\/\/elsewhere.test\/api/
    ],
    ["a 404 of another server", html(404), /404 from .*not a response/],
    ["a 400 of a proxy", html(400), /400 from .*not a response/],
    ["a 401 of a proxy", html(401), /401 from .*not a response/],
    ["a 422 without faults", refused(422, [1]), /422 from .*not a response/]
  ]

  test.each(unexpected)("is an UnexpectedResponseError: %s", async (_, step, message) => {
    const error = await failureOf(clientOf(steps(step).fetch).charges.search())
    assert.instanceOf(error, UnexpectedResponseError)
    assert.match(error.message, message)
    assert.notInclude(error.message, "private")
  })

  test.each([
    [html(502), ServerError],
    [html(500), ServerError],
    [html(503), ServiceUnavailableError],
    [html(429), RateLimitError]
  ] as const)("is of the class of a status that says enough", async (step, Class) => {
    const error = await failureOf(clientOf(steps(step).fetch).charges.search())
    assert.instanceOf(error, Class)
    assert.match(error.message, /not a response of Practice Data, but "<html>/)
    assert.isUndefined(error.detail)
  })

  test("is given up where it does not end", long, async () => {
    const megabyte = new Uint8Array(1024 * 1024)
    let sent = 0
    const endless: Step = () => new Response(new ReadableStream({ pull: (to) => (sent++, to.enqueue(megabyte)) }))
    const error = await failureOf(clientOf(steps(endless).fetch).charges.search())
    assert.match(String(error), /UnexpectedResponseError: The response is larger than 67108864 bytes/)
    assert.isBelow(sent, 70)
  })

  test.each([
    ["no cursor", { body: [], removed: [], has_more: false }],
    ["no removals", { body: [], cursor: "1", has_more: false }],
    ["a text for a boolean", { body: [], removed: [], cursor: "1", has_more: "false" }]
  ])("is no page of changes: %s", async (_, page) => {
    const error = await failureOf(collect(clientOf(steps(json(page)).fetch).charges.changes()))
    assert.instanceOf(error, UnexpectedResponseError)
  })

  test("does not keep a walk of the processor going round", async () => {
    const same = json({ data: [{ id: "a" }], has_more: true })
    const objects = clientOf(steps(same).fetch).psp.charges.all({ clinic: "c" })
    assert.match(String(await failureOf(collect(objects))), /gives no object to go on from/)
  })

  test("is a CursorExpiredError at 410", async () => {
    assert.instanceOf(
      await failureOf(collect(clientOf(steps(refused(410)).fetch).charges.changes("1"))),
      CursorExpiredError
    )
  })
})

describe("options that are none", () => {
  const options = { baseUrl, apiKey: "key" }
  test.each([
    [{ ...options, baseUrl: "localhost:3000" }, /baseUrl must be an address/],
    [{ ...options, baseUrl: "" }, /baseUrl must be an address/],
    [{ ...options, baseUrl: "https://user:secret@host" }, /baseUrl must not have a user/],
    [{ ...options, baseUrl: "https://host/?a=1" }, /baseUrl must not have a query/],
    [{ ...options, apiKey: "" }, /apiKey is missing/],
    [{ ...options, apiKey: "secret\n" }, /apiKey has a space, a line break/],
    [{ ...options, timeout: 0 }, /timeout must be/],
    [{ ...options, timeout: Number.NaN }, /timeout must be/],
    [{ ...options, maxRetries: -1 }, /maxRetries must be/]
  ])("are refused when the client is made: %o", (wrong, message) => {
    try {
      assert.isUndefined(new PracticeData(wrong))
    } catch (error) {
      assert.match(String(error), message)
      assert.notInclude(inspect(error), "secret")
    }
  })

  test("are refused before anything is sent where JSON would make them null", async () => {
    const { fetch, sent } = steps(json({ body: [] }))
    const { charges } = clientOf(fetch)
    const invalid = charges.search({ updated_at_since: new Date("no date") })
    assert.match(String(await failureOf(invalid)), /RangeError: updated_at_since is an invalid date/)
    assert.match(String(await failureOf(charges.search({ limit: Number.NaN }))), /RangeError: limit is NaN/)
    assert.lengthOf(sent, 0)
  })
})

describe("an address", () => {
  test.each([
    ["http://host", "http://host/api/v3/organization/get"],
    ["http://host/", "http://host/api/v3/organization/get"],
    ["http://host:81/inner/path//", "http://host:81/inner/path/api/v3/organization/get"],
    ["http://host/api/v3", "http://host/api/v3/organization/get"],
    ["http://host/inner/api/v3/", "http://host/inner/api/v3/organization/get"]
  ])("may be %s", async (address, url) => {
    const { fetch, sent } = steps(json({ id: "org" }))
    await new PracticeData({ baseUrl: address, apiKey: "key", fetch }).organization.get()
    assert.strictEqual(sent[0]?.url, url)
  })

  test("is asked with the key, what is sent, who asks, and the headers of the caller", async () => {
    const { fetch, sent } = steps(json({ id: "org" }))
    const client = new PracticeData({ baseUrl, apiKey: "key", fetch, headers: { "x-a": "1", "x-b": "1" } })
    await client.organization.get({ headers: { "x-b": "2", authorization: "Basic mine" } })
    const headers = Object.fromEntries(sent[0]?.headers ?? [])
    assert.match(headers["user-agent"] ?? "", /^practice-data\/\d+\.\d+\.\d+$/)
    assert.deepInclude(headers, {
      authorization: "Bearer key",
      "content-type": "application/json",
      accept: "application/json",
      "x-a": "1",
      "x-b": "2"
    })
  })
})

describe("neither a key nor a secret", () => {
  const apiKey = "pda_live_QUITEPRIVATE"
  const secret = `whsec_${Buffer.from("QUITEPRIVATE".padEnd(24, "!")).toString("base64")}`
  const privates = ["QUITEPRIVATE", secret.slice(6, 20)]

  const assertIsPrivate = (value: unknown) => {
    const shown = [
      inspect(value, { depth: 10, showHidden: true, getters: true }),
      JSON.stringify(value),
      String(value),
      value instanceof Error ? value.stack : ""
    ].join("\n")
    for (const each of privates) assert.notInclude(shown, each)
  }

  test("is shown by a client or a sender", () => {
    assertIsPrivate(new PracticeData({ baseUrl, apiKey }))
    assertIsPrivate(new PracticeData({ baseUrl, apiKey }).charges)
    assertIsPrivate(new PracticeData({ baseUrl, apiKey }).resource("charges"))
    assertIsPrivate(new InvoiceDeletions({ baseUrl, organization, secret }))
  })

  test("is in an error, whatever went wrong", async () => {
    const failing: ReadonlyArray<Step> = [refused(401), refused(503), html(200), broken]
    for (const step of failing) {
      const options = { baseUrl, fetch: steps(step).fetch, maxRetries: 0 }
      assertIsPrivate(await failureOf(new PracticeData({ ...options, apiKey }).charges.search()))
      const sender = new InvoiceDeletions({ ...options, organization, secret })
      assertIsPrivate(await failureOf(sender.send({ invoices: [{ invoice_id: "i" }] })))
    }
    for (const wrong of [`${apiKey}\n`, `${apiKey} `, `${apiKey}é`]) {
      assert.throws(() => new PracticeData({ baseUrl, apiKey: wrong }), /^apiKey has/)
    }
    assert.throws(
      () => new InvoiceDeletions({ baseUrl, organization, secret: `${secret}§` }),
      "secret must be whsec_ and base64"
    )
  })

  test("reaches a host that a connection fails to", async () => {
    const client = new PracticeData({ baseUrl: "http://127.0.0.1:1", apiKey, maxRetries: 0 })
    const error = await failureOf(client.organization.get())
    assert.instanceOf(error, ConnectionError)
    assert.match(error.message, /^Cannot get a response from http:\/\/127.0.0.1:1: /)
    assertIsPrivate(error)
  })
})
