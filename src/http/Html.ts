/** HTML as values that escape every text and attribute, and the headers of pages: one policy. */
import { Effect } from "effect"
import { HttpServerRequest, HttpServerResponse, UrlParams } from "effect/http"
import { compress } from "./Compression.ts"

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;"
}

// Control characters, and those that change the direction of the text around them.
const invisible = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** The text of an element. Quotes are escaped only in attributes. */
const escaped = (text: string, special = /[&<>]/g) =>
  text
    .toWellFormed()
    .replaceAll(invisible, (character) => (character === "\n" ? character : "\ufffd"))
    .replaceAll(special, (character) => escapes[character] ?? "")

type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

const attribute = ([name, value]: readonly [string, Attributes[string]]) => {
  if (value === undefined || value === false) return ""
  return value === true ? ` ${name}` : ` ${name}="${escaped(String(value), /[&<>"']/g)}"`
}

const voidElements = ["input", "link", "meta"]

/** Escaped HTML. */
export interface Html {
  readonly text: string
}

/** The content of an element. Nothing is shown for `undefined` and `false`. */
export type Content = Html | string | number | undefined | false | ReadonlyArray<Content>

const render = (content: Content): string => {
  if (content === undefined || content === false) return ""
  if (typeof content !== "object") return escaped(String(content))
  return "text" in content ? content.text : content.map(render).join("")
}

/** Makes an element: `h("p", { class: "note" })("Text")`. Attributes that are `undefined` or `false` are left out. */
export const h =
  (name: string, attributes: Attributes = {}) =>
  (...content: ReadonlyArray<Content>): Html => {
    const start = `<${name}${Object.entries(attributes).map(attribute).join("")}>`
    return { text: voidElements.includes(name) ? start : `${start}${render(content)}</${name}>` }
  }

/** A path with parameters. Those without a value are left out. */
export const link = (path: string, parameters: Readonly<Record<string, string | undefined>> = {}): string => {
  const query = UrlParams.toString(UrlParams.fromInput(parameters))
  return query === "" ? path : `${path}?${query}`
}

const icon = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0f766e"/><path d="M13 7h6v6h6v6h-6v6h-6v-6H7v-6h6z" fill="#fff"/></svg>'
)}`

/** Colors and text of all pages. Text has a contrast of at least 4.5 to its background, lines and bars of at least 3. */
export const baseStyle = `
:root {
  color-scheme: light dark;
  --ground: light-dark(#fafaf9, #1c1917); --surface: light-dark(#fff, #262220); --soft: light-dark(#f0efed, #35302d);
  --text: light-dark(#1c1917, #f5f5f4); --muted: light-dark(#57534e, #b5afaa); --line: light-dark(#d6d3d1, #4a4541);
  --teal: light-dark(#0f766e, #5eead4); --amber: light-dark(#b45309, #fbbf24); --red: light-dark(#b91c1c, #f87171);
  --mono: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace;
}
*, ::before, ::after { box-sizing: border-box }
body { margin: 0; background: var(--ground); color: var(--text); font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem; line-height: 1.25; margin: .5rem 0 1.25rem; overflow-wrap: anywhere }
h2 { font-size: 1.1rem; margin: 2rem 0 .75rem }
p { margin: .4rem 0; max-width: 70ch }
a { color: var(--teal); text-underline-offset: .3em }
code, pre { font: var(--mono); overflow-wrap: anywhere }
pre { background: var(--soft); padding: .75rem; margin: .5rem 0; border-radius: 6px; white-space: pre-wrap }`

export const document = (title: string, style: string, ...body: ReadonlyArray<Content>): string => {
  const head = h("head")(
    h("meta", { charset: "utf-8" })(),
    h("meta", { name: "viewport", content: "width=device-width, initial-scale=1" })(),
    h("meta", { name: "color-scheme", content: "light dark" })(),
    h("title")(title),
    h("link", { rel: "icon", href: icon })(),
    { text: `<style>${style}</style>` }
  )
  return `<!doctype html>\n${h("html", { lang: "en" })(head, h("body")(body)).text}\n`
}

/**
 * Protects a page: it loads nothing from other sites, and they cannot frame it.
 *
 * @param scripts the sources of its scripts, as a content security policy names them
 */
export const secured = (response: HttpServerResponse.HttpServerResponse, scripts = "'self'") => {
  const loaded = `default-src 'none'; script-src ${scripts}; style-src 'unsafe-inline'; img-src data:; connect-src 'self'`
  const policy = `${loaded}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`
  return HttpServerResponse.setHeaders(response, {
    "content-security-policy": policy,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    // Links to other sites send no referrer.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY"
  })
}

/** Serves a document: browsers keep it for five minutes, and it is compressed once for each encoding. */
export const serveDocument = (given: HttpServerResponse.HttpServerResponse) => {
  const made = new Map<string, HttpServerResponse.HttpServerResponse>()
  const response = HttpServerResponse.setHeader(given, "cache-control", "max-age=300")
  return Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) =>
    compress(response, headers["accept-encoding"], made)
  )
}
