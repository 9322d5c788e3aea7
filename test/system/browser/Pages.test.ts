/**
 * The pages as people find them, in a real Chromium: those of the service on the demo data, whole without another host, with
 * requests that can be sent from the documentation; and the operators' over made-up figures, on each screen, by keyboard,
 * live, and while the service is gone.
 *
 * @module-tag browser
 */
import { assert, describe, layer } from "@effect/vitest"
import { Clock, Context, Effect, Exit, Layer, Option, Redacted, Scope } from "effect"
import type { Page } from "playwright-core"
import * as OperationsListener from "../../../src/operations/OperationsListener.ts"
import { link } from "../../../src/http/Html.ts"
import { long } from "../../support/tries.ts"
import * as Program from "../../support/Program.ts"
import { eventually } from "../../support/eventually.ts"
import { Chromium, desktop, faultsOf, isInstalled, openPage, phone, type Screen, screenshot } from "./Chromium.ts"
import {
  busy,
  checksOf,
  entryOf,
  figures,
  keysOf,
  processOf,
  store,
  taskOf,
  token
} from "../../unit/operations/fakes.ts"

class Service extends Context.Service<Service, string>()("practice-data/test/system/browser/Pages/Service") {
  static readonly layer = Layer.effect(
    Service,
    Effect.map(Program.startUsed({}), ({ url }) => url)
  )
}

const now = Effect.runSync(Clock.currentTimeMillis)

const endless = "x".repeat(300)

const dead = taskOf("org_oakridge", "delivery-1", "dead", now)

const tasks = [
  dead,
  {
    ...taskOf("org_willow_creek_veterinary_partners_of_the_north_west", endless.slice(0, 36), "dead", now),
    last_error: `ConstraintError 23514, constraint ${endless}`
  },
  taskOf(endless.slice(0, 128), "7c9e6679-7425-40de-944b-e07fc1f90ae7", "completed", now),
  ...(["scheduled", "running", "completed"] as const).flatMap((state) =>
    Array.from({ length: 13 }, (_, index) => taskOf("org_harbor", `${state}-${index}`, state, now))
  )
]

const recent = busy(now)

/** What a process depends on, which a test may change. */
let problem: string | null = null

const snapshot = Effect.sync(() =>
  processOf(now, { recent, checks: checksOf({ records: null, tasks: problem, processor: null }) })
)

/** Serves the pages until the scope closes. */
const served = (memory: Parameters<typeof store>[0]) =>
  OperationsListener.layer({ host: "127.0.0.1", port: 0, token: Option.some(Redacted.make(token)) }).pipe(
    Layer.provide([figures(snapshot), store(memory)]),
    Layer.build,
    Effect.flatMap((context) => Effect.provideContext(OperationsListener.OperatorsPage, context)),
    Effect.map(({ url }) => url.replace(/\/ops$/, ""))
  )

const full = served({ tasks, keys: keysOf(now), audit: tasks.slice(0, 9).map((task) => entryOf(task, now)) })
const empty = served({ tasks: [], keys: [], audit: [] })

/** Pages by the names of their screenshots, and the heading that each has once it is there. */
type Pages = ReadonlyArray<readonly [name: string, path: string, heading?: string]>

const pages: Pages = [
  ["landing", "/", "Practice Data"],
  ["v3", "/api/v3/docs", "Practice data API"],
  ["v1", "/api/v1/docs", "Invoice deletion intake"]
]

const operatorsPages: Pages = [
  ["overview", "/ops"],
  ["day", "/ops?window=day"],
  ["requests", "/ops/requests"],
  ["deletions", "/ops/deletions"],
  ["keys", "/ops/keys"],
  ["audit", "/ops/audit"]
]

/** The pages of a deletion, which an empty store does not have. */
const taskPages: Pages = ["task", "task/replay"].map((name) => [
  name.replace("/", "-"),
  link(`/ops/${name}`, { organization: dead.organization_id, id: dead.id })
])

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
        yield* press(page, "Control+k")
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

        it.effect(`see every page for operators so on a ${screen.name}`, () =>
          Effect.flatMap(full, (url) => look(url, "ops", screen, [...operatorsPages, ...taskPages]))
        )
      }

      it.effect("see every page for operators so where there is nothing on it", () =>
        Effect.flatMap(empty, (url) => look(url, "ops-empty", phone, operatorsPages))
      )

      it.effect("find and replay a deletion by keyboard alone", () =>
        Effect.gen(function* () {
          const { page, problems } = yield* openPage(`${yield* full}/ops`, desktop)
          yield* press(page, "Tab")
          assert.strictEqual(yield* Effect.promise(() => page.locator(":focus").innerText()), "Skip to the content")
          yield* press(page, "Enter")
          assert.strictEqual(yield* Effect.promise(() => page.locator("main:focus").count()), 1)
          yield* tabTo(page, 'main a[href="/ops/deletions?state=dead"]')
          yield* press(page, "Enter")
          yield* Effect.promise(() => page.waitForURL(/state=dead/))
          yield* tabTo(page, "#q")
          yield* Effect.promise(() => page.keyboard.type("delivery-1"))
          yield* press(page, "Enter")
          yield* Effect.promise(() => page.waitForURL(/q=delivery-1/))
          yield* tabTo(page, "tbody a")
          yield* press(page, "Enter")
          yield* tabTo(page, 'main a[href^="/ops/task/replay"]')
          yield* press(page, "Enter")
          yield* Effect.promise(() => page.waitForURL(/replay/))
          for (const given of ["wrong-horse-battery", token]) {
            yield* tabTo(page, "#name")
            yield* Effect.promise(() => page.keyboard.type("alice"))
            yield* tabTo(page, "#token")
            yield* Effect.promise(() => page.keyboard.type(given))
            yield* press(page, "Enter")
            if (given !== token) yield* shows(page, "Wrong token. Nothing was changed.")
          }
          yield* shows(page, `Deletion ${dead.idempotency_key}`)
          // The browser tells of the 403.
          const others = problems.filter((one) => !one.includes("403"))
          assert.deepStrictEqual(others, [])
        })
      )

      it.effect("make one key by two clicks", () =>
        Effect.gen(function* () {
          const { page } = yield* openPage(`${yield* full}/ops/keys/create?organization=org_oakridge`, desktop)
          for (const [name, value] of Object.entries({ purpose: "a copy", name: "alice", token })) {
            yield* Effect.promise(() => page.fill(`[name=${name}]`, value))
          }
          const sent: Array<() => Promise<void>> = []
          yield* Effect.promise(() =>
            page.route("**/create", (route) => {
              sent.push(() => route.continue())
            })
          )
          const { x = 0, y = 0 } = (yield* Effect.promise(() => page.locator("button.main").boundingBox())) ?? {}
          const click = Effect.promise(() => page.mouse.click(x + 5, y + 5))
          yield* click
          yield* eventually("the first request", () => sent.length === 1)
          yield* click
          yield* Effect.forEach(sent, (go) => Effect.promise(go))
          yield* shows(page, "Copy it now")
          assert.lengthOf(sent, 1)
        })
      )

      it.effect("see the operators' pages change, and go on with what they do meanwhile", () =>
        Effect.gen(function* () {
          const base = yield* full
          const { page, problems } = yield* openPage(`${base}/ops`, desktop)
          yield* Effect.promise(() => page.locator("figure:last-child summary").click())
          yield* Effect.promise(() => page.locator("a", { hasText: "Last day" }).focus())
          problem = "Cannot be reached"
          yield* shows(page, "Cannot be reached")
          problem = null
          yield* Effect.promise(() =>
            page.getByText("Cannot be reached").waitFor({ state: "detached", timeout: 20_000 })
          )
          assert.strictEqual(yield* Effect.promise(() => page.locator("figure:last-child details[open]").count()), 1)
          assert.strictEqual(yield* Effect.promise(() => page.locator("a:focus").innerText()), "Last day")
          yield* Effect.promise(() => page.goto(`${base}/ops/deletions`))
          yield* Effect.promise(() => page.locator("#q").pressSequentially("half a ke"))
          const made = yield* Effect.promise(() => page.locator("footer time").innerText())
          yield* Effect.promise(() => page.locator("footer time", { hasNotText: made }).waitFor({ timeout: 20_000 }))
          assert.strictEqual(yield* Effect.promise(() => page.locator("#q:focus").inputValue()), "half a ke")
          yield* Effect.promise(() => page.getByRole("button", { name: "Pause" }).click())
          assert.strictEqual(yield* Effect.promise(() => page.getByRole("status").innerText()), "Paused")
          assert.deepStrictEqual(problems, [])
        })
      )

      it.effect("see that the service does not answer, and since when", () =>
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          const base = yield* Effect.provideService(full, Scope.Scope, scope)
          const { page } = yield* openPage(`${base}/ops`, desktop)
          yield* Scope.close(scope, Exit.void)
          yield* shows(page, /No answer since \d\d:\d\d:\d\d UTC/)
          yield* Effect.promise(() => page.screenshot({ path: screenshot("ops-gone", desktop) }))
          yield* shows(page, "Latency p95")
        })
      )
    })
  })
})
