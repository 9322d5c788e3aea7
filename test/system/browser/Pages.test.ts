/**
 * The pages as a person finds them, in a real Chromium, on the demo data: whole without another host, and requests can be
 * sent from the documentation. That each example is accepted, faster tests say: `OpenApi` of `unit/http`, `unit/deletions`.
 *
 * @module-tag browser
 */
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { long } from "../../support/tries.ts"
import * as Process from "../../support/Process.ts"
import {
  Chromium,
  desktop,
  faultsOf,
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

/** Opens an operation of the documentation, and sends its request as it stands. Returns the status of the response. */
const tryIt = Effect.fnUntraced(function* (version: "v1" | "v3", operation: string) {
  const { page, problems } = yield* openPage(`${yield* Service}/api/${version}/docs`, desktop)
  const article = page.locator(`[id="${operation}"]`)
  const output = article.locator("output")
  yield* Effect.promise(() => article.getByRole("button", { name: "Try it" }).click())
  yield* Effect.promise(() => article.getByRole("button", { name: "Send to" }).click())
  yield* Effect.promise(() => output.filter({ hasText: /^\d/ }).waitFor())
  assert.deepStrictEqual(problems, [])
  return (yield* Effect.promise(() => output.innerText())).slice(0, 3)
}, Effect.scoped)

/** A page, and the heading that it has once it is there. */
interface Looked {
  readonly name: string
  readonly path: string
  readonly heading: string
}

const pages: ReadonlyArray<Looked> = [
  { name: "landing", path: "/", heading: "Practice Data" },
  { name: "v3", path: "/api/v3/docs", heading: "Practice data API" },
  { name: "v3-search", path: "/api/v3/docs#charges.search", heading: "Search charges" },
  { name: "v1", path: "/api/v1/docs", heading: "Invoice deletion intake" }
]

const look = Effect.fnUntraced(function* ({ heading, name, path }: Looked, screen: Screen) {
  const { page, problems } = yield* openPage(`${yield* Service}${path}`, screen)
  yield* Effect.promise(() => page.getByRole("heading", { name: heading }).first().waitFor())
  yield* Effect.promise(() => page.screenshot({ path: screenshot(name, screen) }))
  assert.deepStrictEqual(problems, [])
  assert.deepStrictEqual(yield* faultsOf(page), [])
}, Effect.scoped)

if (!isInstalled) process.stderr.write(`${missing}\n`)

describe.skipIf(!isInstalled)("In Chromium", () => {
  layer(Layer.merge(Chromium.layer, Service.layer), { excludeTestServices: true })((it) => {
    for (const screen of screens) {
      it.effect(
        `every page is whole on a ${screen.name}, accessible and as wide as the screen`,
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

    it.effect.each([
      ["v1", "invoiceDeletions.schedule", "202"],
      ["v3", "charges.search", "200"]
    ] as const)("a request of the documentation of %s can be sent as it stands", ([version, operation, status]) =>
      Effect.map(tryIt(version, operation), (found) => assert.strictEqual(found, status))
    )
  })
})
