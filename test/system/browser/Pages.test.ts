/**
 * The pages as a person finds them, in a real Chromium, on the demo data: whole without another host, and every request
 * of the documentation can be sent as it stands.
 *
 * @module-tag browser
 */
import { assert, describe, layer } from "@effect/vitest"
import { Array, Context, Data, Effect, Layer, Schema } from "effect"
import { FetchHttpClient, HttpClient, HttpClientResponse } from "effect/http"
import type { Page } from "playwright-core"
import { long } from "../../support/tries.ts"
import * as Process from "../../support/Process.ts"
import {
  Chromium,
  desktop,
  isInstalled,
  missing,
  openPage,
  phone,
  type Screen,
  screens,
  screenshot
} from "./Chromium.ts"

class Service extends Context.Service<Service, string>()("practice-data/test/system/browser/Pages/Service") {
  static readonly layer = Layer.effect(
    Service,
    Effect.flatMap(Process.start({ DATA_DIR: "memory" }), ({ address }) => address)
  )
}

const Document = Schema.Struct({
  paths: Schema.Record(
    Schema.String,
    Schema.Record(Schema.String, Schema.Struct({ tags: Schema.NonEmptyArray(Schema.String) }))
  )
})

interface Operation {
  readonly method: string
  readonly path: string
  readonly tag: string
}

const operationsOf = Effect.fnUntraced(function* (api: string) {
  const response = yield* HttpClient.get(`${api}/openapi.json`)
  const { paths } = yield* HttpClientResponse.schemaBodyJson(Document)(response)
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { tags }]): Operation => ({ method, path, tag: tags[0] }))
  )
})

const close = (page: Page) => Effect.promise(() => page.getByRole("button", { name: "Close Client" }).first().click())

class NoEffect extends Data.TaggedError("NoEffect")<{ readonly path: string; readonly cause: unknown }> {}

/** Opens an operation of the documentation, sends its request as it stands, and returns the status of the response. */
const tryIt = Effect.fnUntraced(function* (page: Page, { method, path, tag }: Operation, docs: string) {
  const verb = method.toUpperCase()
  yield* Effect.promise(() => page.goto(`${docs}#tag/${tag}/${verb}${path}`))
  const test = page.getByRole("button", { name: new RegExp(`Test Request\\s*\\(${method} ${path}\\)`) })
  const send = page.getByRole("button", { name: `Send ${method} request to` })
  const attempt = <A>(press: () => Promise<A>) =>
    Effect.tryPromise({ try: press, catch: (cause) => new NoEffect({ path, cause }) })
  // On a busy machine a button can be seen before it does anything.
  const again = { times: 9 }
  const timeout = 5000
  yield* Effect.gen(function* () {
    if (yield* attempt(() => send.isVisible())) return
    yield* attempt(() => test.click({ timeout }))
    yield* attempt(() => send.waitFor({ timeout }))
  }).pipe(Effect.retry(again))
  const status = yield* attempt(() => {
    const responded = page.waitForResponse((one) => one.url().endsWith(path) && one.request().method() === verb, {
      timeout
    })
    return Promise.all([responded, send.click({ timeout })]).then(([response]) => response.status())
  }).pipe(Effect.retry(again))
  yield* Effect.promise(() => page.getByText(`${status} `).first().waitFor())
  return status
})

/** What the page would show by default, and what leads to other hosts. */
const unwanted = ["Share", "Generate SDK", "Ask AI", "Open API Client", "Developer Tools"]

/** The page keeps all that it has shown, and slows down: so many operations are tried on one. */
const operationsOfPage = 8

const tryThese = Effect.fnUntraced(function* (
  docs: string,
  operations: ReadonlyArray<Operation>,
  screen: Screen,
  shot: string | undefined
) {
  const { page, problems } = yield* openPage(docs, screen)
  const shown = yield* Effect.promise(() => page.locator("body").innerText())
  for (const text of unwanted) assert.notInclude(shown, text)
  for (const operation of operations) {
    const status = yield* tryIt(page, operation, docs)
    assert.include([200, 202], status, operation.path)
    if (shot !== undefined) yield* Effect.promise(() => page.screenshot({ path: shot }))
    yield* close(page)
  }
  assert.deepStrictEqual(problems, [])
}, Effect.scoped)

const tryAll = Effect.fnUntraced(function* (version: "v1" | "v3", screen: Screen, every: number) {
  const api = `${yield* Service}/api/${version}`
  const operations = (yield* operationsOf(api)).filter((_, index) => index % every === 0)
  yield* Effect.forEach(
    Array.chunksOf(operations, operationsOfPage),
    (chunk, index) =>
      tryThese(`${api}/docs`, chunk, screen, index === 0 ? screenshot(`${version}-sent`, screen) : undefined),
    { concurrency: 2, discard: true }
  )
})

/** A page, and the heading that it has once it is there. */
interface Looked {
  readonly name: string
  readonly path: string
  readonly heading: string
}

const pages: ReadonlyArray<Looked> = [
  { name: "landing", path: "/", heading: "Practice Data" },
  { name: "v3", path: "/api/v3/docs", heading: "Practice data API" },
  { name: "v3-search", path: "/api/v3/docs#tag/charges/POST/charges/search", heading: "Search charges" },
  { name: "v1", path: "/api/v1/docs", heading: "Invoice deletion intake" }
]

const look = Effect.fnUntraced(function* ({ heading, name, path }: Looked, screen: Screen) {
  const { page, problems } = yield* openPage(`${yield* Service}${path}`, screen)
  yield* Effect.promise(() => page.getByRole("heading", { name: heading }).first().waitFor())
  yield* Effect.promise(() => page.screenshot({ path: screenshot(name, screen) }))
  assert.deepStrictEqual(problems, [])
}, Effect.scoped)

if (!isInstalled) process.stderr.write(`${missing}\n`)

describe.skipIf(!isInstalled)("In Chromium", () => {
  layer(Layer.mergeAll(Chromium.layer, Service.layer, FetchHttpClient.layer), { excludeTestServices: true })((it) => {
    for (const screen of screens) {
      it.effect(
        `every page is whole on a ${screen.name}`,
        () => Effect.forEach(pages, (page) => look(page, screen), { discard: true }),
        screen === desktop || screen === phone ? long : {}
      )
    }

    it.effect(
      "every link of / leads to something",
      () =>
        Effect.gen(function* () {
          const { page } = yield* openPage(`${yield* Service}/`, phone)
          const links = yield* Effect.promise(() =>
            page.locator("a").evaluateAll((found) => found.map((link) => link.getAttribute("href") ?? ""))
          )
          assert.isNotEmpty(links)
          for (const link of links) {
            const response = yield* Effect.promise(() => page.request.get(new URL(link, page.url()).href))
            assert.strictEqual(response.status(), 200, link)
          }
        }).pipe(Effect.scoped),
      long
    )

    it.effect("every request of the documentation of v1 can be sent as it stands", () => tryAll("v1", desktop, 1), long)

    it.effect("every request of the documentation of v3 can be sent as it stands", () => tryAll("v3", desktop, 1))

    it.effect("so can requests on a phone, of which a few are enough: the page is the same", () =>
      Effect.forEach(["v1", "v3"] as const, (version) => tryAll(version, phone, version === "v1" ? 1 : 8), {
        discard: true
      })
    )
  })
})
