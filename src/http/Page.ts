/** What pages in a browser have in common: they load nothing from other hosts, and run no script but their own. */
import { hash } from "node:crypto"
import { Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"

/** The icon of a page. */
export const icon = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0f766e"/><path d="M13 7h6v6h6v6h-6v6h-6v-6H7v-6h6z" fill="#fff"/></svg>'
)}`

const scripts = /<script>([\s\S]*?)<\/script>/g

const policyOf = (html: string) => {
  const hashes = Array.from(html.matchAll(scripts), ([, script = ""]) => `'sha256-${hash("sha256", script, "base64")}'`)
  return [
    "default-src 'none'",
    `script-src ${hashes.join(" ") || "'none'"}`,
    "style-src 'unsafe-inline'",
    "img-src data:",
    "font-src data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join("; ")
}

/** A page. A browser asks each time whether the one that it has is still the same. */
export const page = (html: string) =>
  HttpServerResponse.html(html).pipe(
    HttpServerResponse.setHeaders({
      "cache-control": "no-cache",
      "content-security-policy": policyOf(html),
      // Weak: the same for each content encoding.
      etag: `W/"${hash("sha256", html, "base64url")}"`,
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff"
    })
  )

/** The page, or that the browser has it already. */
export const unlessKnown = (response: HttpServerResponse.HttpServerResponse) =>
  Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) => {
    const { etag = "" } = response.headers
    return headers["if-none-match"]?.includes(etag) === true
      ? HttpServerResponse.empty({ status: 304, headers: { etag, "cache-control": "no-cache" } })
      : response
  })
