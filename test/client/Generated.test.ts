/** The committed source of the client's types is what the OpenAPI documents make of it now. */
import { readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { source } from "../../scripts/client/source.ts"

it("src/client/generated.ts is up to date", () => {
  const committed = readFileSync(new URL("../../src/client/generated.ts", import.meta.url), "utf8")
  assert.isTrue(committed === source(), "src/client/generated.ts is stale: run `npm run generate`")
})
