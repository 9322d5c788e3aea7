/** A real Chromium, headless: Debian's, or the one of `CHROMIUM`. */
import { existsSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"

const { CHROMIUM: executablePath = "/usr/bin/chromium" } = process.env

/** True if it is installed. Tests that need it are skipped otherwise. */
export const isInstalled = existsSync(executablePath)
if (!isInstalled)
  process.stderr.write(`No Chromium at ${executablePath}: tests in a browser are skipped. Set CHROMIUM.\n`)

/** The browser, which ends with the layer. */
export class Chromium extends Context.Service<Chromium, Browser>()("practice-data/test/system/browser/Chromium") {
  static readonly layer = Layer.effect(
    Chromium,
    Effect.acquireRelease(
      // The pages are our own, and a container has no sandbox to offer.
      Effect.promise(() =>
        import("playwright-core").then(({ chromium }) => chromium.launch({ executablePath, args: ["--no-sandbox"] }))
      ),
      (browser) => Effect.promise(() => browser.close())
    )
  )
}

/** The width of a screen, its color scheme, and what it is called. */
export interface Screen {
  readonly name: string
  readonly options: BrowserContextOptions
}

/** A screen on a desk, by day. */
export const desktop: Screen = {
  name: "desktop",
  options: { viewport: { width: 1280, height: 900 }, colorScheme: "light" }
}

/** A small phone, at night. */
export const phone: Screen = {
  name: "dark phone",
  options: { viewport: { width: 375, height: 800 }, colorScheme: "dark", hasTouch: true }
}

/** Where a screenshot goes. The folder is not part of the repository. */
export const screenshot = (page: string, { name }: Screen) =>
  join(import.meta.dirname, "screenshots", `${page}-${name.replaceAll(" ", "-")}.png`)

/** A page on a screen, with what went wrong on it so far: errors, and requests to another host. */
export const openPage = Effect.fnUntraced(function* (url: string, { options }: Screen) {
  const browser = yield* Chromium
  const context = yield* Effect.acquireRelease(
    Effect.promise(() => browser.newContext({ ...options, reducedMotion: "reduce" })),
    (opened) => Effect.promise(() => opened.close())
  )
  context.setDefaultTimeout(60_000)
  const page = yield* Effect.promise(() => context.newPage())
  const problems: Array<string> = []
  page.on("pageerror", ({ message }) => problems.push(message))
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(message.text())
  })
  page.on("request", (request) => {
    const { host, protocol } = new URL(request.url())
    if (protocol.startsWith("http") && host !== new URL(url).host) problems.push(`asked ${request.url()}`)
  })
  yield* Effect.promise(() => page.goto(url, { waitUntil: "networkidle" }))
  return { page, problems }
})

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/** The faults that axe finds on a page, and whether it is wider than the screen. */
export const faultsOf = (page: Page) =>
  Effect.promise(() =>
    page.evaluate(`${axe}; axe.run().then(({ violations }) => [
      ...violations.map(({ id, nodes }) => [id, nodes[0].html]),
      ...(document.documentElement.scrollWidth > innerWidth ? ["the page scrolls sideways"] : [])
    ])`)
  )
