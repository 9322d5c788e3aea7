/** What `/` says: where everything is. A page for browsers, JSON for others. */
import { Effect, Layer, Record } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { DemoKeys } from "./Demo.ts"
import * as Page from "./Page.ts"

/** What a process serves. */
export interface Served {
  readonly dataApi: boolean
  readonly intake: boolean
}

type Demo = typeof DemoKeys.Service

interface Place {
  readonly name: string
  readonly about: string
  readonly documentation: string
  readonly openapi: string
}

const placesOf = ({ dataApi, intake }: Served): ReadonlyArray<Place> => [
  ...(dataApi
    ? [
        {
          name: "Practice data API",
          about: "Reads the records of an organization, with its API key.",
          documentation: "/api/v3/docs",
          openapi: "/api/v3/openapi.json"
        }
      ]
    : []),
  ...(intake
    ? [
        {
          name: "Invoice deletion intake",
          about: "Takes notifications that invoices, or lines of them, were deleted.",
          documentation: "/api/v1/docs",
          openapi: "/api/v1/openapi.json"
        }
      ]
    : [])
]

const health = { health: "/api/v1/health", ready: "/api/v1/health/ready" }

const style = `
:root { color-scheme: light dark; --line: #d6d3d1; --muted: #57534e; --link: #0f766e; --code: #f5f5f4 }
@media (prefers-color-scheme: dark) { :root { --line: #44403c; --muted: #a8a29e; --link: #5eead4; --code: #292524 } }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 44rem; margin: 0 auto; padding: 2.5rem 1.25rem }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .25rem }
h2 { font-size: 1.05rem; margin: 0 }
p { margin: .15rem 0; color: var(--muted) }
a { color: var(--link) }
section { border-top: 1px solid var(--line); padding: 1.1rem 0; margin-top: 1.1rem }
section + section { margin-top: 0 }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin-top: .35rem }
code, pre { font: 14px/1.5 ui-monospace, monospace; background: var(--code); border-radius: 6px }
code { padding: .1rem .35rem }
pre { padding: .8rem; margin: .6rem 0 0; white-space: pre-wrap; overflow-wrap: anywhere }
ul { margin: .4rem 0; padding-left: 1.2rem }
`.trim()

const section = ({ about, documentation, name, openapi }: Place) => `
<section>
<h2>${name}</h2>
<p>${about}</p>
<nav><a href="${documentation}">Documentation</a><a href="${openapi}">OpenAPI document</a></nav>
</section>`

const demoSection = (demo: Demo, host: string) => {
  const [first] = demo
  return first === undefined
    ? ""
    : `
<section>
<h2>Demo data</h2>
<p>This service runs on its embedded database. Anyone may use these API keys:</p>
<ul>${demo.map(({ key, organization }) => `<li><code>${key}</code> ${organization}</li>`).join("")}</ul>
<pre>curl -s http://${host}/api/v3/charges/search -H 'Authorization: Bearer ${first.key}' -H 'Content-Type: application/json' -d '{"limit":2}'</pre>
</section>`
}

const htmlOf = (places: ReadonlyArray<Place>, demo: Demo, host: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Practice Data</title>
<link rel="icon" href="${Page.icon}">
<style>
${style}
</style>
</head>
<body>
<h1>Practice Data</h1>
<p>The data of a veterinary wellness-plan business, for its partners.</p>
${places.map(section).join("")}${demoSection(demo, host)}
<section>
<h2>Health</h2>
<nav><a href="${health.health}">Health</a><a href="${health.ready}">Readiness</a></nav>
</section>
</body>
</html>
`

const jsonOf = (places: ReadonlyArray<Place>, demo: Demo) => ({
  apis: places.map(({ documentation, name, openapi }) => ({ name, documentation, openapi })),
  ...health,
  ...(demo.length === 0
    ? {}
    : { demo_keys: Record.fromEntries(demo.map(({ key, organization }) => [organization, key])) })
})

/** The host that a browser asked, where it is one. */
const hostOf = (given: string | undefined) =>
  given !== undefined && /^[\w.-]+(:\d+)?$|^\[[\da-f:]+\](:\d+)?$/i.test(given) ? given : "127.0.0.1:3000"

/** Serves `/`, without a key. */
export const layer = (served: Served) =>
  Layer.unwrap(
    Effect.map(DemoKeys, (demo) => {
      const places = placesOf(served)
      const json = HttpServerResponse.jsonUnsafe(jsonOf(places, demo))
      return HttpRouter.add(
        "GET",
        "/",
        Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) =>
          (headers["accept"]?.includes("text/html")
            ? Page.page(htmlOf(places, demo, hostOf(headers["host"])))
            : json
          ).pipe(HttpServerResponse.setHeader("vary", "accept"))
        )
      )
    })
  )
