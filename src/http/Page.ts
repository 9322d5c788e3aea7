/** What pages in a browser have in common: they load nothing from other hosts, and run no script but their own. */
import { hash } from "node:crypto"
import { HttpServerResponse } from "effect/http"

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

/** The headers of a page. */
export const headersOf = (html: string) => ({
  "content-security-policy": policyOf(html),
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff"
})

/** A page. */
export const page = (html: string) => HttpServerResponse.html(html).pipe(HttpServerResponse.setHeaders(headersOf(html)))
