/**
 * The pages as people find them, in a real Chromium: those of the service on the demo data, whole without another host, with
 * requests that can be sent from the documentation; and the operators' over made-up figures, on each screen and by keyboard.
 *
 * @module-tag browser
 */
import { assert, describe, layer } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import type { Page } from "playwright-core"
import * as OperationsListener from "../../../src/operations/OperationsListener.ts"
import { long } from "../../support/tries.ts"
import * as Program from "../../support/Program.ts"
import { Chromium, desktop, faultsOf, isInstalled, openPage, phone, type Screen, screenshot } from "./Chromium.ts"
import { busy, checksOf, databaseWith, processOf, taskOf } from "../../integration/operations/pageFixture.ts"

class Service extends Context.Service<Service, string>()("practice-data/test/system/browser/Pages/Service") {
  static readonly layer = Layer.effect(
    Service,
    Effect.map(Program.startUsed({}), ({ url }) => url)
  )
}

const now = Effect.runSync(Clock.currentTimeMillis)

const endless = "x".repeat(300)

const tasks = [
  taskOf("org_oakridge", "delivery-1", "dead", now),
  {
    ...taskOf("org_willow_creek_veterinary_partners_of_the_north_west", endless.slice(0, 36), "dead", now),
    last_error: `ConstraintError 23514, constraint ${endless}`
  },
  taskOf(endless.slice(0, 128), "7c9e6679-7425-40de-944b-e07fc1f90ae7", "completed", now),
  ...(["scheduled", "running", "completed"] as const).flatMap((state) =>
    Array.from({ length: 13 }, (_, index) => taskOf("org_harbor", `${state}-${index}`, state, now))
  )
]

const shown = processOf({
  recent: busy(now),
  checks: checksOf({ records: null, processor: null })
})

/** Serves the pages until the scope closes. */
const served = (rows: Parameters<typeof databaseWith>[0]) =>
  OperationsListener.layer({ host: "127.0.0.1", port: 0 }).pipe(
    Layer.provide([shown, databaseWith(rows)]),
    Layer.build,
    Effect.flatMap((context) => Effect.provideContext(OperationsListener.OperatorsPage, context)),
    Effect.map(({ url }) => url.replace(/\/ops$/, ""))
  )

const full = served(tasks)
const empty = served([])

/** Pages by the names of their screenshots, and the heading that each has once it is there. */
type Pages = ReadonlyArray<readonly [name: string, path: string, heading?: string]>

const pages: Pages = [
  ["landing", "/", "Practice Data"],
  ["v3", "/api/v3/docs", "Practice data API"],
  ["v1", "/api/v1/docs", "Invoice deletion intake"]
]

const operatorsPage: Pages = [["operations", "/ops"]]

const look = Effect.fnUntraced(function* (base: string, kind: string, screen: Screen, looked: Pages) {
  const { page, problems } = yield* openPage(base, screen)
  for (const [name, path, heading = ""] of looked) {
    yield* Effect.promise(() => page.goto(`${base}${path}`))
    yield* Effect.promise(() => page.getByRole("heading", { name: heading }).first().waitFor())
    // The markup of Scalar is its own.
    if (!path.endsWith("/docs")) assert.deepStrictEqual(yield* faultsOf(page), [], `${kind} ${name}`)
    const fullPage = kind !== "public"
    yield* Effect.promise(() => page.screenshot({ path: screenshot(`${kind}-${name}`, screen), fullPage }))
  }
  assert.deepStrictEqual(problems, [])
}, Effect.scoped)

const press = (page: Page, key: string) => Effect.promise(() => page.keyboard.press(key))

/** Presses Tab until an element has the focus, as a person would who sees where it is. */
const tabTo = Effect.fnUntraced(function* (page: Page, selector: string) {
  for (let pressed = 0; pressed < 60; pressed++) {
    yield* press(page, "Tab")
    if ((yield* Effect.promise(() => page.locator(`${selector}:focus`).count())) > 0) {
      const outline = yield* Effect.promise(() =>
        page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
      )
      assert.notStrictEqual(outline, "none", `${selector} does not show its focus`)
      return
    }
  }
  assert.fail(`${selector} is not reached by Tab`)
})

const shows = (page: Page, text: string | RegExp) =>
  Effect.promise(() => page.getByText(text).first().waitFor({ timeout: 20_000 }))

describe.skipIf(!isInstalled)("In Chromium", () => {
  layer(Layer.merge(Chromium.layer, Service.layer), { excludeTestServices: true })("pages", (it) => {
    it.effect("the documentation finds endpoints by the names of their fields", () =>
      Effect.gen(function* () {
        const { page, problems } = yield* openPage(`${yield* Service}/api/v3/docs`, desktop)
        yield* Effect.promise(() => page.getByText("Search", { exact: true }).first().click())
        const dialog = page.getByRole("dialog")
        yield* Effect.promise(() => dialog.locator("input").fill("overpaid_amount"))
        yield* Effect.promise(() => dialog.getByText("Search charges").first().waitFor())
        assert.deepStrictEqual(problems, [])
      })
    )

    describe("people", long, () => {
      for (const screen of [desktop, phone]) {
        it.effect(`see every page whole on a ${screen.name}, accessible and as wide as the screen`, () =>
          Effect.flatMap(Service, (url) => look(url, "public", screen, pages))
        )

        it.effect(`see the page for operators so on a ${screen.name}`, () =>
          Effect.flatMap(full, (url) => look(url, "ops", screen, operatorsPage))
        )
      }

      it.effect("see the page for operators so where there is nothing on it", () =>
        Effect.flatMap(empty, (url) => look(url, "ops-empty", phone, operatorsPage))
      )

      it.effect("find dead deletions by keyboard alone", () =>
        Effect.gen(function* () {
          const { page, problems } = yield* openPage(`${yield* full}/ops`, desktop)
          yield* tabTo(page, 'main a[href="/ops?state=dead"]')
          yield* press(page, "Enter")
          yield* Effect.promise(() => page.waitForURL(/state=dead/))
          yield* tabTo(page, 'tbody a[href="/ops?state=dead&organization=org_oakridge"]')
          yield* press(page, "Enter")
          yield* Effect.promise(() => page.waitForURL(/org_oakridge/))
          yield* shows(page, "delivery-1")
          assert.deepStrictEqual(problems, [])
        })
      )
    })
  })
})
