/**
 * The client for HTTP calls to other programs. It follows no redirect: `fetch` would send headers such as `x-api-key` on to
 * another host.
 */
import { Layer } from "effect"
// oxlint-disable-next-line eslint/no-restricted-imports -- the one place where it is set up
import { FetchHttpClient } from "effect/http"

export const layer = Layer.provide(
  FetchHttpClient.layer,
  Layer.succeed(FetchHttpClient.RequestInit, { redirect: "manual" })
)
