/** The HTTP client for other programs. Follows no redirect: `fetch` would send `x-api-key` on to another host. */
import { Layer } from "effect"
// oxlint-disable-next-line eslint/no-restricted-imports -- the one place where it is set up
import { FetchHttpClient } from "effect/http"

export const layer = Layer.provide(
  FetchHttpClient.layer,
  Layer.succeed(FetchHttpClient.RequestInit, { redirect: "manual" })
)

/** The same client over another `fetch`, if there is one. */
export const layerWith = (fetch: typeof globalThis.fetch | undefined) =>
  fetch === undefined ? layer : Layer.provide(layer, Layer.succeed(FetchHttpClient.Fetch, fetch))
